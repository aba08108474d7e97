//! Profiles with a known truth: a server of forty equal functions, `main` → `serve` → `handle` → `work_0` … `work_39`,
//! each a third of its own code and two thirds in `mixing`.

use lab_profile::Key;
use lab_profile::columns::{Names, Sampled};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Rules, Sides, compare};
use crate::model::{Difference, ProfileDifference, SamplesOf};

const SEED: u64 = 20_261_130;
const RULES: Rules<'_> = Rules {
    seed: SEED,
    smallest: 0.02,
    swapped: None,
};
/// CPU time of one of the functions per transaction.
const US: f64 = 8.8;

/// A stack, its functions separated by spaces, and its CPU time per transaction.
type Truth = Vec<(String, f64)>;

fn forty() -> Truth {
    let work = |n: usize| {
        let path = format!("main serve handle work_{n}");
        [
            (path.clone(), US / 3.0),
            (format!("{path} mixing"), US * 2.0 / 3.0),
        ]
    };
    (0..40).flat_map(work).collect()
}

/// `truth` with other times for the stacks that contain `name`.
fn scaled(truth: &Truth, name: &str, factor: f64) -> Truth {
    let of = |(stack, us): &(String, f64)| {
        let is_part = stack.split(' ').any(|function| function == name);
        (stack.clone(), if is_part { factor * us } else { *us })
    };
    truth.iter().map(of).collect()
}

fn renamed(truth: &Truth, from: &str, to: &str) -> Truth {
    let of = |stack: &str| -> String {
        let functions = stack
            .split(' ')
            .map(|name| if name == from { to } else { name });
        let kept = functions.filter(|name| !name.is_empty());
        kept.collect::<Vec<_>>().join(" ")
    };
    truth.iter().map(|(stack, us)| (of(stack), *us)).collect()
}

struct Lab {
    names: Names,
    random: Xoshiro256PlusPlus,
}

