//! Huge and hostile inputs end in errors, not in hangs.

use std::time::Duration;

use lab_script::{Limits, Runtime, ThrownKind};

use super::{answer, call, facts};
use crate::play::load;

/// Plays a script whose only answer has this body, with a minute for the turn.
fn with_body(script: &str, body: &str) -> super::Done {
    let program = load(&[("main.js", script)]);
    let limits = Limits {
        turn: Duration::from_secs(60),
        ..Limits::default()
    };
    let mut runtime = Runtime::new(&program, limits, 1).unwrap();
    call(&mut runtime, 0, facts(), &|_| answer(body))
}

const HTML: &str = "import http from 'k6/http'; export default function () { return http.get('http://shop/').html().find('p').size(); }";

#[test]
fn refuses_html_that_is_too_large_or_deep() {
    assert!(
        with_body(HTML, &"<p>".repeat(3_000_000))
            .error()
            .contains("at most")
    );
    assert!(
        with_body(HTML, &"<div>".repeat(200_000))
            .error()
            .contains("within each other")
    );
    assert!(
        with_body(HTML, &"<b a=1>".repeat(600))
            .error()
            .contains("within each other")
    );
    // End tags that match nothing, and elements that nest only in foreign content.
    for page in [
        "<div></x>".repeat(900_000),
        format!("<svg>{}", "<td>".repeat(900_000)),
    ] {
        assert!(with_body(HTML, &page).error().contains("within each other"));
    }
    assert_eq!(*with_body(HTML, &"<p>x".repeat(10_000)).value(), 10_000);
}

#[test]
fn refuses_html_that_multiplies_elements() {
    let formats: String = (0..400).map(|n| format!("<b a={n}>")).collect();
    let page = format!("<p>{formats}</p>{}", "<p>x</p>".repeat(20_000));
    assert!(with_body(HTML, &page).error().contains("too many elements"));
}

#[test]
fn parsing_of_html_ends_with_the_turn() {
    // The parser compares each attribute with all before it.
    let names: String = (0..200_000).map(|n| format!(" a{n}")).collect();
    let program = load(&[("main.js", HTML)]);
    let mut runtime = Runtime::new(&program, Limits::default(), 1).unwrap();
    let page = format!("<p{names}>");
    let done = call(&mut runtime, 0, facts(), &|_| answer(&page));
    assert_eq!(done.result.unwrap_err().kind, ThrownKind::Turn);
}

#[test]
fn deep_json_is_an_error() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let whole = "import http from 'k6/http'; export default function () { return http.get('http://shop/').json() === 1; }";
    assert!(with_body(whole, &deep).result.is_err());
    let path = "import http from 'k6/http'; export default function () { return http.get('http://shop/').json('0.#.a') === 1; }";
    assert!(with_body(path, &deep).result.is_err());
}

#[test]
fn long_list_is_followed_once() {
    let list = format!(
        "{{\"items\":[{}{{\"id\":7}}]}}",
        "{\"id\":1},".repeat(200_000)
    );
    let script = "import http from 'k6/http'; export default function () { const r = http.get('http://shop/'); return [r.json('items.200000.id'), r.json('items.#'), r.json('items.#(id==7).id')]; }";
    assert_eq!(
        *with_body(script, &list).value(),
        serde_json::json!([7, 200_001, 7])
    );
}

#[test]
fn patterns_do_not_explode() {
    let body = format!("{{\"{}\":1}}", "a".repeat(100_000));
    let path = "*a".repeat(40);
    let script = format!(
        "import http from 'k6/http'; export default function () {{ return http.get('http://shop/').json('{path}b') === undefined; }}"
    );
    assert_eq!(*with_body(&script, &body).value(), true);
}

#[test]
fn addresses_and_selectors_have_a_length() {
    let script = "import { parseHTML } from 'k6/html';
        export default function () {
          const messages = [];
          for (const f of [() => new URL('http://a/' + 'b'.repeat(70000)), () => parseHTML('<p>').find('p'.repeat(5000))]) {
            try { f(); } catch (error) { messages.push(error.message); }
          }
          return messages;
        }";
    let done = with_body(script, "");
    assert_eq!(
        *done.value(),
        serde_json::json!([
            "an address has at most 65536 bytes",
            "a selector has at most 4096 characters"
        ])
    );
}
