//! Properties of content codings: encoded bodies are decoded, within the limit, and arbitrary bytes do no harm.

use std::io::Write;

use super::{CodingError, Codings};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;

const LIMIT: u64 = 1 << 20;

fn decoded(codings: &str, body: &[u8]) -> Result<Vec<u8>, CodingError> {
    let mut out = b"what was there before".to_vec();
    let codings = Codings::of(codings.as_bytes());
    codings.decode(body, LIMIT, &mut out).map(|()| out)
}

/// Encodes by gzip, and by deflate with a header and without.
fn deflated(text: &[u8]) -> [(&'static str, Vec<u8>); 3] {
    let (mut gzip, mut zlib, mut raw) = (
        GzEncoder::new(Vec::new(), Compression::default()),
        ZlibEncoder::new(Vec::new(), Compression::default()),
        DeflateEncoder::new(Vec::new(), Compression::default()),
    );
    gzip.write_all(text).unwrap();
    zlib.write_all(text).unwrap();
    raw.write_all(text).unwrap();
    [
        ("gzip", gzip.finish().unwrap()),
        ("deflate", zlib.finish().unwrap()),
        ("deflate", raw.finish().unwrap()),
    ]
}

fn hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(text in proptest::collection::vec(any::<u8>(), 0..5000)) {
        for (coding, body) in deflated(&text) {
            prop_assert_eq!(decoded(coding, &body).unwrap(), &text[..]);
        }
        prop_assert_eq!(decoded("identity", &text).unwrap(), &text[..]);
    }
}

/// “{"token":"abc"}” by the tools of Debian: `brotli -c`, `zstd -c`.
#[test]
fn br_and_zstd_as_others_encode_them() {
    const TEXT: &[u8] = b"{\"token\":\"abc\"}";
    for (coding, body) in [
        ("br", "0f07807b22746f6b656e223a22616263227d03"),
        (
            "zstd",
            "28b52ffd04587900007b22746f6b656e223a22616263227dd250cc30",
        ),
    ] {
        assert_eq!(decoded(coding, &hex(body)).unwrap(), TEXT, "{coding:?}");
        let half = hex(&body[..body.len() / 2 / 2 * 2]);
        assert!(decoded(coding, &half).is_err(), "{coding:?}");
    }
}

#[test]
fn a_bomb_is_refused_when_it_goes_beyond_the_limit() {
    let zeros = vec![0; LIMIT as usize + 1];
    for (coding, body) in deflated(&zeros) {
        assert!(body.len() < 10_000);
        let error = decoded(coding, &body).unwrap_err();
        assert!(matches!(error, CodingError::TooLarge { .. }), "{error}");
    }
    let (gzip, body) = &deflated(&zeros[1..])[0];
    assert!(decoded(gzip, body).is_ok());
}

#[test]
fn names_are_those_of_headers() {
    for (name, known) in [
        (" GZIP ", "gzip"),
        ("x-gzip", "gzip"),
        ("deflate", "deflate"),
        ("br, gzip", "br, gzip"),
        ("gzip,, identity ,zstd,", "gzip, zstd"),
    ] {
        let codings = Codings::of(name.as_bytes());
        assert!(codings.decodes(), "{name}");
        assert_eq!(codings.names(), known);
    }
}

#[test]
fn names_of_no_coding_leave_the_body_as_it_is() {
    for name in [
        "",
        " , ",
        "identity",
        "UTF-8",
        "none",
        "8bit",
        "Binary",
        "aws-chunked",
    ] {
        let codings = Codings::of(name.as_bytes());
        assert!(!codings.decodes() && !codings.is_unknown(), "{name}");
        assert_eq!(decoded(name, b"plain").unwrap(), b"plain");
    }
    for name in ["compress", "rot13, gzip", "br,br,br,br,br,br"] {
        let codings = Codings::of(name.as_bytes());
        assert!(!codings.decodes() && codings.is_unknown(), "{name}");
        assert_eq!(decoded(name, b"plain").unwrap(), b"plain");
    }
}

#[test]
fn several_codings_are_undone_in_reverse_order() {
    let [(_, gzip), (_, zlib), _] = deflated(b"text");
    let [(_, zlib_in_gzip), ..] = deflated(&zlib);
    assert_eq!(decoded("deflate, gzip", &zlib_in_gzip).unwrap(), b"text");
    assert!(decoded("gzip, deflate", &zlib_in_gzip).is_err());
    let mut lines = Codings::of(b"deflate");
    lines.add(b"utf-8");
    lines.add(b"gzip");
    let mut out = Vec::new();
    lines.decode(&zlib_in_gzip, LIMIT, &mut out).unwrap();
    assert_eq!(out, b"text");
    assert_eq!(decoded("gzip", &gzip).unwrap(), b"text");
}

#[test]
fn gzip_has_several_members_and_zeros_behind_them() {
    let [(_, one), ..] = deflated(b"one ");
    let [(_, two), ..] = deflated(b"two");
    let both = [&one[..], &two, &[0; 600]].concat();
    assert_eq!(decoded("gzip", &both).unwrap(), b"one two");
    let garbage = [&one[..], b"\0garbage"].concat();
    assert!(decoded("gzip", &garbage).is_err());
    let cut_off = [&one[..], &two[..two.len() - 1]].concat();
    assert!(decoded("gzip", &cut_off).is_err());
}

/// `printf "first "`, `printf "second"` by `zstd -c`, and a skippable frame between them.
#[test]
fn zstd_has_several_frames() {
    let first = hex("28b52ffd0458310000666972737420d2fdb511");
    let second = hex("28b52ffd04583100007365636f6e6437005e4d");
    let skippable = hex("502a4d1803000000aabbcc");
    let both = [&first[..], &skippable, &second].concat();
    assert_eq!(decoded("zstd", &both).unwrap(), b"first second");
    assert!(decoded("zstd", &[&first[..], b"garbage"].concat()).is_err());
    assert!(decoded("zstd", &both[..first.len() + 9]).is_err());
}
