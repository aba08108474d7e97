//! The profile that a study asks for.

use crate::faults::{STUDY, WORKLOAD, load};
use lab_study::LoadedAny;
use lab_study::plan::{FramesWanted, PlanOptions, Profiling, plan};

/// What the plan says, or what is wrong.
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
    };
    let written = planned("{ rate: 199, frames: copies, budget: 1% }");
    assert_eq!(written, Ok(Some(all)));
    assert_eq!(planned("{}"), Ok(Some(Profiling::default())));
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
    ] {
        let error = planned(wrong).unwrap_err();
        assert!(error.contains(said), "{wrong}: {error}");
    }
}
