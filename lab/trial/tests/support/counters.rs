//! Artificial counters of host and processes.

use lab_archive::TrialWriter;
use lab_study::plan::Trial;

use super::Shape;

pub(super) fn monitor(out: &mut TrialWriter, trial: &Trial, shape: &Shape) {
    let columns = [
        "host.cpu_percent",
        "host.disk_transfers_per_s",
        "host.disk_busy_percent",
        "host.memory_available_mb",
        "system.cpu_percent",
        "system.rss_mb",
        "generator.cpu_percent",
    ];
    out.monitor_header(&columns.map(str::to_owned)).unwrap();
    let end = trial.load.ramp_ms + trial.load.hold_ms;
    let step = (end / 30).max(1);
    for t in (0..=end).step_by(step as usize) {
        let busy = if t < trial.load.ramp_ms {
            5.0
        } else {
            f64::from(trial.load.users) / 5.0
        };
        let row = [
            (t > 0).then_some(busy),
            (t > 0).then_some(busy * 3.0),
            (t > 0).then_some(busy / 2.0),
            Some(9_000.0 - f64::from(trial.load.users)),
            (t > 0).then_some(shape.system_cpu.unwrap_or(busy * 1.5)),
            Some(60.0 + t as f64 / 1000.0),
            (t > 0).then_some(busy / 3.0),
        ];
        out.monitor_row(t as f64, &row).unwrap();
    }
}
