//! What users share: numbers that nobody else has.

use std::collections::BTreeSet;
use std::time::Duration;

use lab_workload::template::{Escape, Symbols};
use lab_workload::{Request, SharedKind, SharedState, Step, Template, Wait};

use super::drive::workload;
use super::{Answer, drive, ms, simulate};
use crate::drive::Drive;
use crate::part::Part;

const THINKS: Wait = Wait::Constant(Duration::from_millis(10));

/// A step with one request, whose target is this template.
fn step(target: &str, variables: &[String]) -> Step {
    let symbols = Symbols::new(variables);
    let target = Template::parse_with(target, symbols, Escape::None).unwrap();
    Step {
        wait: THINKS,
        ..Step::of("Step", vec![Request::get(target)])
    }
}

/// Users who send a number of a counter with each request, on two workers of the generator with this part.
fn counting(part: Part) -> Drive {
    let mut drive = drive(vec![step("{{ next('order_no') }}", &[])]);
    workload(&mut drive).shared.push(SharedState {
        name: "order_no".to_owned(),
        kind: SharedKind::Counter { from: 100 },
    });
    (drive.users, drive.part, drive.cores) = (12, part, vec![0, 1]);
    drive
}

#[test]
fn numbers_are_unique_over_three_generators_with_two_workers_each() {
    let parts = Part::by_weights(&[1, 1, 1]).unwrap();
    let mut taken = BTreeSet::new();
    for part in parts {
        let told = simulate(counting(part), |_| Answer::After(ms(1)));
        let numbers: Vec<u64> = told
            .rendered
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        // Two users of each worker send every 11 ms.
        assert_eq!(numbers.len(), 4 * 90);
        for number in numbers {
            assert!(taken.insert(number), "{number} was given twice");
        }
    }
    // Each of the six workers has every sixth number from its own first one on, without gaps of its own.
    let expected: BTreeSet<u64> = (0..3 * 4 * 90).map(|number| 100 + number).collect();
    assert_eq!(taken, expected);
}

#[test]
fn generators_of_any_weights_give_different_numbers() {
    let mut taken = BTreeSet::new();
    for part in Part::by_weights(&[3, 1]).unwrap() {
        let told = simulate(counting(part), |_| Answer::After(ms(1)));
        for number in &told.rendered {
            assert!(taken.insert(number.clone()), "{number} was given twice");
        }
    }
    assert_eq!(taken.len(), 12 * 90);
}
