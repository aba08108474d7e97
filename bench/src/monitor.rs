//! The cost of one sample of the host and a process on the generator's machine.

use std::time::Duration;

use lab_monitor::{Monitor, MonitorSpec};

use crate::clock::now;

const SAMPLES: u32 = 1000;

/// Prints the figure.
pub(crate) fn measure() {
    let spec = MonitorSpec {
        data_dir: Some("target".into()),
        processes: vec![("generator".to_owned(), std::process::id())],
        ..MonitorSpec::default()
    };
    let mut monitor = Monitor::new(&spec);
    monitor.sample(Duration::ZERO);
    let begin = now();
    for _ in 0..SAMPLES {
        monitor.sample(begin.elapsed());
    }
    let each = begin.elapsed() / SAMPLES;
    println!(
        "monitor: one sample of {} counters",
        monitor.columns().len()
    );
    println!(
        "  sample                           {:>9.0} us",
        each.as_secs_f64() * 1e6
    );
}
