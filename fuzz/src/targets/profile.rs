//! Reads any bytes as a pprof file. A profile that is read can be summed up, also as waits, and written again; an
//! error states the reason.

use lab_profile::waits::{Patterns, Summary, Trial};
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
    let trial = Trial {
        profile: Some(&profile),
        recorded_seconds: 1.0,
        groups: &[],
        seconds: 1.0,
        transactions_per_s: None,
    };
    if let Some(waits) = Summary::of(&[trial], Patterns::built_in()) {
        assert!(waits.waits.len() <= waits.waits_found);
    }
    let written = profile.to_pprof();
    let again = Profile::from_pprof(&written.bytes).expect("what is written can be read");
    // Shortened names may be equal.
    assert!(again.samples.len() <= profile.samples.len());
}
