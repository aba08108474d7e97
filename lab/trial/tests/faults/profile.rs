//! Which checks detect which fault of a profile. None makes a trial invalid.

use lab_archive::{Frames, Profiled, SampledBlock, TrialRecord, Warning};
use lab_plan::checks::CheckId;
use lab_trial::model::{CheckOutcome, TrialAnalysis};

use super::generator::study;
use super::{simulated, with};

const CHECKS: [CheckId; 4] = [
    CheckId::ProfileSamples,
    CheckId::ProfileStacks,
    CheckId::ProfileNames,
    CheckId::SamplingCost,
];

/// Returns blocks of a hold from 6 s to 30 s, of two seconds each; a transaction costs `cost` more with sampling.
fn blocks(cost: f64) -> Vec<SampledBlock> {
    let blocks = (0..12u32).map(|at| {
        let from_ms = 6_000.0 + 2_000.0 * f64::from(at);
        let noise = 1.0 + 0.002 * f64::from(at % 3);
        SampledBlock {
            from_ms,
            off_from_ms: from_ms + 1_000.0,
            on_ms: 1_000.0,
            on_cpu_ms: 500.0 * (1.0 + cost) * noise,
            off_ms: 1_000.0,
            off_cpu_ms: 500.0,
        }
    });
    blocks.collect()
}

fn healthy() -> Profiled {
    Profiled {
        rate: 199.0,
        frames: Frames::Copies,
        cores: 2,
        samples: 2_000,
        expected: 2_010.0,
        lost: 2,
        throttled: 0,
        records: 2_100,
        whole: 1_990,
        named: 1_950,
        other_samples: 0,
        cpu_ms: 10_050.0,
        off_seconds: vec![7, 9],
        blocks: Vec::new(),
    }
}

fn judged(change: impl Fn(&mut TrialRecord) + 'static) -> TrialAnalysis {
    let mut made = study("  pace: 6s\n");
    made.overrides
        .push(("profile".to_owned(), "true".to_owned()));
    simulated(&made, Some(6000.0), &with(change))
}

fn profiled(change: impl Fn(&mut Profiled) + 'static) -> TrialAnalysis {
    judged(move |record| {
        let mut profile = healthy();
        change(&mut profile);
        record.profile = Some(profile);
    })
}

fn outcomes(trial: &TrialAnalysis) -> Vec<(CheckId, CheckOutcome)> {
    let checks = trial.checks.iter().filter(|one| CHECKS.contains(&one.id));
    checks.map(|check| (check.id, check.outcome)).collect()
}

fn evidence(trial: &TrialAnalysis, id: CheckId) -> &str {
    let check = trial.checks.iter().find(|check| check.id == id);
    &check.unwrap().evidence
}

#[test]
fn each_fault_of_a_profile_warns_and_none_invalidates() {
    type Change = fn(&mut Profiled);
    let rows: [(&str, Change, &[CheckId]); 11] = [
        ("none", |_| {}, &[]),
        (
            "too few",
            |one| one.samples = 1_400,
            &[CheckId::ProfileSamples],
        ),
        (
            "too many",
            |one| one.expected = 1_400.0,
            &[CheckId::ProfileSamples],
        ),
        (
            "few, as expected",
            |one| {
                (one.samples, one.expected) = (240, 200.0);
                (one.whole, one.named) = (240, 238);
            },
            &[],
        ),
        (
            "few, not by chance",
            |one| {
                (one.samples, one.expected) = (260, 200.0);
                (one.whole, one.named) = (260, 258);
            },
            &[CheckId::ProfileSamples],
        ),
        ("lost", |one| one.lost = 30, &[CheckId::ProfileSamples]),
        (
            "throttled",
            |one| one.throttled = 1,
            &[CheckId::ProfileSamples],
        ),
        ("broken", |one| one.whole = 1_800, &[CheckId::ProfileStacks]),
        (
            "nameless",
            |one| one.named = 1_700,
            &[CheckId::ProfileNames],
        ),
        (
            "costly",
            |one| one.blocks = blocks(0.06),
            &[CheckId::SamplingCost],
        ),
        ("within the budget", |one| one.blocks = blocks(0.01), &[]),
    ];
    for (fault, change, expected) in rows {
        let trial = profiled(change);
        let found = outcomes(&trial);
        assert_eq!(found.len(), 4, "{fault}");
        let warned = found
            .iter()
            .filter(|(_, outcome)| *outcome == CheckOutcome::Warn);
        let warned: Vec<CheckId> = warned.map(|(id, _)| *id).collect();
        assert_eq!(warned, expected, "{fault}: {:?}", trial.checks);
        let invalid = found
            .iter()
            .any(|(_, outcome)| *outcome == CheckOutcome::Invalid);
        assert!(!invalid, "{fault}");
    }
}

#[test]
fn a_study_says_what_sampling_may_cost() {
    let mut made = study("  pace: 6s\n");
    let budget = ("profile".to_owned(), "{ budget: 10% }".to_owned());
    made.overrides.push(budget);
    let change = with(|record| {
        let blocks = blocks(0.06);
        record.profile = Some(Profiled {
            blocks,
            ..healthy()
        });
    });
    let trial = simulated(&made, Some(6000.0), &change);
    let cost = outcomes(&trial)[3];
    assert_eq!(cost, (CheckId::SamplingCost, CheckOutcome::Pass));
    let said = evidence(&trial, CheckId::SamplingCost);
    assert!(said.starts_with("+6."), "{said}");
}

#[test]
fn a_trial_without_its_profile_says_why() {
    let trial = judged(|record| {
        let problem = "the kernel does not let this user sample whole cores".to_owned();
        record.warnings.push(Warning::NotProfiled { problem });
    });
    assert_eq!(
        outcomes(&trial),
        [(CheckId::ProfileSamples, CheckOutcome::Warn)]
    );
    let said = evidence(&trial, CheckId::ProfileSamples);
    assert!(said.contains("does not let this user"), "{said}");
    let trial = judged(|_| {});
    assert_eq!(
        outcomes(&trial),
        [(CheckId::ProfileSamples, CheckOutcome::Warn)]
    );
    let trial = profiled(|one| (one.samples, one.expected, one.lost) = (0, 100.0, 0));
    assert_eq!(
        outcomes(&trial),
        [(CheckId::ProfileSamples, CheckOutcome::Warn)]
    );
    // A profile without samples, of an idle system.
    let trial = profiled(|one| (one.samples, one.expected, one.lost) = (0, 0.0, 0));
    assert_eq!(
        outcomes(&trial),
        [(CheckId::ProfileSamples, CheckOutcome::Pass)]
    );
}
