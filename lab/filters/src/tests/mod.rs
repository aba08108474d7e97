//! Filters by published vectors, and compared with another library.

use minijinja::value::Rest;
use minijinja::{Environment, context};
use ring::signature::{ECDSA_P256_SHA256_FIXED, EcdsaKeyPair, KeyPair, UnparsedPublicKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;

use super::*;

const RSA: &str = include_str!("rsa.pem");
const P256: &str = include_str!("p256.pem");
const ED25519: &str = include_str!("ed25519.pem");

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    add(&mut environment);
    environment.add_function("jwt", |rest: Rest<Value>| token(&rest));
    environment
}

/// Returns the value of an expression, or the detail of its error.
fn eval(expression: &str, x: Value) -> Result<Value, String> {
    let environment = environment();
    let compiled = environment.compile_expression(expression).unwrap();
    let keys = context! { rsa => RSA, p256 => P256, ed25519 => ED25519 };
    let result = compiled.eval(context! { x, keys });
    result.map_err(|error| error.detail().unwrap_or_default().to_owned())
}

fn text(expression: &str, x: &str) -> String {
    eval(expression, Value::from(x)).unwrap().to_string()
}

/// RFC 1321, A.5; FIPS 180; RFC 4231, 4.3; RFC 2202, 3; RFC 4648, 10.
#[test]
fn published_vectors_hold() {
    for (expression, x, expected) in [
        (
            "x | md5",
            "message digest",
            "f96b697d7cb7938d525a2f31aaf161d0",
        ),
        (
            "x | sha1",
            "abc",
            "a9993e364706816aba3e25717850c26c9cd0d89d",
        ),
        (
            "x | sha256",
            "abc",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        (
            "x | sha256('base64')",
            "",
            "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        ),
        (
            "x | hmac('Jefe')",
            "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            "x | hmac('Jefe', 'sha1')",
            "what do ya want for nothing?",
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
        ),
        ("x | base64", "fooba", "Zm9vYmE="),
        ("x | base64url", "fooba", "Zm9vYmE"),
        ("x | hex", "foobar", "666f6f626172"),
        ("x | unbase64", "Zm9v\r\nYmE=", "fooba"),
        ("x | unhex", "666f6F", "foo"),
        ("x | urldecode", "a%20b%2Fc+d", "a b/c+d"),
        (
            "x | sha256('raw') | base64url",
            "abc",
            "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0",
        ),
    ] {
        assert_eq!(text(expression, x), expected, "{expression}");
    }
    let sum = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
               2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
    assert_eq!(text("x | sha512", "abc"), sum);
    assert_eq!(text("x | sha384", "abc")[..16], *"cb00753f45a35e8b");
}

/// RFC 7515, A.1: the signature of its token.
#[test]
fn token_of_the_standard_has_its_signature() {
    let key =
        "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
    let signed = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9l\
                  eGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let expression = format!("x | hmac('{key}' | unbase64, 'sha256', 'base64url')");
    assert_eq!(
        text(&expression, signed),
        "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    );
    let claims = text("(x | jwt_claims).iss", &format!("{signed}.x"));
    assert_eq!(claims, "joe");
}

/// Tokens signed by OpenSSL with the same keys.
#[test]
fn tokens_are_those_of_another_library() {
    let token = text(
        "jwt({'sub': 'ada', 'exp': 300}, keys.rsa, 'RS256', {'kid': 'a'})",
        "",
    );
    assert_eq!(token, include_str!("rs256.token").trim());
    let token = text("jwt({'sub': 'ada', 'exp': 300}, keys.ed25519, 'EdDSA')", "");
    assert_eq!(token, include_str!("eddsa.token").trim());
    // Its signature has a random part.
    let token = text("jwt({'sub': 'ada'}, keys.p256, 'ES256')", "");
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let signature = Encoding::Base64.decode(signature.as_bytes()).unwrap();
    let der = PrivatePkcs8KeyDer::from_pem_slice(P256.as_bytes()).unwrap();
    let random = ring::rand::SystemRandom::new();
    let algorithm = &ring::signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, der.secret_pkcs8_der(), &random).unwrap();
    let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key());
    public.verify(signed.as_bytes(), &signature).unwrap();
}

#[test]
fn what_cannot_be_done_is_said_in_words() {
    for (expression, x, expected) in [
        (
            "x | sha256('base32')",
            "",
            "there is no encoding `base32`: it is one of hex, base64, base64url, raw",
        ),
        (
            "x | hmac('k', 'sha3')",
            "",
            "there is no hash `sha3`: it is one of md5, sha1, sha256, sha384, sha512",
        ),
        (
            "x | hmac('k', 'md5')",
            "",
            "HMAC by MD5 is not supported: use `sha1` or `sha256`",
        ),
        (
            "x | unhex | upper",
            "zz",
            "it is not hexadecimal: Invalid character 'z' at position 0",
        ),
        ("x | unbase64", "a", "it is not base64"),
        ("x | match('[')", "", "`[` is no regular expression"),
        ("x | json_path('$.')", "{}", "`$.` is no JSON path"),
        ("x | json_path('$.a')", "{", "it is not JSON"),
        ("x | floor", "east", "`east` is not a number"),
        ("x | jwt_claims", "a.b.c", "it is no JSON Web Token"),
        ("jwt('a', 'k')", "", "the claims are no object"),
        (
            "jwt({}, 'k', 'none')",
            "",
            "there is no algorithm `none` for tokens",
        ),
        (
            "jwt({}, 'k', 'RS256')",
            "",
            "`RS256` needs a private key as PEM",
        ),
        (
            "jwt({}, keys.rsa, 'ES256')",
            "",
            "`ES256` needs an EC key on P-256",
        ),
        (
            "jwt({}, keys.p256, 'PS256')",
            "",
            "`PS256` needs an RSA key of 2048 bits or more",
        ),
        (
            "jwt({}, keys.p256, 'ES384')",
            "",
            "`ES384` needs an EC key on P-384",
        ),
        (
            "jwt({}, keys.rsa, 'EdDSA')",
            "",
            "`EdDSA` needs an Ed25519 key",
        ),
        ("jwt({})", "", "jwt({'sub'"),
    ] {
        let told = eval(expression, Value::from(x)).unwrap_err();
        assert!(told.starts_with(expected), "{expression}: {told}");
    }
}

#[test]
fn patterns_and_paths_find_what_they_name() {
    assert_eq!(text("x | match('/id=(\\d+)/')", "a?id=47&b"), "47");
    assert_eq!(text("x | match('o+')", "food"), "oo");
    assert!(
        eval("x | match('z')", Value::from("food"))
            .unwrap()
            .is_undefined()
    );
    assert_eq!(text("x | match('z') | default('none')", "food"), "none");
    assert_eq!(
        text("x | replace_all('(\\s+)(b)', '-$2')", "a  b   b"),
        "a-b-b"
    );
    let document = r#"{"a": [{"b": 1}, {"b": "two"}]}"#;
    assert_eq!(text("x | json_path('$.a[0].b')", document), "1");
    assert_eq!(
        text("(x | json_path('$.a[*].b')) | join(',')", document),
        "1,two"
    );
    assert!(
        eval("x | json_path('$.c')", Value::from(document))
            .unwrap()
            .is_undefined()
    );
}

#[test]
fn numbers_are_rounded_down_and_up() {
    let pairs = [("2.5", 2, 3), ("-2.5", -3, -2), ("7", 7, 7)];
    for (x, floor, ceil) in pairs {
        assert_eq!(text("x | floor", x), floor.to_string());
        assert_eq!(text("x | ceil", x), ceil.to_string());
    }
    assert!(eval("x | floor", Value::from(1e300)).is_err());
}

proptest::proptest! {
    #[test]
    fn any_bytes_come_back_from_each_encoding(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
        for expression in ["x | base64 | unbase64", "x | base64url | unbase64", "x | hex | unhex"] {
            let back = eval(expression, Value::from_bytes(bytes.clone())).unwrap();
            let back = bytes::of(&back).unwrap().into_owned();
            proptest::prop_assert_eq!(&back, &bytes);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,80}") {
        for expression in ["x | unbase64", "x | unhex", "x | urldecode", "x | jwt_claims", "x | json_path('$.a')",
            "x | match(x)", "jwt({}, x, 'RS256')"] {
            let _ = eval(expression, Value::from(text.as_str()));
        }
    }
}
