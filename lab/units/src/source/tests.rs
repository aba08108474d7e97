//! Tests of `source`.

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
