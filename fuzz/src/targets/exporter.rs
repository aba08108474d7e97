//! Any bytes as the answer of an exporter, twice: no panic, and as many values as columns.

use std::time::Duration;

use lab_monitor::{Monitor, MonitorSpec};

pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let nowhere = lab_monitor::Roots {
        proc: "/nowhere".into(),
        sys: "/nowhere".into(),
    };
    let mut monitor = Monitor::new(&MonitorSpec {
        remote: true,
        roots: nowhere,
        ..MonitorSpec::default()
    });
    for second in 1..3 {
        let at = Duration::from_secs(second);
        let _ = monitor.take_remote(at, &text);
        let row = monitor.sample(at);
        assert_eq!(row.len(), monitor.columns().len());
        assert!(row.iter().flatten().all(|value| !value.is_nan()));
    }
}
