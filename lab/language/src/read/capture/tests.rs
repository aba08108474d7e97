//! Tests of `capture`.

use super::*;

fn check(text: &str) -> Result<CaptureSource, String> {
    let names = ["name".to_owned()];
    let symbols = Symbols::new(&names);
    source(text, symbols).map_err(|e| e.to_string())
}

#[test]
fn each_form_is_told_apart() {
    assert!(matches!(check("$.a[*].b"), Ok(CaptureSource::JsonPath(_))));
    assert!(matches!(
        check("$[?@.a == '{{ name }}']"),
        Ok(CaptureSource::JsonPathTemplate(_))
    ));
    assert!(matches!(check("header.Location"), Ok(CaptureSource::Header(h)) if h == "location"));
    assert!(matches!(check("cookie.Sid"), Ok(CaptureSource::Cookie(c)) if c == "Sid"));
    assert!(matches!(check("/a(b)/"), Ok(CaptureSource::Regex(_))));
    assert!(matches!(check("/a(b)/g"), Ok(CaptureSource::RegexAll(_))));
    assert!(matches!(check("xml(//a@b)"), Ok(CaptureSource::Xml(_))));
    for html in [
        "html(a.next)",
        "html( form input[name='csrf'] )@value",
        "html(li:not(.old))",
    ] {
        assert!(matches!(check(html), Ok(CaptureSource::Html(_))), "{html}");
    }
    assert!(matches!(
        check("request.path"),
        Ok(CaptureSource::RequestPath)
    ));
    for bad in [
        "",
        "$.[",
        "/a/",
        "/(/",
        "request.pth",
        "/a/g",
        "xml(d:href)",
        "xml()",
        "html()",
        "html(a",
        "html(a + b)",
        "html(a)href",
        "html(a)@",
        "html(a)@b c",
        "header.",
        "header.a b",
        "$[?@.a == '{{ nam }}']",
        "$[?@.a == {{ name }",
    ] {
        assert!(check(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_huge_regular_expression_is_refused() {
    assert!(check("/((a{1000}){1000}){1000}/").is_err());
}
