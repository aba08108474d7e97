//! Laws of content codings: what encoders make is decoded, within the limit, and no bytes do harm.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use lab_client::http::{Coding, CodingError};
use proptest::prelude::*;

const LIMIT: u64 = 1 << 20;

fn decoded(coding: Coding, body: &[u8]) -> Result<Vec<u8>, CodingError> {
    let mut out = b"what was there before".to_vec();
    coding.decode(body, LIMIT, &mut out).map(|()| out)
}

/// By gzip, and by deflate with a head and without.
fn deflated(text: &[u8]) -> [(Coding, Vec<u8>); 3] {
    let (mut gzip, mut zlib, mut raw) = (
        GzEncoder::new(Vec::new(), Compression::default()),
        ZlibEncoder::new(Vec::new(), Compression::default()),
        DeflateEncoder::new(Vec::new(), Compression::default()),
    );
    gzip.write_all(text).unwrap();
    zlib.write_all(text).unwrap();
    raw.write_all(text).unwrap();
    [
        (Coding::Gzip, gzip.finish().unwrap()),
        (Coding::Deflate, zlib.finish().unwrap()),
        (Coding::Deflate, raw.finish().unwrap()),
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
        prop_assert_eq!(decoded(Coding::Identity, &text).unwrap(), &text[..]);
    }
}

/// “{"token":"abc"}” by the tools of Debian: `brotli -c`, `zstd -c`.
#[test]
fn br_and_zstd_as_others_encode_them() {
    const TEXT: &[u8] = b"{\"token\":\"abc\"}";
    for (coding, body) in [
        (Coding::Brotli, "0f07807b22746f6b656e223a22616263227d03"),
        (
            Coding::Zstd,
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
    assert!(decoded(*gzip, body).is_ok());
}

#[test]
fn names_are_those_of_headers() {
    for (name, coding) in [
        ("", Coding::Identity),
        ("identity", Coding::Identity),
        (" GZIP ", Coding::Gzip),
        ("x-gzip", Coding::Gzip),
        ("deflate", Coding::Deflate),
        ("br", Coding::Brotli),
        ("zstd", Coding::Zstd),
        ("gzip, br", Coding::Other),
        ("compress", Coding::Other),
    ] {
        assert_eq!(Coding::of(name.as_bytes()), coding, "{name}");
    }
}
