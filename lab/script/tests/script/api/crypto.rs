//! `k6/crypto` and `k6/encoding`: the vectors of k6's documentation, RFC 2202, and FIPS 180-4.

use serde_json::json;

use super::{error, eval};

const IMPORTS: &str = "import crypto from 'k6/crypto'; import encoding from 'k6/encoding';";

#[test]
fn hashes_as_documented() {
    let vectors = [
        ("md4", "3363b72840acd5f49f922fef598ee85d"),
        ("md5", "fc3ff98e8c6a0d3087d515c0473f8677"),
        ("ripemd160", "dffd03137b3a333d5754813399a5f437acd694e5"),
        ("sha1", "430ce34d020724ed75a196dfc2ad67c77772d169"),
        (
            "sha256",
            "7509e5bda0c762d2bac7f90d758b5b2263fa01ccbc542ab5e3df163be08e6ca9",
        ),
        (
            "sha384",
            "d33d40f7010ce34aa86efd353630309ed5c3d7ffac66d988825cf699f4803ccdf3f033230612f0945332fb580d8af805",
        ),
        (
            "sha512",
            "db9b1cd3262dee37756a09b9064973589847caa8e53d31a9d142ea2701b1b28abd97838bb9a27068ba305dc8d04a45a1fcf079de54d607666996b3cc54f6b67c",
        ),
        (
            "sha512_224",
            "bc4ed196f7ba1c20f6fb6be1f91edf8293a35b065d6e7d6fd368c890",
        ),
        (
            "sha512_256",
            "595b5926068b4828fb1c27db21281e31118b8475cb6c3ceeb09be7b685414d5f",
        ),
    ];
    for (name, hash) in vectors {
        assert_eq!(
            eval(IMPORTS, &format!("crypto.{name}('hello world!', 'hex')")),
            hash,
            "{name}"
        );
        let bytes = format!(
            "crypto.{name}(new Uint8Array([104,101,108,108,111,32,119,111,114,108,100,33]).buffer, 'hex')"
        );
        assert_eq!(eval(IMPORTS, &bytes), hash, "{name} of bytes");
    }
}

#[test]
fn signs_as_documented() {
    let of = |text: &str| eval(IMPORTS, text);
    assert_eq!(
        of("crypto.hmac('sha256', 'a secret', 'my data', 'hex')"),
        "82f669c8fde13aef6d6977257588dc4953dfac505428f8fd6b52e19cd96d7ea5"
    );
    assert_eq!(
        of("crypto.hmac('sha256', 'mysecret', 'hello world!', 'hex')"),
        "893a72d8cab129e5ba85aea4599fd53f59bfe652cff4098a3780313228d8c20f"
    );
    // RFC 2202: a key that is longer than a block.
    assert_eq!(
        of(
            "crypto.hmac('md5', new Uint8Array(80).fill(0xaa).buffer, 'Test Using Larger Than Block-Size Key - Hash Key First', 'hex')"
        ),
        "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd"
    );
    assert_eq!(
        of("crypto.hmac('sha1', new Uint8Array(20).fill(0x0b).buffer, 'Hi There', 'hex')"),
        "b617318655057264e28bc0b6fb378c8ef146be00"
    );
}

#[test]
fn hashes_parts_in_all_encodings() {
    let script = "(() => {
        const hasher = crypto.createHash('sha256');
        hasher.update('hello ');
        hasher.update('world!');
        return [hasher.digest('hex'), hasher.digest('base64'), hasher.digest('base64url'), hasher.digest('base64rawurl'),
            new Uint8Array(hasher.digest('binary')).slice(0, 3).join()];
    })()";
    assert_eq!(
        eval(IMPORTS, script),
        json!([
            "7509e5bda0c762d2bac7f90d758b5b2263fa01ccbc542ab5e3df163be08e6ca9",
            "dQnlvaDHYtK6x/kNdYtbImP6Acy8VCq1498WO+CObKk=",
            "dQnlvaDHYtK6x_kNdYtbImP6Acy8VCq1498WO-CObKk=",
            "dQnlvaDHYtK6x_kNdYtbImP6Acy8VCq1498WO-CObKk",
            "117,9,229",
        ])
    );
    let signed = "(() => { const h = crypto.createHMAC('sha256', 'a secret'); h.update('my '); h.update('data'); return h.digest('hex'); })()";
    assert_eq!(
        eval(IMPORTS, signed),
        "82f669c8fde13aef6d6977257588dc4953dfac505428f8fd6b52e19cd96d7ea5"
    );
}

#[test]
fn names_unknown_algorithms_and_encodings() {
    assert!(error(IMPORTS, "crypto.createHash('sha3')").contains("unknown hash 'sha3'"));
    assert!(error(IMPORTS, "crypto.md5('x', 'latin')").contains("unknown output encoding 'latin'"));
    assert!(error(IMPORTS, "crypto.randomBytes(-1)").contains("0 to 16777216"));
    assert!(
        error(IMPORTS, "encoding.b64encode('x', 'base32')").contains("unknown Base64 alphabet")
    );
}

#[test]
fn encodes_base64_in_four_alphabets() {
    let of = |text: &str| eval(IMPORTS, text);
    assert_eq!(of("encoding.b64encode('hello world')"), "aGVsbG8gd29ybGQ=");
    assert_eq!(
        of("encoding.b64encode('hello world', 'rawstd')"),
        "aGVsbG8gd29ybGQ"
    );
    assert_eq!(
        of("encoding.b64encode(new Uint8Array([251, 255]).buffer, 'url')"),
        "-_8="
    );
    assert_eq!(
        of("encoding.b64encode(new Uint8Array([251, 255]).buffer, 'rawurl')"),
        "-_8"
    );
    assert_eq!(
        of("encoding.b64decode('aGVsbG8gd29ybGQ=', 'std', 's')"),
        "hello world"
    );
    assert_eq!(
        of("new Uint8Array(encoding.b64decode('-_8', 'rawurl')).join()"),
        "251,255"
    );
    assert_eq!(of("encoding.b64encode('köln')"), "a8O2bG4=");
    assert!(error(IMPORTS, "encoding.b64decode('a*b')").contains("not valid Base64"));
}

#[test]
fn draws_random_bytes_from_seed() {
    let twice = "[crypto.randomBytes(9).byteLength, new Uint8Array(crypto.randomBytes(4)).join()]";
    let first = eval(IMPORTS, twice);
    assert_eq!(first[0], 9);
    assert_eq!(first, eval(IMPORTS, twice));
}
