//! Signatures by published vectors.

use super::*;
use crate::encoding::Encoding;
use crate::hash::Hash;
use crate::sign::http_signature::{component_problem, seconds};
use crate::sign::oauth1::base;

fn request(head: &'static str, secure: bool, body: &'static str) -> Outgoing<'static> {
    Outgoing::new(head, secure, vec![body.as_bytes()])
}

fn aws() -> AwsSign<String> {
    AwsSign {
        service: "service".into(),
        region: "us-east-1".into(),
        access_key: "AKIDEXAMPLE".into(),
        secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
        session_token: None,
        payload: Payload::Signed,
    }
}

/// 30 August 2015, 12:36:00 UTC.
const MOMENT: Moment<'_> = Moment {
    seconds: 1_440_938_160,
    nonce: "",
    key: None,
};

#[track_caller]
fn aws_check(sign: AwsSign<String>, head: &'static str, body: &'static str, expected: &str) {
    let headers = Sign::AwsSigv4(sign).headers(&request(head, true, body), MOMENT);
    let headers = headers.unwrap();
    assert!(headers.contains(&("X-Amz-Date".into(), "20150830T123600Z".into())));
    let (name, authorization) = headers.last().unwrap();
    assert_eq!(name, "Authorization");
    assert!(
        authorization.starts_with(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders="
        ),
        "{authorization}"
    );
    let (_, signature) = authorization.split_once("Signature=").unwrap();
    assert_eq!(signature, expected, "{head}: {authorization}");
}

/// Of Amazon's signing test suite, as the library aws-c-auth has it.
#[test]
fn aws_test_suite_holds() {
    let host = "Host:example.amazonaws.com";
    for (start, expected) in [
        (
            "GET /",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            "GET /?Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
            "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
        ),
        (
            "GET /ሴ",
            "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
        ),
        (
            "GET /?ሴ=bar",
            "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
        ),
        (
            "GET //example//",
            "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
        ),
        (
            "GET /example/..",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            "GET /./example",
            "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5",
        ),
        (
            "GET /-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
        ),
        (
            "GET /?Param1=value1",
            "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
        ),
        (
            "GET /?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "GET /?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
        ),
        (
            "POST /?Param1=value1",
            "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
        ),
    ] {
        let head = format!("{start} HTTP/1.1\r\n{host}\r\nUser-Agent: unsigned").leak();
        aws_check(aws(), head, "", expected);
    }
    for (headers, expected) in [
        (
            "My-Header1:value2\r\nMy-Header1:value2\r\nMy-Header1:value1",
            "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
        ),
        (
            "My-Header1: value1\r\nMy-Header2: \"a   b   c\"",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        ),
    ] {
        let head = format!("GET / HTTP/1.1\r\n{host}\r\n{headers}").leak();
        aws_check(aws(), head, "", expected);
    }
}

#[test]
fn aws_tokens_and_bodies_are_signed() {
    let token = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
    let with_token = AwsSign {
        session_token: Some(token.into()),
        ..aws()
    };
    aws_check(
        with_token,
        "POST / HTTP/1.1\r\nHost:example.amazonaws.com",
        "",
        "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
    );
    aws_check(
        aws(),
        "POST / HTTP/1.1\r\nContent-Type:application/x-www-form-urlencoded; charset=utf-8\r\nHost:example.amazonaws.com\r\n\
         Content-Length:13\r\nx-amz-content-sha256:9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e",
        "Param1=value1",
        "328d1b9eaadca9f5818ef05e8392801e091653bafec24fcab71e7344e7f51422",
    );
}

/// Of Amazon's documentation of S3, “Examples: signature calculations”: GET object, with the hash of an empty body.
#[test]
fn s3_example_holds_and_an_unsigned_body_says_so() {
    let sign = AwsSign {
        service: "s3".into(),
        access_key: "AKIAIOSFODNN7EXAMPLE".into(),
        secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
        ..aws()
    };
    let head = "GET /test.txt HTTP/1.1\r\nHost: examplebucket.s3.amazonaws.com\r\nRange: bytes=0-9";
    // 24 May 2013.
    let moment = Moment {
        seconds: 1_369_353_600,
        nonce: "",
        key: None,
    };
    let headers = Sign::AwsSigv4(sign.clone()).headers(&request(head, true, ""), moment);
    let expected = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
                    SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
                    Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
    assert_eq!(headers.unwrap().last().unwrap().1, expected);
    let unsigned = AwsSign {
        payload: Payload::Unsigned,
        service: "other".into(),
        ..sign
    };
    let of = |body| Sign::AwsSigv4(unsigned.clone()).headers(&request(head, true, body), moment);
    let headers = of("a body").unwrap();
    let says = (
        "X-Amz-Content-Sha256".to_owned(),
        "UNSIGNED-PAYLOAD".to_owned(),
    );
    assert!(headers.contains(&says));
    assert_eq!(headers, of("another").unwrap());
}

