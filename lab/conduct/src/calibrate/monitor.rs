//! Measures the time of a monitor sample, taken as in a trial.

use std::path::Path;

use lab_host::clock::Stopwatch;
use lab_monitor::{Monitor, MonitorSpec};

/// Number of timed samples.
const SAMPLES: u32 = 100;

/// Milliseconds of one sample, with `data_dir` as the folder whose disk is watched.
pub(super) fn sample_ms(data_dir: &Path) -> f64 {
    let mut monitor = Monitor::new(&MonitorSpec {
        data_dir: Some(data_dir.to_path_buf()),
        processes: vec![("generator".to_owned(), std::process::id())],
        ..MonitorSpec::default()
    });
    let began = Stopwatch::start();
    for _ in 0..SAMPLES {
        monitor.sample(began.elapsed());
    }
    began.elapsed().as_secs_f64() * 1e3 / f64::from(SAMPLES)
}
