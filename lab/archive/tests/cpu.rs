//! The CPU profile of a trial, as a file of its folder.

use lab_archive::{ArchiveError, Run};

use crate::archive::{create, record};
use crate::profiled::profiled;

#[test]
fn a_profile_is_read_back_and_has_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("run");
    let writer = create(&dir);
    let mut trial = writer.trial(1).unwrap();
    let large = vec![0; (16 << 20) + 1];
    let refused = trial.cpu_profile(&large);
    assert!(matches!(refused, Err(ArchiveError::Unwritable { .. })));
    trial.cpu_profile(b"a profile").unwrap();
    let mut record = record(1);
    record.profile = Some(profiled());
    trial.finish(&record).unwrap();
    drop(writer);
    let run = Run::open(&dir).unwrap();
    let profile = run.trials[0].cpu_profile.clone();
    assert_eq!(profile, Some(Ok(b"a profile".to_vec())));
    // Cut short, it is damaged, and the rest is as it was.
    std::fs::write(dir.join("trials/001/cpu.pb.gz"), b"a prof").unwrap();
    let run = Run::open(&dir).unwrap();
    assert!(matches!(run.trials[0].cpu_profile, Some(Err(_))));
    assert_eq!(run.trials[0].record, record);
}

#[test]
fn what_was_asked_is_read_back_and_has_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("run");
    let writer = create(&dir);
    let mut trial = writer.trial(1).unwrap();
    let refused = trial.asked(&vec![0; (16 << 20) + 1]);
    assert!(matches!(refused, Err(ArchiveError::Unwritable { .. })));
    trial.asked(b"{}\n{}\n").unwrap();
    trial.finish(&record(1)).unwrap();
    writer.trial(2).unwrap().finish(&record(2)).unwrap();
    drop(writer);
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.trials[0].asked, Some(Ok(b"{}\n{}\n".to_vec())));
    // Absent is something else than damaged.
    assert_eq!(run.trials[1].asked, None);
    std::fs::write(dir.join("trials/001/asked.jsonl"), b"{}\n").unwrap();
    let run = Run::open(&dir).unwrap();
    assert!(matches!(run.trials[0].asked, Some(Err(_))));
    std::fs::remove_file(dir.join("trials/001/asked.jsonl")).unwrap();
    let run = Run::open(&dir).unwrap();
    assert!(matches!(run.trials[0].asked, Some(Err(_))));
}
