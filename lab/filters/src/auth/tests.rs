//! Vectors of the RFCs, and challenges as servers send them.

use proptest::prelude::*;

use super::*;

fn mufasa() -> Digest<String> {
    Digest {
        username: "Mufasa".to_owned(),
        password: "Circle of Life".to_owned(),
    }
}

const CHALLENGE: &str = "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=SHA-256, \
                         nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
                         opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";
const CNONCE: &str = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";

fn response(challenge: &str) -> String {
    let answer = Answer::to(challenge).unwrap();
    let header = answer.header(&mufasa(), ("GET", "/dir/index.html"), (1, CNONCE));
    let (_, after) = header.split_once("response=\"").unwrap();
    after.split('"').next().unwrap().to_owned()
}

/// RFC 7616, section 3.9.1.
#[test]
fn vectors_of_the_rfc() {
    assert_eq!(
        response(CHALLENGE),
        "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"
    );
    let md5 = CHALLENGE.replace("SHA-256", "MD5");
    assert_eq!(response(&md5), "8ca523f5e9506fed4657c9700eebdbec");
    // A server may offer both, in the order of its preference.
    let both = format!("{CHALLENGE}, {md5}");
    assert_eq!(response(&both), response(CHALLENGE));
}

/// The example of RFC 2069, corrected by erratum 749: a server without `qop`.
#[test]
fn a_server_without_qop_gets_no_count() {
    let answer = Answer::to(
        "Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", \
         opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"",
    );
    let who = Digest {
        username: "Mufasa".to_owned(),
        password: "CircleOfLife".to_owned(),
    };
    let header = answer
        .unwrap()
        .header(&who, ("GET", "/dir/index.html"), (1, CNONCE));
    assert_eq!(
        header,
        "Digest username=\"Mufasa\", realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", \
         uri=\"/dir/index.html\", response=\"1949323746fe6a43ef61f9606e7febea\", \
         opaque=\"5ccc069c403ebaf9f0171e9517f40e41\""
    );
}

#[test]
fn the_header_has_all_that_the_rfc_asks_for() {
    let answer = Answer::to(CHALLENGE).unwrap();
    assert!(!answer.is_stale);
    let who = Digest {
        username: "a\"b\\".to_owned(),
        password: "p".to_owned(),
    };
    let header = answer.header(&who, ("PUT", "/x?y=1"), (26, "c"));
    assert!(
        header
            .starts_with("Digest username=\"a\\\"b\\\\\", realm=\"http-auth@example.org\", nonce=")
    );
    assert!(header.contains("uri=\"/x?y=1\""));
    assert!(header.ends_with(
        "algorithm=SHA-256, opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\", cnonce=\"c\", qop=auth, \
         nc=0000001a"
    ));
}

#[test]
fn what_cant_be_answered_is_said() {
    for (header, why) in [
        ("Basic realm=\"x\"", "it asks for no digest"),
        ("", "it asks for no digest"),
        ("Digest realm=\"x\"", "its challenge has no nonce"),
        (
            "Digest nonce=\"x\", algorithm=SHA-512-256",
            "its algorithm is `SHA-512-256`: only MD5 and SHA-256 are known",
        ),
        (
            "Digest nonce=\"x\", qop=\"auth-int\"",
            "it asks for a digest of the body: only `qop=auth` is known",
        ),
    ] {
        assert_eq!(Answer::to(header).unwrap_err(), why, "{header}");
    }
}

#[test]
fn challenges_of_several_schemes_are_told_apart() {
    let all = challenges(
        "Negotiate, Negotiate YWJj==, Basic realm=\"a, b\" , digest nonce=\"n\\\"\", STALE=true,,NTLM",
    );
    let schemes: Vec<&str> = all.iter().map(|one| one.scheme.as_str()).collect();
    assert_eq!(
        schemes,
        ["negotiate", "negotiate", "basic", "digest", "ntlm"]
    );
    assert_eq!(all[2].get("realm"), Some("a, b"));
    assert_eq!(all[3].get("nonce"), Some("n\""));
    let answer = Answer::to("Basic realm=\"x\", Digest nonce=\"n\", stale=TRUE, qop=auth");
    assert!(answer.unwrap().is_stale);
}

#[test]
fn a_grant_says_what_it_needs() {
    let mut auth: Oauth2<String> =
        serde_json::from_value(serde_json::json!({ "token": "POST /t" })).unwrap();
    assert_eq!(auth.missing(), Some("client_id"));
    auth.client_id = Some("c".to_owned());
    assert_eq!(auth.missing(), Some("client_secret"));
    auth.grant = Grant::Password;
    assert_eq!(auth.missing(), Some("username"));
    auth.grant = Grant::RefreshToken;
    auth.refresh_token = Some("r".to_owned());
    assert_eq!(auth.missing(), None);
    auth.client_id = None;
    auth.client_secret = Some("s".to_owned());
    assert_eq!(auth.missing(), Some("client_id"));
}

proptest! {
    #[test]
    fn whatever_a_server_sends_is_read(header in "(Digest|Basic|[a-z=,\"\\\\ ä]{0,4}){0,4}[ -~]{0,60}") {
        let all = challenges(&header);
        prop_assert!(all.len() <= header.len());
        let _answer = Answer::to(&header);
    }

    #[test]
    fn a_quoted_text_comes_back(text in "[ -~ä]{0,30}") {
        let header = format!("Digest nonce={}", super::digest::quoted(&text));
        let all = challenges(&header);
        prop_assert_eq!(all[0].get("nonce"), Some(text.as_str()));
    }
}
