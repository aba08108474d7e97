//! Reads any bytes as a pprof file. A profile that is read can be summed up and written again; an error states the
//! reason.

use lab_profile::{Profile, Sums, Tree};

/// The maximum samples and functions of stacks for the sums, whose cost is a multiple of their number.
const MOST_FRAMES: usize = 10_000;

pub(crate) fn run(data: &[u8]) {
    let profile = match Profile::from_pprof(data) {
        Ok(profile) => profile,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let frames = |sample| 1 + profile.frames(sample).count();
    if profile.samples.iter().map(frames).sum::<usize>() > MOST_FRAMES {
        return;
    }
    let sums = Sums::of(&profile);
    assert_eq!(Tree::by_thread(&profile).nodes[0].total, sums.all);
    let written = profile.to_pprof();
    let again = Profile::from_pprof(&written.bytes).expect("what is written can be read");
    // Shortened names may be equal.
    assert!(again.samples.len() <= profile.samples.len());
}
