//! Plans of duets: two concurrent trials, each side equally often with each variant; and studies that can't
//! run as duets.

use crate::faults::{Fault, WORKLOAD, load, snapshot};
use lab_plan::Side;
use lab_study::model::{Level, VARIANT};
use lab_study::plan::{Plan, PlanOptions, Trial, plan};
use lab_study::{Files, Study, load_study};

const STUDY: &str = "\
study: pages
title: Two variants at once
workload: pages
matrix:
  users: [10, 20]
variants:
  old: { command: { start: [server, \"{{ port }}\"] } }
  new: { command: { start: [server, \"{{ port }}\", --new] } }
load: { users: \"{{ users }}\", ramp: 10s, hold: 4 cycles }
trials: 9
duet: true
";

/// Of the study.
const VARIANTS: &str = "\
variants:
  old: { command: { start: [server, \"{{ port }}\"] } }
  new: { command: { start: [server, \"{{ port }}\", --new] } }
";

struct Folder;

impl Files for Folder {
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
        Ok(match path.ends_with(".study.yaml") {
            true => STUDY.as_bytes().to_vec(),
            false => WORKLOAD.as_bytes().to_vec(),
        })
    }
}

fn planned(seed: u64) -> Plan {
    let study = load_study("s.study.yaml", &Folder, &[]).unwrap().study;
    let options = PlanOptions {
        speed: 1.0,
        seed: Some(seed),
    };
    plan(&study, &options).unwrap()
}

fn is_new(trial: &Trial) -> bool {
    trial.cell[VARIANT] == Level::Text("new".to_owned())
}

#[test]
fn partners_stand_next_to_each_other_and_differ_in_the_variant_alone() {
    for seed in 1..20 {
        let plan = planned(seed);
        assert_eq!(plan, planned(seed));
        assert!(plan.question.duet && plan.trials.len() == 36);
        for pair in plan.trials.chunks(2) {
            let [left, right] = pair else {
                panic!("{pair:?}")
            };
            let sides = [left, right].map(|trial| trial.duet.expect("a duet"));
            assert_eq!((sides[0].side, sides[0].partner), (Side::Left, right.id));
            assert_eq!((sides[1].side, sides[1].partner), (Side::Right, left.id));
            assert_eq!(left.block, right.block);
            assert_eq!(left.cell["users"], right.cell["users"]);
            assert_ne!(is_new(left), is_new(right));
            // Both send the same.
            assert_eq!(left.prediction, right.prediction);
        }
    }
}

#[test]
fn both_share_the_cores_unless_they_are_kept_apart() {
    assert!(!planned(1).question.apart);
    let overrides = [("duet".to_owned(), "apart".to_owned())];
    let study = load_study("s.study.yaml", &Folder, &overrides)
        .unwrap()
        .study;
    assert!(study.duet && study.apart);
    let options = PlanOptions {
        speed: 1.0,
        seed: Some(1),
    };
    let apart = plan(&study, &options).unwrap();
    assert!(apart.question.duet && apart.question.apart);
    assert_eq!(apart.trials, planned(1).trials);
}

#[test]
fn sides_are_drawn_by_lot_in_equal_shares() {
    let mut lots = std::collections::BTreeSet::new();
    for seed in 1..40 {
        let plan = planned(seed);
        let lefts = plan.trials.iter().step_by(2);
        let of_block: Vec<(u32, bool)> = lefts.map(|left| (left.block, is_new(left))).collect();
        // The same for all pairs of a block: labels are permuted for all of them together.
        for two in of_block.windows(2).filter(|two| two[0].0 == two[1].0) {
            assert_eq!(two[0].1, two[1].1);
        }
        let lot: Vec<bool> = of_block.iter().step_by(2).map(|(_, new)| *new).collect();
        assert_eq!(lot.iter().filter(|new| **new).count(), 4, "of nine");
        lots.insert(lot);
    }
    assert!(lots.len() > 20, "{}", lots.len());
}

#[test]
fn what_runs_alone_is_no_duet() {
    let one = "  new: { command: { start: [server, \"{{ port }}\", --new] } }\n";
    let new = "new: { command: { start: [server, \"{{ port }}\", --new] } }";
    let faults: &[Fault] = &[
        ("one variant", one, ""),
        ("no switch", "duet: true", "duet: both"),
        ("with a control", "duet: true", "duet: true\ncontrol: true"),
        ("more generators", "ramp: 10s,", "ramp: 10s, generators: 2,"),
        (
            "attached",
            new,
            "new: { attach: { url: \"http://localhost:80\" } }",
        ),
        ("cores", "--new] } }", "--new] }, cpus: 1 }"),
        (
            "kernel settings that differ",
            "--new] } }",
            "--new] }, kernel: { vm.swappiness: 10 } }",
        ),
        (
            "left out",
            "  users: [10, 20]\n",
            "  users: [10, 20]\n  exclude: [{ variant: new, users: 10 }]\n",
        ),
    ];
    let both = "variants:\n  old: { command: { start: [server], port: 8080 } }\n  new: { command: { start: [server, --new], port: 8080 } }\n";
    let ports: &[Fault] = &[("one port", VARIANTS, both)];
    let read = |text: &str| load(text.as_bytes(), WORKLOAD.as_bytes());
    insta::assert_snapshot!(format!(
        "{}{}",
        snapshot(STUDY, faults, read),
        snapshot(STUDY, ports, read)
    ));
}

/// Two variants and nothing else.
const TWO: &str = "\
study: pages
title: Two variants
workload: pages
variants:
  old: { command: { start: [server, \"{{ port }}\"] } }
  new: { command: { start: [server, \"{{ port }}\", --new] } }
load: { users: 10, ramp: 10s, hold: 4 cycles }
trials: 8
";

struct Text<'a>(&'a str);

impl Files for Text<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
        Ok(match path.ends_with(".study.yaml") {
            true => self.0.as_bytes().to_vec(),
            false => WORKLOAD.as_bytes().to_vec(),
        })
    }
}

fn study_of(text: &str) -> Study {
    load_study("s.study.yaml", &Text(text), &[]).unwrap().study
}

#[test]
fn auto_is_a_duet_where_two_variants_are_all_that_is_compared() {
    let of = study_of;
    let both = "  old: { command: { start: [server], port: 8080 } }\n  new: { command: { start: [server, --new], port: 8080 } }\n";
    let own_ports = both.replacen("8080", "8081", 1);
    let variants = &VARIANTS["variants:\n".len()..];
    // The replaced text of the study, whether it is a duet then, and a part of the reason.
    let cases: &[(&str, &str, bool, &str)] = &[
        ("", "", true, "nothing in the study keeps them"),
        (
            "trials: 8",
            "trials: 8\nduet: auto",
            true,
            "nothing in the study keeps them",
        ),
        (
            "trials: 8",
            "trials: 8\nthresholds: { error_rate: [\"rate < 1%\"] }",
            true,
            "nothing",
        ),
        (variants, &own_ports, true, "nothing"),
        (
            "trials: 8",
            "trials: 7",
            false,
            "needs 8 blocks, and the study has 7 blocks",
        ),
        ("trials: 8\n", "", false, "1 block"),
        (
            variants,
            both,
            false,
            "both systems of a duet listen on port 8080",
        ),
        (
            "trials: 8",
            "trials: 8\nthresholds: { response_time: [\"p(95) < 1s\"] }",
            false,
            "p(95) < 1s",
        ),
        (
            "trials: 8",
            "trials: 8\nabort_on: [response_time p(95) > 2s]",
            false,
            "`abort_on`",
        ),
        (
            "trials: 8",
            "trials: 8\nabort_on: [error_rate > 20%]",
            true,
            "nothing",
        ),
        ("users: 10,", "users: \"{{ n }}\",", false, "levels of `n`"),
        (
            "trials: 8",
            "trials: 8\ncontrol: true",
            false,
            "no control beside it",
        ),
        (
            "--new] } }",
            "--new] }, kernel: { vm.swappiness: 10 } }",
            false,
            "kernel",
        ),
        (
            "trials: 8",
            "trials: 8\nduet: false",
            false,
            "the study says `duet: false`",
        ),
    ];
    for (from, to, expected, why) in cases {
        let mut text = TWO.replacen(from, to, usize::from(!from.is_empty()));
        if to.contains("{{ n }}") {
            text.push_str("matrix: { n: [1, 2] }\n");
        }
        let study = of(&text);
        let pairing = study.pairing.as_ref().expect("two variants");
        assert_eq!(study.duet, *expected, "{text}\n{pairing:?}");
        assert!(pairing.why.contains(why), "{text}\n{pairing:?}");
        assert_eq!(pairing.auto, !to.contains("duet: false"), "{text}");
        let plan = plan(&study, &PlanOptions::default()).unwrap();
        assert_eq!(plan.question.pairing, study.pairing);
        assert_eq!(
            plan.trials.iter().all(|trial| trial.duet.is_some()),
            *expected
        );
    }
    // Three variants, or one system, leave nothing to choose.
    let third = format!("{variants}  third: {{ groupware: {{}} }}\n");
    let three = of(&TWO.replacen(variants, &third, 1));
    assert!(!three.duet && three.pairing.is_none());
}

#[test]
fn a_study_put_in_sequence_has_the_same_trials_one_by_one() {
    let mut study = study_of(TWO);
    study.put_in_sequence("there is one core".to_owned());
    let plan = plan(&study, &PlanOptions::default()).unwrap();
    assert!(!plan.question.duet && plan.trials.len() == 16);
    assert!(plan.trials.iter().all(|trial| trial.duet.is_none()));
    assert!(plan.question.pairing.is_some_and(|pairing| pairing.auto));
}
