//! What the threads of a trial's system waited for, as files of its folder.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use lab_archive::{Latencies, Run, ThreadsLine, Waited};
use lab_profile::waits::{Class, ThreadGroup};

use crate::archive::{create, record};

fn line(t_ms: f64) -> ThreadsLine {
    ThreadsLine {
        t_ms,
        group: ThreadGroup {
            name: "http-*".to_owned(),
            threads: 4,
            wall_ns: 4_000_000_000,
            on_cpu_ns: 1_000_000_000,
            no_core_ns: 500_000_000,
            blocked_ns: Some(BTreeMap::from([(Class::Disk, 2_500_000_000)])),
        },
    }
}

#[test]
fn waits_are_read_back_and_damaged_files_are_told_from_missing_ones() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("run");
    let writer = create(&dir);
    let mut trial = writer.trial(1).unwrap();
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    histogram.record(20_000).unwrap();
    let latency = Latencies::from([("v8:1 work, or other".to_owned(), histogram)]);
    trial.waits_profile(b"a profile").unwrap();
    trial.threads(&[line(1000.0), line(2000.5)]).unwrap();
    let hold = (Duration::from_secs(1), Duration::from_secs(3));
    trial.latency(hold, &latency).unwrap();
    let mut with = record(1);
    with.waits = Some(Waited {
        level: 3,
        ..Waited::default()
    });
    trial.finish(&with).unwrap();
    writer.trial(2).unwrap().finish(&record(2)).unwrap();
    drop(writer);
    let run = Run::open(&dir).unwrap();
    let waits = &run.trials[0].waits;
    assert_eq!(run.trials[0].record, with);
    assert_eq!(waits.profile, Some(Ok(b"a profile".to_vec())));
    assert_eq!(waits.latency, Some(Ok(latency)));
    let groups = waits.groups().unwrap().unwrap();
    assert_eq!((groups.len(), groups[0].wall_ns), (1, 8_000_000_000));
    let none = &run.trials[1].waits;
    assert_eq!((&none.profile, none.groups()), (&None, None));
    for name in ["waits.pb.gz", "threads.csv", "latency.hlog"] {
        std::fs::write(dir.join("trials/001").join(name), b"cut").unwrap();
    }
    let run = Run::open(&dir).unwrap();
    let waits = &run.trials[0].waits;
    assert!(matches!(waits.profile, Some(Err(_))));
    assert!(matches!(waits.groups(), Some(Err(_))));
    assert!(matches!(waits.latency, Some(Err(_))));
    assert_eq!(run.trials[0].windows, vec![]);
}
