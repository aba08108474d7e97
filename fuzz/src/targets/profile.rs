//! Reads any bytes as a pprof file. A profile that is read can be summed up, also as waits, and written again; an error states the
//! reason.

use std::sync::LazyLock;

use lab_profile::waits::{Patterns, Summary, Trial};
use lab_profile::{Profile, Sums, Tree};

static PATTERNS: LazyLock<Patterns> =
    LazyLock::new(|| Patterns::new(&[]).expect("no pattern is given"));

/// Samples and functions of stacks beyond which the sums aren't made: they cost what their number is, and not only once.
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
    if let Some(waits) = Summary::of(&[trial], &PATTERNS) {
        assert!(waits.waits.len() <= waits.waits_found);
    }
    let written = profile.to_pprof();
    let again = Profile::from_pprof(&written.bytes).expect("what is written can be read");
    // Names that are shortened may be equal then.
    assert!(again.samples.len() <= profile.samples.len());
}
