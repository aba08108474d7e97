//! The profile settings of a study.

use crate::faults::{STUDY, WORKLOAD, load};
use lab_study::LoadedAny;
use lab_study::plan::{FramesWanted, PlanOptions, Profiling, WaitsWanted, plan};

/// Returns the plan's profiling settings, or the errors.
fn planned(profile: &str) -> Result<Option<Profiling>, String> {
    let study = format!("{STUDY}profile: {profile}\n");
    match load(study.as_bytes(), WORKLOAD.as_bytes()) {
        Ok(LoadedAny::Study(loaded)) => {
            let plan = plan(&loaded.study, &PlanOptions::default()).unwrap();
            Ok(plan.question.profile)
        }
        Ok(LoadedAny::Workload(_)) => panic!("a study"),
        Err(error) => Err(format!("{:?}", error.problems())),
    }
}

#[test]
fn a_study_says_how_a_profile_is_taken() {
    assert_eq!(planned("false"), Ok(None));
    assert_eq!(planned("true"), Ok(Some(Profiling::default())));
    let all = Profiling {
        rate: Some(199.0),
        frames: FramesWanted::Copies,
        budget: 0.01,
        waits: WaitsWanted::Sleeps,
        idle: vec!["^wait_for_".to_owned(), "Queue::next".to_owned()],
    };
    let written = planned(
        "{ rate: 199, frames: copies, budget: 1%, waits: 1, idle: [ ^wait_for_, Queue::next ] }",
    );
    assert_eq!(written, Ok(Some(all)));
    assert_eq!(planned("{}"), Ok(Some(Profiling::default())));
}

#[test]
fn levels_of_waits_have_names() {
    for (name, level) in [
        ("auto", Some(3)),
        ("off", None),
        ("0", Some(0)),
        ("3", Some(3)),
    ] {
        let written = planned(&format!("{{ waits: {name} }}")).unwrap().unwrap();
        assert_eq!(written.waits.level(), level, "{name}");
    }
}

#[test]
fn faults_of_a_profile() {
    for (wrong, said) in [
        ("sometimes", "neither true nor false"),
        ("{ rate: 0 }", "0"),
        ("{ rate: 99999 }", "99999"),
        ("{ frames: some }", "none of auto, pointers, copies"),
        ("{ budget: 80% }", "80%"),
        ("{ rates: 199 }", "rate"),
        ("{ waits: 2 }", "none of auto, off, 0, 1, 3"),
        ("{ idle: ['('] }", "unclosed group"),
    ] {
        let error = planned(wrong).unwrap_err();
        assert!(error.contains(said), "{wrong}: {error}");
    }
}