impl Lab {
    fn new(seed: u64) -> Self {
        println!("seed {seed}");
        Self {
            names: Names::default(),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// A count with this mean, by its waiting times.
    fn count(&mut self, mean: f64) -> u32 {
        let (mut time, mut count) = (0.0, 0);
        loop {
            let unit =
                (f64::from((self.random.next_u64() >> 33) as u32) + 0.5) / f64::from(1_u32 << 31);
            time -= unit.ln();
            if time > mean {
                return count;
            }
            count += 1;
        }
    }

    /// A trial with this many samples per microsecond of a transaction; everything takes `factor` times as long.
    fn trial(&mut self, truth: &Truth, samples_per_us: f64, factor: f64) -> Sampled {
        let ns = 1e3 / samples_per_us;
        let (mut stacks, mut samples) = (Vec::new(), 0);
        for (stack, us) in truth {
            let count = self.count(us * factor * samples_per_us);
            let key = |name: &str| Key {
                name: name.to_owned(),
                file: String::new(),
            };
            let functions = stack.split(' ').map(|name| self.names.position(key(name)));
            let functions = functions.collect();
            samples += u64::from(count);
            if count > 0 {
                stacks.push((functions, u64::from(count) * ns as u64));
            }
        }
        // The system's CPU time is counted by the kernel, not by samples.
        let us = truth.iter().map(|(_, us)| us).sum::<f64>();
        Sampled {
            us_per_transaction: us * factor,
            samples,
            stacks,
            unnamed_ns: 0,
        }
    }

    /// The difference of two truths over this many blocks; `factor` gives that of each trial.
    fn study(
        &mut self,
        (a, b): (&Truth, &Truth),
        blocks: usize,
        factor: impl Fn(usize, bool) -> f64,
    ) -> ProfileDifference {
        let samples_per_us = 2_500.0 / 352.0;
        let trials: Vec<(Sampled, Sampled)> = (0..blocks)
            .map(|block| {
                let one = self.trial(a, samples_per_us, factor(block, false));
                (one, self.trial(b, samples_per_us, factor(block, true)))
            })
            .collect();
        let sides = Sides {
            a: "before",
            b: "after",
            blocks: trials.iter().map(|(a, b)| Some((a, b))).collect(),
        };
        let mut found = compare(&[sides], &self.names, RULES);
        assert_eq!(found.len(), 1);
        let found = found.remove(0);
        println!("{}", found.sentences.join("\n"));
        found
    }
}

fn steady(_: usize, _: bool) -> f64 {
    1.0
}

#[test]
fn names_the_function_its_caller_and_its_parts() {
    let before = forty();
    let after = scaled(&before, "work_17", 3.0);
    let found = Lab::new(SEED).study((&before, &after), 8, steady);
    assert_eq!(found.findings.len(), 1, "{:#?}", found.findings);
    let one = &found.findings[0];
    assert_eq!(
        (one.function.as_str(), one.of),
        ("work_17", SamplesOf::Total)
    );
    assert_eq!(one.called_by.as_deref(), Some("handle"));
    let (low, high) = one.us_interval.unwrap();
    assert!(low < 2.0 * US && 2.0 * US < high, "{low} {high}");
    assert!((one.own_part - 1.0 / 3.0).abs() < 0.1);
    assert_eq!(one.callees[0].function, "mixing");
    assert!(one.p <= 0.05);
    let path = ["main", "serve", "handle", "work_17"];
    assert!(
        found
            .paths
            .iter()
            .any(|one| one.path == path && one.us > 0.0)
    );
    assert_eq!(found.rest.unwrap().verdict, Difference::Equal);
    assert!(
        found.sentences[0].starts_with("CPU time per transaction, after against before: +5."),
        "{:?}",
        found.sentences
    );
    assert!(found.sentences[1].contains("`work_17`, called by `handle`; "));
    assert!(found.common.is_none() && found.moved.is_empty());
}

#[test]
fn trials_that_differ_as_a_whole_hide_nothing() {
    let before = forty();
    let after = scaled(&before, "work_17", 3.0);
    let factor = |block: usize, is_b: bool| {
        let n = (7 * block + 3 * usize::from(is_b)) % 5;
        0.7 + 0.15 * f64::from(u32::try_from(n).unwrap())
    };
    let found = Lab::new(SEED).study((&before, &after), 8, factor);
    assert_eq!(found.findings.len(), 1);
    assert_eq!(found.findings[0].function, "work_17");
    assert_eq!(found.rest.unwrap().verdict, Difference::CouldNotTell);
    assert!(
        found
            .sentences
            .iter()
            .any(|one| one.contains("could not tell"))
    );
}

#[test]
fn what_all_functions_share_is_no_function() {
    let before = forty();
    let factor = |_: usize, is_b: bool| if is_b { 1.1 } else { 1.0 };
    let found = Lab::new(SEED).study((&before, &before), 8, factor);
    assert!(found.findings.is_empty());
    let common = found.common.unwrap();
    assert!((common.ratio - 1.1).abs() < 0.03, "{common:?}");
    assert!(
        found
            .sentences
            .iter()
            .any(|one| one.contains("This points to the machine, the build"))
    );
}

#[test]
fn equal_variants_have_no_finding() {
    let mut shown = 0;
    let mut lab = Lab::new(SEED);
    for _ in 0..20 {
        let found = lab.study((&forty(), &forty()), 8, steady);
        shown += usize::from(!found.findings.is_empty());
        assert!(
            found
                .detectable
                .is_some_and(|part| (0.004..0.008).contains(&part))
        );
    }
    // Four of twenty have a chance of 1.6 % where one in twenty is expected.
    assert!(shown <= 3, "{shown} of 20");
}

#[test]
fn two_changes_are_two_findings() {
    let before = forty();
    let after = scaled(&scaled(&before, "work_3", 3.0), "work_17", 0.0);
    let found = Lab::new(SEED).study((&before, &after), 8, steady);
    let mut names: Vec<(&str, bool)> = found
        .findings
        .iter()
        .map(|one| (one.function.as_str(), one.us > 0.0))
        .collect();
    names.sort_unstable();
    // The two have opposite signs under one caller, but the increase of one is not the decrease of the other.
    assert_eq!(names, [("work_17", false), ("work_3", true)]);
}

#[test]
fn a_renamed_function_moved() {
    let before = forty();
    let after = renamed(&before, "work_17", "work_seventeen");
    let found = Lab::new(SEED).study((&before, &after), 8, steady);
    assert!(found.findings.is_empty(), "{:#?}", found.findings);
    assert_eq!(found.moved.len(), 1);
    let moved = &found.moved[0];
    assert_eq!(
        (moved.from.as_str(), moved.to.as_str()),
        ("work_17", "work_seventeen")
    );
    assert_eq!(moved.within, "handle");
    assert_eq!(found.rest.unwrap().verdict, Difference::Equal);
}

#[test]
fn an_inlined_function_moved() {
    let mut before = forty();
    before.push(("main serve handle".to_owned(), US));
    let own = |(stack, _): &(String, f64)| !stack.ends_with("work_17 mixing");
    let before: Truth = before.into_iter().filter(own).collect();
    let before = scaled(&before, "work_17", 3.0);
    let after = renamed(&before, "work_17", "");
    let found = Lab::new(SEED).study((&before, &after), 8, steady);
    assert!(found.findings.is_empty(), "{:#?}", found.findings);
    let moved = &found.moved[0];
    assert_eq!(
        (moved.from.as_str(), moved.to.as_str()),
        ("work_17", "handle")
    );
}

#[test]
fn five_blocks_say_nothing_of_functions() {
    let before = forty();
    let after = scaled(&before, "work_17", 3.0);
    let found = Lab::new(SEED).study((&before, &after), 5, steady);
    assert!(found.findings.is_empty() && found.rest.is_none() && found.detectable.is_none());
    assert_eq!(found.tested, 0);
    assert!(
        found.sentences[1].contains("only 5 blocks have a valid profile of both cells"),
        "{:?}",
        found.sentences
    );
}

#[test]
fn a_block_without_one_of_them_is_left_out() {
    let mut lab = Lab::new(SEED);
    let (before, after) = (forty(), scaled(&forty(), "work_17", 3.0));
    let trials: Vec<(Sampled, Sampled)> = (0..8)
        .map(|_| (lab.trial(&before, 7.0, 1.0), lab.trial(&after, 7.0, 1.0)))
        .collect();
    let sides = |missing: &[usize]| Sides {
        a: "before",
        b: "after",
        blocks: (0..8)
            .map(|block| (!missing.contains(&block)).then(|| (&trials[block].0, &trials[block].1)))
            .collect(),
    };
    let none: Vec<usize> = (0..8).collect();
    let pairs = [sides(&[2]), sides(&none), sides(&[0, 1, 2])];
    let found = compare(&pairs, &lab.names, RULES);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].blocks, found[1].blocks), (7, 5));
    assert_eq!(found[0].findings[0].function, "work_17", "{:#?}", found[0]);
    assert!(found[1].reason.is_some());
}