/// The request of RFC 9421, appendix B.2.
const MESSAGE: &str = "POST /foo?param=Value&Pet=dog HTTP/1.1\r\nHost: example.com\r\nDate: Tue, 20 Apr 2021 02:07:55 GMT\r\n\
                       Content-Type: application/json\r\nContent-Length: 18";
const BODY: &str = r#"{"hello": "world"}"#;

fn message_sign(
    label: &str,
    algorithm: KeyAlgorithm,
    key_id: &str,
    key: &str,
    components: &[&str],
) -> HttpSign<String> {
    HttpSign {
        key: key.into(),
        algorithm,
        key_id: key_id.into(),
        label: label.into(),
        expires: None,
        components: components.iter().map(|one| (*one).to_owned()).collect(),
    }
}

fn message_headers(sign: HttpSign<String>) -> Vec<Header> {
    let moment = Moment {
        seconds: 1_618_884_473,
        nonce: "",
        key: None,
    };
    let headers = Sign::HttpSignature(sign).headers(&request(MESSAGE, true, BODY), moment);
    headers.unwrap()
}

/// RFC 9421, appendix B.2.6.
#[test]
fn message_signature_by_ed25519_is_the_published_one() {
    let key = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n";
    let components = [
        "date",
        "@method",
        "@path",
        "@authority",
        "content-type",
        "content-length",
    ];
    let sign = message_sign(
        "sig-b26",
        KeyAlgorithm::Ed25519,
        "test-key-ed25519",
        key,
        &components,
    );
    let expected = [
        (
            "Signature-Input",
            "sig-b26=(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \"content-length\");created=1618884473;keyid=\"test-key-ed25519\"",
        ),
        (
            "Signature",
            "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
        ),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(message_headers(sign), expected);
}

/// RFC 9421, appendix B.2.5: its key is bytes, so the base is signed here by the same function with them.
#[test]
fn message_signature_by_hmac_is_the_published_one() {
    let sign = message_sign(
        "sig-b25",
        KeyAlgorithm::HmacSha256,
        "test-shared-secret",
        "",
        &["date", "@authority", "content-type"],
    );
    let (base, _) = sign
        .base(&request(MESSAGE, true, BODY), &[], 1_618_884_473)
        .unwrap();
    let key =
        "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==";
    let key = Encoding::Base64.decode(key.as_bytes()).unwrap();
    let tag = crate::hash::hmac(Hash::Sha256, &key, base.as_bytes()).unwrap();
    let expected = "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=";
    assert_eq!(Encoding::Base64.encode(tag.as_ref()), expected);
}

/// The digest of RFC 9530, appendix B.1, and the components of RFC 9421, section 2.2.
#[test]
fn digest_is_made_and_all_components_are_known() {
    let components = [
        "content-digest",
        "@target-uri",
        "@scheme",
        "@request-target",
        "@query",
    ];
    let sign = HttpSign {
        expires: Some("5m".into()),
        ..message_sign("a", KeyAlgorithm::HmacSha256, "k\"1", "key", &components)
    };
    let headers = message_headers(sign.clone());
    let digest = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";
    assert_eq!(headers[0], ("Content-Digest".into(), digest.into()));
    assert!(
        headers[1]
            .1
            .ends_with(";created=1618884473;expires=1618884773;keyid=\"k\\\"1\"")
    );
    let request = Outgoing::new(MESSAGE, false, Vec::new());
    let (base, _) = sign.base(&request, &headers[..1], 1).unwrap();
    let lines: Vec<&str> = base.lines().collect();
    let uri = "http://example.com/foo?param=Value&Pet=dog";
    assert_eq!(lines[1], format!("\"@target-uri\": {uri}"));
    assert_eq!(lines[2], "\"@scheme\": http");
    assert_eq!(lines[3], "\"@request-target\": /foo?param=Value&Pet=dog");
    assert_eq!(lines[4], "\"@query\": ?param=Value&Pet=dog");
    let missing = message_sign("a", KeyAlgorithm::HmacSha256, "k", "key", &["x-none"]);
    let said = missing.base(&request, &[], 1).unwrap_err();
    assert_eq!(said, "the request has no header `x-none` to sign");
    let times = ["5m", "90s", "2h", "7", "soon", "-1s", "1d"].map(|text| seconds(text).ok());
    assert_eq!(
        times,
        [Some(300), Some(90), Some(7_200), Some(7), None, None, None]
    );
    for (name, is_good) in [
        ("@method", true),
        ("x-a", true),
        ("@status", false),
        ("X-A", false),
        ("", false),
    ] {
        assert_eq!(component_problem(name).is_none(), is_good, "{name}");
    }
}

fn oauth(method: OauthMethod) -> OauthSign<String> {
    OauthSign {
        consumer_key: "dpf43f3p2l4k3l03".into(),
        consumer_secret: "kd94hf93k423kf44".into(),
        token: Some("nnch734d00sl2jdk".into()),
        token_secret: Some("pfkkdhi9sl3r4s00".into()),
        method,
    }
}

/// RFC 5849, sections 1.2 and 2.1.
#[test]
fn oauth_signature_is_the_published_one() {
    let head =
        "GET /photos?file=vacation.jpg&size=original HTTP/1.1\r\nHost: photos.example.net:80";
    let moment = Moment {
        seconds: 137_131_202,
        nonce: "chapoH",
        key: None,
    };
    let headers =
        Sign::Oauth1(oauth(OauthMethod::HmacSha1)).headers(&request(head, false, ""), moment);
    let header = &headers.unwrap()[0].1;
    assert!(header.starts_with("OAuth oauth_consumer_key=\"dpf43f3p2l4k3l03\", "));
    let signature = "oauth_signature=\"MdpQcU8iPSUjWoN%2FUDMsK2sui9I%3D\"";
    assert!(header.ends_with(signature), "{header}");
    let plain =
        Sign::Oauth1(oauth(OauthMethod::Plaintext)).headers(&request(head, true, ""), moment);
    let header = &plain.unwrap()[0].1;
    assert!(header.ends_with("oauth_signature=\"kd94hf93k423kf44%26pfkkdhi9sl3r4s00\""));
    assert!(!header.contains("nonce"));
}

/// RFC 5849, section 3.4.1.1, and the signature of its erratum 2550.
#[test]
fn oauth_base_string_is_the_published_one() {
    let head = "POST /request?b5=%3D%253D&a3=a&c%40=&a2=r%20b HTTP/1.1\r\nHost: EXAMPLE.com\r\n\
                Content-Type: application/x-www-form-urlencoded";
    let request = request(head, false, "c2&a3=2+q");
    let sign = OauthSign {
        consumer_key: "9djdj82h48djs9d2".to_owned(),
        consumer_secret: "j49sk3j29djd".into(),
        token: Some("kkk9d7dh3k39sjv7".into()),
        token_secret: Some("dh893hdasih9".into()),
        method: OauthMethod::HmacSha1,
    };
    let own = [
        ("oauth_consumer_key", "9djdj82h48djs9d2".to_owned()),
        ("oauth_token", "kkk9d7dh3k39sjv7".to_owned()),
        ("oauth_signature_method", "HMAC-SHA1".to_owned()),
        ("oauth_timestamp", "137131201".to_owned()),
        ("oauth_nonce", "7d8f3e4a".to_owned()),
    ];
    let expected = "POST&http%3A%2F%2Fexample.com%2Frequest&a2%3Dr%2520b%26a3%3D2%2520q%26a3%3Da%26b5%3D%253D%25253D%26c%2540%3D%26c2%3D%26\
                    oauth_consumer_key%3D9djdj82h48djs9d2%26oauth_nonce%3D7d8f3e4a%26oauth_signature_method%3DHMAC-SHA1%26\
                    oauth_timestamp%3D137131201%26oauth_token%3Dkkk9d7dh3k39sjv7";
    assert_eq!(base(&request, &own), expected);
    let moment = Moment {
        seconds: 137_131_201,
        nonce: "7d8f3e4a",
        key: None,
    };
    let headers = Sign::Oauth1(sign).headers(&request, moment).unwrap();
    assert!(
        headers[0]
            .1
            .contains("oauth_signature=\"r6%2FTJjbCOr97%2F%2BUU0NsvSne7s5g%3D\"")
    );
}

#[test]
fn parts_of_a_request_are_as_sent() {
    let request = Outgoing::new(
        "PUT /a/b?z=1&a=2 HTTP/1.1\r\nHost: h:81\r\nX: y",
        false,
        vec![b"one ", b"two"],
    );
    for (name, expected) in [
        ("method", "PUT"),
        ("path", "/a/b"),
        ("query", "z=1&a=2"),
        ("query_sorted", "a=2&z=1"),
        ("host", "h:81"),
        ("body", "one two"),
    ] {
        assert_eq!(request.part(name).unwrap(), expected, "{name}");
    }
    assert_eq!(
        request.part("body_sha256").unwrap(),
        crate::sha256(b"one two")
    );
    let binary = Outgoing::new("PUT / HTTP/1.1", false, vec![&[255]]);
    assert!(binary.part("body").unwrap_err().contains("body_sha256"));
    let names = names_with_parts(&["password".to_owned(), "path".to_owned()]);
    assert_eq!(names[..4], ["password", "", "method", "path"]);
    let hmac = HmacSign {
        key: "Jefe".to_owned(),
        algorithm: Hash::Sha256,
        encoding: Encoding::Hex,
        over: String::new(),
        headers: [("X-Sum", "signature"), ("X-Time", "")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    };
    // RFC 4231, 4.3.
    let sum = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(
        hmac.signature(b"Jefe", "what do ya want for nothing?")
            .unwrap(),
        sum
    );
    assert_eq!(
        Sign::Hmac(hmac).secret_headers(|text, name| text == name),
        ["x-sum"]
    );
}
