//! Tests of `escape`.

use proptest::prelude::*;

use super::*;

fn escaped(escape: Escape, raw: &str) -> String {
    let mut out = String::from("before ");
    out.push_str(raw);
    escape.apply(&mut out, 7);
    out.split_off(7)
}

#[test]
fn plain_values_stay_as_they_are() {
    assert_eq!(escaped(Escape::None, "a\"b c"), "a\"b c");
    assert_eq!(escaped(Escape::JsonText, "user 1/é"), "user 1/é");
    assert_eq!(escaped(Escape::Form, "user1"), "user1");
}

#[test]
fn form_values_follow_the_url_standard() {
    assert_eq!(escaped(Escape::Form, "a b&c=é*"), "a+b%26c%3D%C3%A9*");
}

#[test]
fn names_of_parts_end_neither_their_quotes_nor_their_line() {
    assert_eq!(escaped(Escape::PartName, "a\"b\r\né"), "a%22b%0D%0Aé");
}

#[test]
fn quoted_strings_end_at_their_own_quotes() {
    assert_eq!(escaped(Escape::Quoted, r#"a "b" \é"#), r#"a \"b\" \\é"#);
    assert_eq!(escaped(Escape::Quoted, "INBOX"), "INBOX");
}

proptest! {
    #[test]
    fn a_json_parser_reads_back_what_was_escaped(raw in any::<String>()) {
        let json = escaped(Escape::JsonValue, &raw);
        prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), raw);
    }
}
