//! Tests of `method`.

use super::method_problem;

#[test]
fn any_method_of_capitals_is_one_and_slips_are_none() {
    for method in [
        "GET",
        "PROPFIND",
        "REPORT",
        "MKCALENDAR",
        "PURGE",
        "M-SEARCH",
        "BDELETE",
        "LIST",
        "X2",
    ] {
        assert_eq!(method_problem(method, " /x"), None, "{method}");
    }
    let check = |method: &str, rest: &str, help: &str| {
        let problem = method_problem(method, rest).unwrap_or_else(|| panic!("{method}"));
        assert_eq!(problem.help.as_deref(), Some(help), "{method}");
    };
    check("GTE", " /", "did you mean `GET`?");
    check("get", " /", "did you mean `GET`?");
    check("PSOT", " /", "did you mean `POST`?");
    check("/login", "", "write the method first: `GET /login`");
    check("CONNECT", " /", "ask the server itself: `GET /path`");
    let words = "a method is a word of capital letters, such as `GET` or `PROPFIND`";
    for method in ["Propfind", "PROP FIND", "", "(X)", "ÄX", &"A".repeat(65)] {
        check(method, " /", words);
    }
}
