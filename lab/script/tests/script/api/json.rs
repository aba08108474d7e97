//! `Response.json(path)`, with the examples of the path syntax's documentation.

use serde_json::json;

use super::{run, run_with};
use lab_script::Answer;

const PEOPLE: &str = r#"{
  "name": {"first": "Tom", "last": "Anderson"},
  "age": 37,
  "children": ["Sara", "Alex", "Jack"],
  "fav.movie": "Deer Hunter",
  "nothing": null, "yes": true, "pi": 3.5, "quote": "a \"b\" \u00e9", "big": 12345678901,
  "friends": [
    {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
    {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
    {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"]}
  ]
}"#;

fn field(path: &str) -> serde_json::Value {
    let path = serde_json::Value::from(path);
    let script = format!(
        "import http from 'k6/http';\nexport default function () {{ const value = http.get('http://shop').json({path}); return value === undefined ? 'undefined' : value; }}"
    );
    run(&script, PEOPLE).value().clone()
}

#[test]
fn finds_fields_as_documented() {
    let examples = [
        ("name.last", json!("Anderson")),
        ("name", json!({"first": "Tom", "last": "Anderson"})),
        ("age", json!(37)),
        ("children", json!(["Sara", "Alex", "Jack"])),
        ("children.0", json!("Sara")),
        ("children.1", json!("Alex")),
        ("friends.1.first", json!("Roger")),
        ("child*.2", json!("Jack")),
        ("c?ildren.0", json!("Sara")),
        ("fav\\.movie", json!("Deer Hunter")),
        ("friends.#", json!(3)),
        ("friends.#.age", json!([44, 68, 47])),
        ("friends.#.nets.0", json!(["ig", "fb", "ig"])),
        ("friends.#(last==\"Murphy\").first", json!("Dale")),
        (
            "friends.#(last==\"Murphy\")#.first",
            json!(["Dale", "Jane"]),
        ),
        ("friends.#(age>45)#.last", json!(["Craig", "Murphy"])),
        ("friends.#(first%\"D*\").last", json!("Murphy")),
        ("friends.#(first!%\"D*\").last", json!("Craig")),
        (
            "friends.#(nets.#(==\"fb\"))#.first",
            json!(["Dale", "Roger"]),
        ),
        ("children|@reverse", json!(["Jack", "Alex", "Sara"])),
        ("children|@reverse|0", json!("Jack")),
        ("name|@keys", json!(["first", "last"])),
        ("nothing", json!(null)),
        ("yes", json!(true)),
        ("pi", json!(3.5)),
        ("big", json!(12_345_678_901_i64)),
        ("quote", json!("a \"b\" é")),
        ("missing", json!("undefined")),
        ("children.7", json!("undefined")),
        ("age.x", json!("undefined")),
        ("friends.#(age>100).first", json!("undefined")),
    ];
    for (path, expected) in examples {
        assert_eq!(field(path), expected, "{path}");
    }
}

#[test]
fn parses_whole_body_once() {
    let script = "import http from 'k6/http';
        export default function () { const r = http.get('http://shop'); r.json().mark = 1; return [r.json().mark, r.json().age]; }";
    assert_eq!(*run(script, PEOPLE).value(), json!([1, 37]));
}

#[test]
fn says_what_is_no_json() {
    let script = "import http from 'k6/http'; export default function () { return http.get('http://shop/a?token=b').json('a.b'); }";
    for body in ["<html>busy</html>", "eyJhbGciOi.JIUzI1NiJ9"] {
        let done = run(script, body);
        assert_eq!(
            done.error(),
            format!(
                "the response of http://shop/a can't be read as JSON: line 1, column 1 (it has {} bytes and begins with {:?})",
                body.len(),
                body.chars().next().unwrap()
            )
        );
    }
    assert!(
        run(script, "{\"a\":{\"b\":1}} tail")
            .error()
            .contains("JSON")
    );
    let whole = "import http from 'k6/http'; export default function () { return http.get('http://shop').json(); }";
    assert!(run(whole, "{").error().contains("can't be read as JSON"));
    let none = run_with(whole, &|_| Answer {
        status: 0,
        ..Answer::default()
    });
    assert!(none.error().contains("has no body"), "{}", none.error());
}

#[test]
fn refuses_paths_that_it_cannot_follow() {
    let of = |path: &str| {
        let script = format!(
            "import http from 'k6/http'; export default function () {{ return http.get('http://shop').json('{path}'); }}"
        );
        run(&script, PEOPLE).error().to_owned()
    };
    assert!(of("a.").contains("ends with '.'"));
    assert!(of("friends.@tostr").contains("@tostr"));
    assert!(of("friends.#(age").contains("test in the path"));
    assert!(of(&"a.".repeat(100)).contains("at most 64 parts"));
    assert!(of(&"a".repeat(5000)).contains("at most 4096"));
}
