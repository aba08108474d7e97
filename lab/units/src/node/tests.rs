//! Tests of `node`.

use super::*;

fn tree(text: &str) -> Node {
    parse(&SourceFile {
        name: "test.yaml".into(),
        text: text.into(),
    })
    .unwrap_or_else(|e| panic!("{}", e.message))
}

/// Each value with the text at its place.
fn places(node: &Node, out: &mut Vec<String>) {
    match &node.value {
        Value::List(list) => list.iter().for_each(|n| places(n, out)),
        Value::Map(entries) => {
            for (key, value) in entries {
                out.push(format!("key {} @ {}", key.text, key.span.text()));
                places(value, out);
            }
        }
        value => out.push(format!("{value:?} @ {}", node.span.text())),
    }
}

#[test]
fn every_value_knows_its_place() {
    let mut out = Vec::new();
    places(
        &tree(
            "a: 1\nü: [true, 'it''s', 1.50, ~]\nb: &x {c: plain text}\nd: *x\ne: |\n  two\n  lines\n",
        ),
        &mut out,
    );
    insta::assert_snapshot!(out.join("\n"), @r#"
    key a @ a
    Int(1) @ 1
    key ü @ ü
    Bool(true) @ true
    Text("it's") @ 'it''s'
    Float(Decimal { value: 1.5, written: Some("1.50") }) @ 1.50
    Null @ ~
    key b @ b
    key c @ c
    Text("plain text") @ plain text
    key d @ d
    key c @ *x
    Text("plain text") @ *x
    key e @ e
    Text("two\nlines\n") @ two
      lines
    "#);
}
