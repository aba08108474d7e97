//! Tests of `source`.

use super::sibling_path;
use super::{clean, masked};

#[test]
fn passwords_in_addresses_are_not_shown() {
    for (text, shown) in [
        (
            "url: http://u:päss@host:1/a b@c",
            "url: http://*******@host:1/a b@c",
        ),
        ("http://admin:p/a?s#s'@host/", "http://**************@host/"),
        (
            "'https://a@b@c' http://d/x@y",
            "'https://***@c' http://***@y",
        ),
        ("no address: user@host://", "no address: user@host://"),
    ] {
        assert_eq!(masked(text), shown);
        assert_eq!(masked(text).len(), text.len());
    }
    assert_eq!(clean("http://me:secret@h"), "http://*********@h");
}

#[test]
fn paths_are_taken_from_the_file_that_names_them() {
    let check = |from: &str, path: &str, expected: &str| {
        assert_eq!(sibling_path(from, path), expected, "{path} from {from}");
    };
    check("a.study.yaml", "../workloads/b.yaml", "../workloads/b.yaml");
    check("studies/a.yaml", "../workloads/b.yaml", "workloads/b.yaml");
    check("/x/studies/a.yaml", "../w/b.yaml", "/x/w/b.yaml");
    check("../studies/a.yaml", "../w/b.yaml", "../w/b.yaml");
    check("a.yaml", "./b.yaml", "b.yaml");
    check("s/a.yaml", "/abs/b.yaml", "/abs/b.yaml");
    check("/a.yaml", "b.yaml", "/b.yaml");
}