/// Of twenty studies, at least 18 find the function that differs, and at most 3 name another one.
#[test]
fn twenty_studies_name_one_function_each() {
    let mut lab = Lab::new(SEED);
    let (before, after) = (forty(), scaled(&forty(), "work_17", 3.0));
    let (mut found, mut covered, mut another) = (0, 0, 0);
    for study in 0..20 {
        let factor = |block: usize, is_b: bool| {
            let n = (7 * block + 3 * usize::from(is_b) + study * (11 + block)) % 5;
            0.96 + 0.02 * f64::from(u32::try_from(n).unwrap())
        };
        let difference = lab.study((&before, &after), 8, factor);
        for one in &difference.findings {
            let (low, high) = one.us_interval.unwrap();
            let is_it = one.function == "work_17";
            found += usize::from(is_it);
            covered += usize::from(is_it && low < 2.0 * US && 2.0 * US < high);
        }
        another += usize::from(
            difference
                .findings
                .iter()
                .any(|one| one.function != "work_17"),
        );
    }
    println!("{found} found, {covered} in the interval, {another} with another function, of 20");
    assert!(found >= 18 && covered >= 17 && another <= 3);
}

/// Line tables name what was inlined, so that one loop is several functions that all others have as well.
#[test]
fn inlined_helpers_are_parts_of_the_function() {
    let work = |n: usize| {
        let path = format!("main serve handle work_{n}");
        [
            (format!("{path} multiply"), US / 4.0),
            (format!("{path} mixing multiply"), US / 4.0),
            (format!("{path} mixing rotate"), US / 2.0),
        ]
    };
    let before: Truth = (0..40).flat_map(work).collect();
    let after = scaled(&before, "work_17", 3.0);
    let mut lab = Lab::new(SEED);
    let mut alone = 0;
    for _ in 0..20 {
        let found = lab.study((&before, &after), 8, steady);
        let names: Vec<&str> = found
            .findings
            .iter()
            .map(|one| one.function.as_str())
            .collect();
        alone += usize::from(names == ["work_17"]);
    }
    assert!(alone >= 17, "{alone} of 20");
}
