//! Tests of `measure`.

use proptest::prelude::*;

use super::*;

fn measure() -> Measure {
    Measure {
        name: "queue".to_owned(),
        unit: String::new(),
        request: 0,
        slot: 0,
        value: None,
    }
}

#[test]
fn what_is_no_number_from_0_on_is_told() {
    for text in ["", "-1", "NaN", "inf", "1e13", "twelve", "1,5", "0x10"] {
        let told = measure().number(text).unwrap_err();
        assert!(told.contains("`queue`"), "{told}");
    }
    let read = |text| measure().number(text).unwrap();
    assert_eq!(
        (read("0"), read(" 12.5 "), read("1e3")),
        (0, 12_500, 1_000_000)
    );
    assert_eq!((read("-0"), read("1e12")), (0, 1_000_000_000_000_000));
}

proptest! {
    #[test]
    fn numbers_are_kept_to_the_thousandth(value in 0.0f64..1e9) {
        let kept = measure().number(&value.to_string()).unwrap() as f64 / MEASURE_SCALE;
        prop_assert!((kept - value).abs() <= 0.000_51);
    }

    #[test]
    fn whatever_an_answer_holds_is_a_number_or_told(text in "\\PC{0,60}") {
        if let Err(told) = measure().number(&text) {
            prop_assert!(told.chars().count() < 120);
        }
    }
}
