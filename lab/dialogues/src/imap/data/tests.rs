//! Responses of all kinds as JSON.

use serde_json::json;

use super::*;

#[test]
fn responses_of_all_kinds_are_json() {
    let check = |responses: &[&[u8]], expected: Value| {
        let mut told = Map::new();
        for response in responses {
            untagged(response, &mut told).unwrap();
        }
        assert_eq!(Value::Object(told), expected);
    };
    check(
        &[b"23 EXISTS", b"1 RECENT", b"5 EXPUNGE", b"5 expunge"],
        json!({ "exists": 23, "recent": 1, "expunge": [5, 5] }),
    );
    check(
        &[b"SEARCH", b"SEARCH 2 84", b"SEARCH 882"],
        json!({ "search": [2, 84, 882] }),
    );
    check(
        &[b"4 FETCH (UID 9 FLAGS (\\Seen $Done) BODY[HEADER.FIELDS (FROM)] {8}\r\nFrom: a\n BODY[]<0> NIL)"],
        json!({ "fetch": [{
            "seq": 4, "uid": 9, "flags": ["\\Seen", "$Done"],
            "body[header.fields (from)]": "From: a\n", "body[]<0>": null,
        }] }),
    );
    check(
        &[
            b"LIST (\\HasNoChildren) \"/\" \"a \\\"b\\\"\"",
            b"LIST () NIL INBOX",
            b"STATUS INBOX (MESSAGES 3 UNSEEN 0)",
        ],
        json!({
            "list": [
                { "flags": ["\\HasNoChildren"], "delimiter": "/", "mailbox": "a \"b\"" },
                { "flags": [], "delimiter": null, "mailbox": "INBOX" },
            ],
            "status": [{ "mailbox": "INBOX", "messages": 3, "unseen": 0 }],
        }),
    );
    check(
        &[
            b"FLAGS (\\Seen)",
            b"OK [UIDNEXT 7] Predicted",
            b"OK [READ-WRITE] Select completed [0.1 s].",
            b"OK [APPENDUID 3 4]",
            b"VANISHED (EARLIER) 41,43:116",
        ],
        json!({
            "flags": [["\\Seen"]],
            "code": { "uidnext": 7, "read-write": true, "appenduid": [3, 4] },
            "text": "",
            "vanished": [[["EARLIER"], "41,43:116"]],
        }),
    );
    for bad in [
        &b"1 FETCH (UID 1"[..],
        b"SEARCH )",
        b"LIST \"a",
        b"1 FETCH {5}\r\nab",
        b"",
    ] {
        assert!(untagged(bad, &mut Map::new()).is_err(), "{bad:?}");
    }
    let deep = [b"X ".to_vec(), vec![b'('; MAX_DEPTH + 1]].concat();
    assert!(untagged(&deep, &mut Map::new()).is_err());
}
