//! Responses of PostgreSQL, built byte by byte.

use proptest::prelude::*;

use super::*;

fn message(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32 + 4).to_be_bytes();
    [&[tag], &length[..], content].concat()
}

/// Returns the description of columns with these names and types.
fn description(columns: &[(&str, u32)]) -> Vec<u8> {
    let mut content = (columns.len() as u16).to_be_bytes().to_vec();
    for (name, oid) in columns {
        content.extend_from_slice(&[name.as_bytes(), &[0; 7]].concat());
        content.extend_from_slice(&[&oid.to_be_bytes()[..], &[0; 8]].concat());
    }
    message(b'T', &content)
}

fn row(values: &[Option<&str>]) -> Vec<u8> {
    let mut content = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        let length = value.map_or(-1, |value| value.len() as i32);
        content.extend_from_slice(&length.to_be_bytes());
        content.extend_from_slice(value.unwrap_or_default().as_bytes());
    }
    message(b'D', &content)
}

/// Returns the messages as text and the response, read in pieces of this many bytes.
fn read(bytes: &[u8], piece: usize, is_read: bool) -> Result<(Vec<String>, String), String> {
    let (mut answer, mut body, mut kept) = (PostgresAnswer::default(), Vec::new(), Vec::new());
    let mut told = Vec::new();
    answer.begin(is_read);
    for piece in bytes.chunks(piece) {
        kept.extend_from_slice(piece);
        let mut heard = &kept[..];
        while let Some(one) = answer.read(&mut heard, &mut body)? {
            told.push(match one {
                PostgresResult::End(_) => "end".to_owned(),
                PostgresResult::Refused { ends, why } => format!("{why} {ends}"),
                PostgresResult::Parsed => "parsed".to_owned(),
                PostgresResult::WantsRows => "wants rows".to_owned(),
                PostgresResult::Other(_) => "other".to_owned(),
            });
        }
        let taken = kept.len() - heard.len();
        kept.drain(..taken);
    }
    Ok((told, String::from_utf8_lossy(&body).into_owned()))
}

#[test]
fn rows_are_json_by_their_types() {
    let columns = [
        ("a", 23),
        ("b", 16),
        ("c", 1700),
        ("d", 114),
        ("e \"e\"", 25),
        ("f", 701),
        ("g", 25),
    ];
    let values = ["7", "t", "1.50", "{\"x\": [1]}", "a\n\"b\"", "NaN"].map(Some);
    let bytes = [
        message(b'1', b""),
        description(&columns),
        row(&[&values[..], &[None]].concat()),
        row(&[
            None,
            Some("f"),
            Some("-0.1"),
            Some("{"),
            Some(""),
            Some("1e+20"),
            None,
        ]),
        message(b'C', b"SELECT 2\0"),
        message(b'C', b"UPDATE 3\0"),
        message(b'C', b"BEGIN\0"),
        message(b'Z', b"I"),
    ]
    .concat();
    let expected = concat!(
        r#"{"rows":[{"a":7,"b":true,"c":1.50,"d":{"x": [1]},"e \"e\"":"a\n\"b\"","f":"NaN","g":null},"#,
        r#"{"a":null,"b":false,"c":-0.1,"d":"{","e \"e\"":"","f":1e+20,"g":null}],"#,
        r#""count":5,"done":["SELECT 2","UPDATE 3","BEGIN"]}"#,
    );
    let told = vec!["parsed".to_owned(), "end".to_owned()];
    for piece in [1, 3, 50, 10_000] {
        let all = Ok((told.clone(), expected.to_owned()));
        assert_eq!(read(&bytes, piece, true), all, "by {piece}");
        let nothing = Ok((told.clone(), String::new()));
        assert_eq!(read(&bytes, piece, false), nothing, "by {piece}");
    }
}

#[test]
fn long_names_are_cut_so_that_short_rows_stay_short() {
    let name = "é".repeat(5000);
    let rows = row(&[None]).repeat(100);
    let bytes = [
        description(&[(name.as_str(), 25)]),
        rows,
        message(b'Z', b"I"),
    ]
    .concat();
    let (_, body) = read(&bytes, 100_000, true).unwrap();
    assert!(body.len() < 100 * (MAX_NAME + 10) + 40, "{}", body.len());
    assert!(serde_json::from_str::<serde_json::Value>(&body).is_ok());
}

#[test]
fn refusals_have_their_code_and_no_answer_is_one_without_rows() {
    let bytes = [
        message(b'E', b"SERROR\0VERROR\0C42P01\0Mno such table\0\0"),
        message(b'N', b"SNOTICE\0C00000\0Mnoted\0\0"),
        message(b'Z', b"I"),
        message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mgone\0\0"),
        message(b'G', b"\0\0\0"),
    ]
    .concat();
    let (told, body) = read(&bytes, 1000, true).unwrap();
    let expected = [
        "42P01 no such table false",
        "end",
        "57P01 gone true",
        "wants rows",
    ];
    assert_eq!(told, expected);
    assert_eq!(body, r#"{"rows":[],"count":0,"done":[]}"#);
}

#[test]
fn what_is_none_of_postgresql_is_found_out_by_its_length() {
    for bad in [
        &b"SSH-2.0\r\n"[..],
        b"HTTP/1.1 400 Bad Request\r\n",
        b"Z\0\0\0\x03",
        b"?\0\0\0\x04",
        b"D\xff\xff\xff\xff",
    ] {
        assert!(read(bad, 1000, true).is_err(), "{bad:?}");
    }
    let long = [description(&[("a", 25)]), row(&[Some("1"), Some("2")])].concat();
    assert!(read(&long, 1000, true).is_err(), "more values than columns");
}

proptest! {
    #[test]
    fn what_comes_in_pieces_is_the_same(
        parts in proptest::collection::vec((
            proptest::sample::select(b"TDCEZN1d".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..20),
        ), 0..8),
        piece in 1usize..9,
    ) {
        let parts: Vec<_> = parts.iter().map(|(tag, content)| message(*tag, content)).collect();
        let bytes = [description(&[("a", 23)]), row(&[Some("1")]), parts.concat()].concat();
        prop_assert_eq!(read(&bytes, piece, true).ok(), read(&bytes, 10_000, true).ok());
    }
}
