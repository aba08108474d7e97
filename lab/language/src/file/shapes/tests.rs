//! Tests of `shapes`.

use std::time::Duration;

use regex::Regex;

use super::*;
use crate::units;

fn pattern<T: JsonSchema>() -> Regex {
    let schema = schemars::schema_for!(T).to_value();
    Regex::new(schema["pattern"].as_str().unwrap()).unwrap()
}

/// Checks that the pattern accepts exactly the texts that the parser accepts.
#[track_caller]
fn agree<T: JsonSchema>(texts: &[&str], reads: impl Fn(&str) -> bool) {
    let pattern = pattern::<T>();
    let mut read = 0;
    for text in texts {
        let is_read = reads(text);
        read += usize::from(is_read);
        assert_eq!(pattern.is_match(text), is_read, "{text}");
    }
    assert!(read > 0 && read < texts.len(), "both sides are tried");
    assert!(pattern.is_match("{{ x }}") && pattern.is_match("1{% if x %}0{% endif %}s"));
}

const MOST: Duration = Duration::from_secs(86_400 * 365);

#[test]
fn patterns_know_the_units_that_the_parsers_know() {
    let times = [
        "10s",
        "1h30m",
        "1.5 s",
        "250us",
        "2min",
        "3 d",
        " 5s ",
        "",
        "10",
        "2sec",
        "5 seconds",
        "s",
        "-5s",
        "1m 30",
        "4 cycles",
        "1 cycle",
        "x cycles",
        "one",
    ];
    agree::<Time>(&times, |text| units::duration(text, MOST).is_ok());
    agree::<HoldTime>(&times, |text| units::hold(text, MOST).is_ok());
    let waits = [
        "none",
        "5s..15s",
        "5s .. 1m30s",
        "10s",
        "exponential(10s)",
        "lognormal(10s, 0.5)",
        "exponential(10)",
        "5..15s",
        "uniform(1s, 2s)",
        "lognormal(10s)",
        "soon",
    ];
    agree::<WaitTime>(&waits, |text| units::wait(text).is_ok());
    let rates = [
        "1000/s", "60/min", "5 / h", "0.5/s", "1000", "10/sec", "/s", "ten/s",
    ];
    agree::<Rate>(&rates, |text| units::rate(text).is_ok());
    let sizes = [
        "4096", "64 KiB", "30MB", "1.5 GB", "2 kb", "10 bytes", "MB", "12 TB",
    ];
    agree::<SizeText>(&sizes, |text| units::size(text, u64::MAX).is_ok());
    agree::<CountText>(&["12", " 7 ", "one", "1.5", "-3", ""], |text| {
        units::whole_number(text, 0..=u64::MAX).is_ok()
    });
}
