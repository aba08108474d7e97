//! The data that a session transfers, and the raw baseline that a study requests.

use crate::faults::{Fault, STUDY, WORKLOAD, load, snapshot};
use lab_study::LoadedAny;
use lab_study::plan::{PlanOptions, plan};

const TRANSFER: &str = r#"transfer:
  place: "{{ folder }}"
  bytes: "{{ chunks * 1024 }}"
  chunk: "{{ chunk_bytes }}"
"#;

fn workload() -> String {
    let parameters =
        "workload: pages\nparameters: { chunks: 8, chunk_bytes: 1 KiB, folder: files }\n";
    let workload = WORKLOAD.replace("workload: pages\n", parameters);
    workload.replace("  pace: 10s\n", "") + TRANSFER
}

fn study() -> String {
    let matrix = "matrix: { chunks: [4, 8] }\nparameters: { chunks: \"{{ chunks }}\" }\n";
    let load = "load: { sequence: { sessions: 3 } }\nraw_baseline: true\n";
    let study = STUDY.replace("matrix:\n  users: [10, 20]\n", matrix);
    let from = "load: { users: \"{{ users }}\", ramp: 10s, hold: 4 cycles }\n";
    study.replace(from, load)
}

#[test]
fn a_transfer_follows_the_parameters_of_its_cell() {
    let Ok(LoadedAny::Study(loaded)) = load(study().as_bytes(), workload().as_bytes()) else {
        panic!("the study is right");
    };
    let study = loaded.study;
    let planned = plan(&study, &PlanOptions::default()).unwrap();
    assert!(planned.raw_baseline);
    let mut sizes: Vec<u64> = planned
        .trials
        .iter()
        .map(|trial| {
            let workload = study.workload_with(&trial.parameters).unwrap();
            let transfer = workload.transfer.as_ref().unwrap();
            assert_eq!(
                (transfer.place.as_str(), transfer.chunk_bytes),
                ("files", 1024)
            );
            transfer.bytes
        })
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [4096, 8192]);
    for (users, is_right) in [(1, true), (2, false)] {
        let sequence = format!("sequence: {{ users: {users}, sessions: 3 }}");
        let text = self::study().replace("sequence: { sessions: 3 }", &sequence);
        let loaded = load(text.as_bytes(), workload().as_bytes());
        assert_eq!(loaded.is_ok(), is_right, "{users}");
    }
}

#[test]
fn faults_of_a_raw_baseline() {
    let check = |faults: &[Fault]| {
        snapshot(&study(), faults, |text| {
            load(text.as_bytes(), workload().as_bytes())
        })
    };
    insta::assert_snapshot!(check(&[
        (
            "neither true nor false",
            "raw_baseline: true",
            "raw_baseline: sometimes"
        ),
        (
            "users",
            "load: { sequence: { sessions: 3 } }",
            "load: { users: 3, ramp: 1s, hold: 10s }"
        ),
        (
            "attached",
            "groupware: { http_threads: 4 }",
            "attach: { url: http://localhost }"
        ),
    ]));
}

#[test]
fn faults_of_a_transfer() {
    let check = |faults: &[Fault]| {
        snapshot(&workload(), faults, |text| {
            load(study().as_bytes(), text.as_bytes())
        })
    };
    insta::assert_snapshot!(check(&[
        (
            "none",
            "transfer:\n  place: \"{{ folder }}\"\n  bytes: \"{{ chunks * 1024 }}\"\n  chunk: \"{{ chunk_bytes }}\"\n",
            ""
        ),
        ("no size", "  bytes: \"{{ chunks * 1024 }}\"\n", ""),
        ("nothing", "bytes: \"{{ chunks * 1024 }}\"", "bytes: 0"),
        ("unknown key", "  chunk:", "  chunks:"),
    ]));
}
