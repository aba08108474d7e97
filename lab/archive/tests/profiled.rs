//! Profiles of trials in an archive.

use lab_archive::{Frames, Profiled, SampledBlock};

/// A profile's facts.
pub(crate) fn profiled() -> Profiled {
    Profiled {
        rate: 199.0,
        frames: Frames::Copies,
        cores: 2,
        samples: 950,
        expected: 960.5,
        lost: 1,
        throttled: 0,
        whole: 940,
        named: 930,
        other_samples: 0,
        cpu_ms: 4826.5,
        off_seconds: vec![14, 19],
        blocks: vec![SampledBlock {
            from_ms: 12_000.0,
            off_from_ms: 14_000.5,
            on_ms: 5000.0,
            on_cpu_ms: 500.0,
            off_ms: 999.5,
            off_cpu_ms: 98.0,
        }],
    }
}
