//! Runs of a study and a workload that are texts of a test.

use std::io;
use std::path::Path;

use lab_conduct::{Control, IdleWait, RunRequest};
use lab_study::plan::{PlanOptions, plan};
use lab_study::{Files, load_study};

/// The files of a study: its workload is `small`.
struct Texts<'a> {
    study: &'a str,
    workload: &'a str,
}

impl Files for Texts<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let files = [
            ("s.study.yaml", self.study),
            ("small.workload.yaml", self.workload),
        ];
        let found = files.into_iter().find(|(name, _)| path.ends_with(name));
        found
            .map(|(_, text)| text.as_bytes().to_vec())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// A run of a study in a folder.
pub(crate) fn request(dir: &Path, (study, workload): (&str, &str), seed: u64) -> RunRequest {
    let loaded = load_study("s.study.yaml", &Texts { study, workload }, &[]).unwrap();
    let options = PlanOptions {
        speed: 1.0,
        seed: Some(seed),
    };
    RunRequest {
        plan: plan(&loaded.study, &options).unwrap(),
        loaded,
        out: dir.join("run"),
        resume: false,
        overrides: vec![],
        program: "plimsoll".into(),
        state: dir.join("state"),
        idle_wait: IdleWait::NONE,
        control: Control::default(),
        generators: None,
        machines: Default::default(),
    }
}
