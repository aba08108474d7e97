//! Tests of `header`.

use super::*;

#[test]
fn headers_are_refused_for_the_true_reason() {
    for (name, value, problem) in [
        ("Content-Length", "3", "is the driver's own header"),
        ("Connection", "upgrade", "is `close` or `keep-alive`"),
        ("Expect", "100-continue", "bodies are sent at once"),
        ("Upgrade", "h2c", "is of another protocol"),
        ("X Y", "1", "is not a header's name"),
    ] {
        let (message, _) = header_problem(name, value).unwrap();
        assert!(message.contains(problem), "{message}");
    }
    for (name, value) in [("connection", "Close"), ("Cookie", "a=1"), ("Host", "h")] {
        assert_eq!(header_problem(name, value), None);
    }
}

#[test]
fn names_of_cookies_are_what_browsers_take() {
    for name in ["", "a=b", "a;b", " a", "a\tb", "a\n"] {
        assert!(!is_cookie_name(name), "{name:?}");
    }
    for name in ["x[1]", "a:b", "ä", "(a)"] {
        assert!(is_cookie_name(name), "{name:?}");
    }
}
