//! A run that begins again with another plan.

use lab_archive::{ArchiveError, Run, RunWriter};
use serde_json::json;

use crate::archive::{create, files, fill, manifest};

#[test]
fn a_run_that_begins_again_keeps_no_trial_and_resumes_by_its_new_plan() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("run");
    let writer = create(&dir);
    fill(writer.trial(1).unwrap(), 1);
    // An incomplete one.
    let under_way = writer.trial(2).unwrap();
    let plan = json!({"trials": [{"id": 1}, {"id": 2}], "question": {"duet": false}});
    writer.begin_again(&manifest(), &plan, &files()).unwrap();
    assert!(writer.completed().unwrap().is_empty());
    drop((under_way, writer));
    let old = json!({"trials": [{"id": 1}]});
    let resumed = RunWriter::open_for_resume(&dir, &manifest(), &old, &files());
    assert!(
        matches!(resumed, Err(ArchiveError::Changed { .. })),
        "{resumed:?}"
    );
    let resumed = RunWriter::open_for_resume(&dir, &manifest(), &plan, &files()).unwrap();
    fill(resumed.trial(1).unwrap(), 1);
    let run = Run::open(&dir).unwrap();
    assert_eq!((run.plan, run.trials.len()), (plan, 1));
}
