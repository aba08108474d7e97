//! Comparisons of load lines: worse, shown not to be, or no answer.

use crate::support::{Made, STUDY, Shape};
use lab_analysis::model::{LineDifference, LoadLine};
use lab_analysis::{Analysis, line_regression};
use lab_comparison::{RunOutcome, compare_runs};
use lab_plan::{HowEnded, SearchEnd};
use lab_stats::isotonic::CONFIDENCE;
use lab_stats::search::{Judgement, Next, Rules, Tried, load_line};

fn line(users: Option<u32>, low: Option<u32>, high: Option<u32>) -> LoadLine {
    LoadLine {
        cell: lab_plan::Cell::new(),
        label: "the only cell".to_owned(),
        users,
        low,
        high,
        confidence: CONFIDENCE,
        resolution: 0.05,
        safe: None,
        thresholds: Vec::new(),
        ceiling: None,
        search: SearchEnd {
            how: HowEnded::Finished,
            users: None,
        },
        finished: true,
        between: None,
        lower_bound: None,
        levels: Vec::new(),
    }
}

fn judged(a: &LoadLine, b: &LoadLine) -> LineDifference {
    line_regression(a, Some(b), 0.02)
}

/// A line of 200 users: 10 fewer don't matter.
#[test]
fn intervals_that_overlap_are_no_answer() {
    let a = line(Some(200), Some(200), Some(204));
    let table = [
        // users, low, high: is it a regression?
        ((Some(200), Some(200), Some(209)), Some(false)),
        ((Some(200), Some(194), Some(209)), Some(false)),
        ((Some(200), Some(193), Some(209)), None),
        ((Some(220), Some(215), Some(230)), Some(false)),
        ((Some(120), Some(60), Some(239)), None),
        ((Some(120), Some(110), Some(130)), Some(true)),
        // Shown to be lower, and not shown to be lower by more than the margin.
        ((Some(196), Some(180), Some(199)), None),
        ((Some(198), Some(196), Some(199)), Some(false)),
        // An end is open, or there is no valid result.
        ((Some(200), None, Some(209)), None),
        ((Some(200), Some(200), None), Some(false)),
        ((None, None, Some(49)), Some(true)),
        ((None, None, None), None),
    ];
    for ((users, low, high), expected) in table {
        let found = judged(&a, &line(users, low, high));
        assert_eq!(found.is_regression, expected, "{users:?} {low:?} {high:?}");
    }
    let wide = line(Some(200), Some(100), None);
    assert_eq!(
        judged(&wide, &a).is_regression,
        None,
        "the baseline's end is open"
    );
    assert_eq!(line_regression(&a, None, 0.02).is_regression, None);
    // A search without a line compares whether as much is sustained.
    let all = LoadLine {
        ceiling: Some("the study asks for no more".to_owned()),
        ..line(Some(200), Some(200), None)
    };
    assert_eq!(judged(&all, &all).is_regression, Some(false));
    let unsure = LoadLine {
        low: Some(100),
        ..all.clone()
    };
    assert_eq!(judged(&all, &unsure).is_regression, None);
}

fn searched(tried: &[(u32, bool)]) -> Analysis {
    let study = STUDY
        .replace("matrix: { users: [100, 200] }\n", "")
        .replace("users: \"{{ users }}\", ", "")
        .replace("published: [load.csv, steps.csv]\n", "")
        .replace(
            "thresholds:\n  response_time: [\"p(95) < 300ms\"]\n  error_rate: [\"rate < 1%\"]\n",
            "find:\n  users: { min: 50, max: 400 }\n  subject_to:\n    response_time: [\"p(95) < 100ms\"]\n",
        );
    let shape = |(_, holds): &(u32, bool)| Shape {
        response_us: if *holds { 10_000 } else { 60_000 },
        ..Shape::default()
    };
    let made = Made {
        study,
        shapes: tried.iter().map(shape).collect(),
        searched: tried.iter().map(|(users, _)| (0, *users)).collect(),
        ..Made::default()
    };
    made.analysis()
}

