//! Tests of `nearest`.

use super::*;

#[test]
fn a_slip_finds_its_name_and_nonsense_finds_none() {
    let names = ["users", "ramp", "hold", "thresholds"];
    assert_eq!(nearest("user", &names), Some("users"));
    assert_eq!(nearest("treshold", &names), Some("thresholds"));
    assert_eq!(nearest("xyzzy", &names), None);
}

#[test]
fn lists_read_as_prose() {
    assert_eq!(one_of(&["a"]), "`a`");
    assert_eq!(one_of(&["a", "b"]), "`a` and `b`");
    assert_eq!(one_of(&["a", "b", "c"]), "`a`, `b`, and `c`");
    let many: Vec<String> = (0..70).map(|n| format!("n{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(one_of(&many[..60]).ends_with("`n58`, and `n59`"));
    assert!(one_of(&many).ends_with("`n59`, and 10 more"));
}
