//! Tests of `template_words`.

use super::*;

#[test]
fn words_are_those_of_the_code() {
    let check = |text: &str, expected: &[&str]| {
        let mut words = Words::new();
        of_template(text, &mut words);
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.sort_unstable();
        assert_eq!(words, expected, "{text}");
    };
    check("users", &[]);
    check("{{ users }} users", &["users"]);
    check(
        "a {{ a_1 * 2 }}{% if b %}c{% endif %}",
        &["2", "a_1", "b", "endif", "if"],
    );
    check("{{ open", &["open"]);
}