#[test]
fn the_gate_follows_the_lines() {
    let at = |line: u32, repeats: usize| {
        let mut tried = Vec::new();
        for _ in 0..repeats {
            tried.extend([(line, true), (line + line / 20, false)]);
        }
        searched(&tried)
    };
    let a = at(200, 8);
    let outcome = |b: &Analysis| compare_runs(&a, b).unwrap();
    let same = outcome(&at(200, 8));
    assert_eq!(same.outcome, RunOutcome::Ok, "{}", same.headline);
    assert!(
        same.headline.contains("at most 9.00 users fewer"),
        "{}",
        same.headline
    );
    assert_eq!(outcome(&at(100, 8)).outcome, RunOutcome::Regression);
    let unsure = outcome(&at(200, 2));
    assert_eq!(
        unsure.outcome,
        RunOutcome::TooFewValidTrials,
        "{}",
        unsure.headline
    );
    // A line that is bounded, and not closely enough.
    let mut wide = vec![(120, true); 8];
    wide.extend([(200, true), (210, false)]);
    let wide = outcome(&searched(&wide));
    assert_eq!(wide.outcome, RunOutcome::CouldNotTell, "{}", wide.headline);
    assert!(
        wide.headline
            .starts_with("Could not tell: run b carries at most"),
        "{}",
        wide.headline
    );
    let mut none = at(200, 8);
    none.load_lines.clear();
    let none = outcome(&none);
    assert_eq!(
        none.outcome,
        RunOutcome::TooFewValidTrials,
        "{}",
        none.headline
    );
}

const RULES: Rules = Rules {
    min: 10,
    max: 2_000,
    resolution: 0.05,
    repeats: 8,
    again: 0,
    seed: 1,
    safe: None,
};

/// Random numbers from 0 to 1 by a seed (SplitMix64).
struct Draws(u64);

impl Draws {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A search of a system: half of the trials pass at its line, nearly all far below.
fn search(true_line: f64, draws: &mut Draws) -> LoadLine {
    let mut so_far: Vec<Tried> = Vec::new();
    while let Next::Try(level) = RULES.next(&so_far) {
        let odds = 1.0 / (1.0 + (f64::from(level) / true_line).powf(20.0));
        let judgement = match draws.unit() < odds {
            true => Judgement::Carried,
            false => Judgement::NotCarried,
        };
        so_far.push(Tried { level, judgement });
    }
    let found = load_line(&RULES, &so_far, CONFIDENCE).unwrap();
    let some = |users: u32| (users > 0).then_some(users);
    line(some(found.users), some(found.low), found.high)
}

/// At the margin a system is called not worse in at most one of twenty comparisons.
#[test]
fn non_inferiority_of_lines_holds_its_level() {
    const COMPARISONS: u64 = 400;
    let (mut passed, mut failed, mut shown) = (0, 0, 0);
    for seed in 0..COMPARISONS {
        let mut draws = Draws(seed);
        let a = search(400.0, &mut draws);
        let at_margin = search(400.0 * (1.0 - RULES.resolution), &mut draws);
        let half = search(200.0, &mut draws);
        let double = search(800.0, &mut draws);
        passed += u64::from(judged(&a, &at_margin).is_regression == Some(false));
        failed += u64::from(judged(&a, &half).is_regression == Some(false));
        shown += u64::from(judged(&a, &double).is_regression == Some(false));
    }
    println!(
        "seeds 0..{COMPARISONS}: at the margin {passed} pass, at half {failed}, at double {shown}"
    );
    assert!(passed * 20 <= COMPARISONS, "{passed} of {COMPARISONS}");
    assert_eq!(failed, 0);
    assert!(shown * 10 >= COMPARISONS * 8, "{shown} of {COMPARISONS}");
}
