//! Tests of `units`.

use super::*;

fn message<T: std::fmt::Debug>(result: Result<T, TextError>) -> String {
    let error = result.unwrap_err();
    format!(
        "{}..{} {error} / {}",
        error.at.start,
        error.at.end,
        error.help.as_deref().unwrap_or_default()
    )
}

#[test]
fn durations_of_k6_may_be_milliseconds() {
    for (text, ms) in [
        ("30s", 30_000),
        ("1m30s", 90_000),
        ("500ms", 500),
        ("1.5h", 5_400_000),
        ("1h.5m", 3_630_000),
        ("1d", 86_400_000),
        ("250", 250),
    ] {
        assert_eq!(k6_duration(text), Some(Duration::from_millis(ms)), "{text}");
    }
    for bad in ["", "1x", "s", "-1s", "-1", "1e300", "inf", "NaN"] {
        assert_eq!(k6_duration(bad), None, "{bad}");
    }
}

#[test]
fn durations_have_units() {
    let check = |text: &str, ms: u64| {
        assert_eq!(
            duration(text, MAX_WAIT).unwrap(),
            Duration::from_millis(ms),
            "{text}"
        );
    };
    check("250ms", 250);
    check("15s", 15_000);
    check("1.5 s", 1_500);
    check("12m", 720_000);
    check("1h30m", 5_400_000);
    check("0s", 0);
    for bad in [
        "",
        "15",
        "s",
        "-5s",
        "5 parsecs",
        "1e400s",
        "..",
        "5s5",
        "NaNs",
    ] {
        assert!(duration(bad, MAX_WAIT).is_err(), "{bad}");
    }
    assert!(duration("25h", MAX_WAIT).is_err());
}

#[test]
fn waits_are_ranges_constants_and_distributions() {
    let seconds = Duration::from_secs;
    assert_eq!(
        wait("5s..15s").unwrap(),
        Wait::Uniform(seconds(5), seconds(15))
    );
    assert_eq!(wait("10s").unwrap(), Wait::Constant(seconds(10)));
    assert_eq!(wait("0s").unwrap(), Wait::None);
    assert_eq!(wait("none").unwrap(), Wait::None);
    assert_eq!(
        wait("exponential(10s)").unwrap(),
        Wait::Exponential(seconds(10))
    );
    assert_eq!(
        wait("lognormal(10s, 0.5)").unwrap(),
        Wait::Lognormal(seconds(10), 0.5)
    );
    insta::assert_snapshot!(message(wait("15s..5s")), @"0..7 the range begins at 15s and ends before it, at 5s / did you mean `5s..15s`?");
    insta::assert_snapshot!(message(wait("5s..15")), @"4..6 `15` has no unit / write a number and a unit: `250ms`, `15s`, `12m`, `1h30m`");
    insta::assert_snapshot!(message(wait("exponentail(1s)")), @"0..15 there is no distribution `exponentail` / did you mean `exponential`?");
}

#[test]
fn sizes_and_statuses() {
    assert_eq!(size("30 MB", u64::MAX).unwrap(), 30_000_000);
    assert_eq!(size("64KiB", u64::MAX).unwrap(), 65_536);
    assert!(size("lots", u64::MAX).is_err());
    assert_eq!(statuses("201").unwrap(), 201..=201);
    assert_eq!(statuses("2xx").unwrap(), 200..=299);
    assert_eq!(statuses("200..204").unwrap(), 200..=204);
    for bad in ["", "99", "600", "204..200", "9xx", "ok"] {
        assert!(statuses(bad).is_err(), "{bad}");
    }
}
