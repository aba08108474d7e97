//! `duet: auto`: decides whether two variants fit on this machine at once, before a run and after its first blocks.
//! Pure, except [`settle`], which reads the machine. It does not know how a trial runs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lab_host::cores;
use lab_study::model::Pairing;
use lab_study::plan::{Plan, PlanError, PlanOptions, plan};

use crate::ConductError;
use crate::judged::Judged;
use crate::preflight;
use crate::request::RunRequest;

/// The plan of an archive.
const PLAN: &str = "plan.json";
/// Number of blocks that confirm whether both fit.
const CONFIRMING: usize = 2;
/// Part of the CPU of the shared cores above which the variants compete.
const CROWDED: f64 = 0.7;

/// Returns true if `duet: auto` runs the variants of a plan side by side.
pub(crate) fn is_auto(plan: &Plan) -> bool {
    let pairing = plan.question.pairing.as_ref();
    plan.question.duet && pairing.is_some_and(|pairing| pairing.auto)
}

/// Changes a request with `duet: auto` to sequential variants if this machine, or its load generators, has no room for
/// both.
///
/// # Errors
/// [`PlanError`]: none if the plan was made from this study.
pub fn settle(request: &mut RunRequest) -> Result<(), PlanError> {
    if !is_auto(&request.plan) {
        return Ok(());
    }
    match obstacle(request) {
        Some(why) => put_in_sequence(request, why),
        None => Ok(()),
    }
}

/// Why both can't run at once here, if so.
fn obstacle(request: &RunRequest) -> Option<String> {
    if request.generators.is_some() {
        return Some("agents drive the load".to_owned());
    }
    let cores = cores::allowed().unwrap_or_default();
    if cores::halves(&cores, &cores::siblings).is_none() {
        return Some("this machine has one core".to_owned());
    }
    let problems = preflight::check(&request.plan, &request.out);
    let of_both = problems.iter().find(|problem| problem.partner.is_some())?;
    Some(of_both.to_string())
}

/// Changes the request to sequential variants.
pub(crate) fn put_in_sequence(request: &mut RunRequest, why: String) -> Result<(), PlanError> {
    request.loaded.study.put_in_sequence(why);
    let options = PlanOptions {
        speed: request.plan.speed,
        seed: Some(request.plan.seed),
    };
    request.plan = plan(&request.loaded.study, &options)?;
    Ok(())
}

/// The same request with sequential variants, in the existing archive.
pub(crate) fn again(request: &RunRequest, why: String) -> Result<RunRequest, ConductError> {
    let mut again = request.clone();
    put_in_sequence(&mut again, why)
        .map_err(|error| ConductError::Unsupported(error.to_string()))?;
    again.resume = true;
    Ok(again)
}

/// The request to resume a run: with sequential variants if its archive has them.
pub(crate) fn resumed(request: &RunRequest) -> Result<Cow<'_, RunRequest>, ConductError> {
    let kept = || {
        let bytes = std::fs::read(request.out.join(PLAN)).ok()?;
        let plan: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        let question = &plan["question"];
        let pairing: Pairing = serde_json::from_value(question["pairing"].clone()).ok()?;
        let in_sequence = pairing.auto && question["duet"].as_bool() != Some(true);
        in_sequence.then_some(pairing.why)
    };
    match kept().filter(|_| request.resume && is_auto(&request.plan)) {
        Some(why) => again(request, why).map(Cow::Owned),
        None => Ok(Cow::Borrowed(request)),
    }
}

/// The first blocks of a run with `duet: auto`, which confirm whether two trials at once fit.
#[derive(Debug, Default)]
pub(crate) struct FirstBlocks {
    /// Number of remaining blocks.
    left: usize,
    /// CPU of the crowded ones, as a part of the shared cores.
    crowded: Vec<f64>,
}

impl FirstBlocks {
    /// The blocks of a plan after the archived pairs: a resumed run never drops those.
    pub(crate) fn of(plan: &Plan, archived: &BTreeMap<u32, Vec<(u32, Judged)>>) -> Self {
        let last = archived.values().filter_map(|attempts| attempts.last());
        let seen = last.filter(|(_, pair)| !pair.may_be_repeated()).count();
        let left = match is_auto(plan) {
            true => CONFIRMING.saturating_sub(seen),
            false => 0,
        };
        Self {
            left,
            crowded: Vec::new(),
        }
    }

    /// Records a pair; returns the reason once it is certain that two at once don't fit. A disturbance from outside is
    /// no evidence, and the pair is repeated. A system that failed under load is evidence about that system, which the
    /// run must keep.
    pub(crate) fn learn(&mut self, pair: &Judged) -> Option<String> {
        if self.left == 0 || pair.may_be_repeated() {
            return None;
        }
        self.left -= 1;
        if pair.system_failed && !pair.before_load {
            self.left = 0;
            return None;
        }
        if !pair.is_valid() {
            let check = pair.failed.first();
            let what = check.map_or_else(
                || "a system failed".to_owned(),
                |check| format!("{}: {}", check.name, check.evidence),
            );
            let line = what.lines().next().unwrap_or_default();
            return Some(format!(
                "side by side, a pair of trials was invalid ({line})"
            ));
        }
        self.crowded.extend(pair.cpu.filter(|part| *part > CROWDED));
        (self.crowded.len() == CONFIRMING).then(|| {
            let least = self.crowded.iter().copied().fold(1.0, f64::min);
            format!(
                "in the first {CONFIRMING} blocks both together took {:.0} % or more of the CPU of their cores",
                least * 100.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid(cpu: Option<f64>) -> Judged {
        Judged {
            cpu,
            ..Judged::default()
        }
    }

    fn failed(before_load: bool) -> Judged {
        Judged {
            system_failed: true,
            before_load,
            ..Judged::default()
        }
    }

    fn why(pairs: &[Judged]) -> Option<String> {
        let mut first = FirstBlocks {
            left: CONFIRMING,
            ..FirstBlocks::default()
        };
        pairs.iter().find_map(|pair| first.learn(pair))
    }

    #[test]
    fn two_crowded_blocks_end_a_duet_and_one_does_not() {
        let (free, full) = (valid(Some(0.4)), valid(Some(0.9)));
        let found = why(&[full.clone(), valid(Some(0.8))]).unwrap();
        assert!(found.contains("80 %"), "{found}");
        assert_eq!(
            why(&[full.clone(), free.clone(), full.clone(), full.clone()]),
            None
        );
        assert_eq!(why(&[free.clone(), free, full.clone(), full]), None);
        assert_eq!(why(&[valid(None), valid(None)]), None);
    }

    #[test]
    fn a_pair_that_does_not_fit_ends_a_duet_and_a_disturbed_one_does_not() {
        let (own, outside) = (
            Judged::made_up("waits", false),
            Judged::made_up("other", true),
        );
        assert!(why(std::slice::from_ref(&own)).unwrap().contains("waits"));
        assert!(why(&[failed(true)]).unwrap().contains("a system failed"));
        assert_eq!(why(&[outside.clone(), outside.clone(), outside]), None);
        // Later blocks don't count.
        assert_eq!(why(&[valid(None), valid(None), own]), None);
    }

    /// A restart would drop the failure, and a build that fails now and then would pass.
    #[test]
    fn a_failure_under_load_is_kept() {
        assert_eq!(why(&[failed(false)]), None);
        assert_eq!(why(&[failed(false), Judged::made_up("waits", false)]), None);
        assert_eq!(why(&[valid(None), failed(false)]), None);
    }
}
