//! Request signing, as written in workload files.

use lab_study::load_workload;
use lab_workload::sign::Sign;
use lab_workload::{Message, Template, Workload};

struct Text(String);

impl lab_study::Files for Text {
    fn read(&self, _: &str) -> Result<Vec<u8>, std::io::Error> {
        Ok(self.0.clone().into_bytes())
    }
}

fn load(top: &str, steps: &str) -> Result<Workload, String> {
    let text = format!("workload: w\n{top}session:\n  steps:\n{steps}");
    load_workload("w.yaml", &Text(text)).map_err(|error| format!("{error:?}"))
}

const HMAC: &str = r#"sign: { hmac: { key: k, over: "{{ method }} {{ timestamp }}", headers: { X-S: "{{ signature }}" } } }"#;

fn kinds(workload: &Workload) -> Vec<Option<&'static str>> {
    let kind = |sign: &Sign<_>| match sign {
        Sign::Hmac(_) => "hmac",
        Sign::AwsSigv4(_) => "aws",
        Sign::HttpSignature(_) => "http",
        Sign::Oauth1(_) => "oauth",
    };
    let requests = workload.requests();
    requests.map(|one| one.sign.as_deref().map(kind)).collect()
}

#[test]
fn request_step_and_workload_say_what_signs() {
    let steps = r#"
    - { step: a, request: GET /a }
    - { step: b, request: GET /b, sign: none }
    - step: c
      sign: { aws_sigv4: { service: s3, region: r, access_key: a, secret_key: s } }
      requests:
        - GET /c
        - { request: GET /d, sign: none }
        - { request: GET /e, sign: { oauth1: { consumer_key: a, consumer_secret: b, method: PLAINTEXT } } }
    - step: f
      request: GET /f
      sign: { http_signature: { key: k, algorithm: hmac-sha256, key_id: i, expires: 5m, components: ["@method", x-a] } }
    - { step: g, request: GET /g }
"#;
    let workload = load(&format!("{HMAC}\n"), steps).unwrap();
    let expected = [
        Some("hmac"),
        None,
        Some("aws"),
        None,
        Some("oauth"),
        Some("http"),
        Some("hmac"),
    ];
    assert_eq!(kinds(&workload), expected);
    // Each but `b` has the time of day, `c` by its first request.
    assert_eq!(workload.unseeded_steps(), ["a", "c", "f", "g"]);
    // The same after serialization for another process.
    let message = serde_json::to_string(&Message::new(&workload).unwrap()).unwrap();
    let message: Message = serde_json::from_str(&message).unwrap();
    let again = message.workload().unwrap();
    assert_eq!(kinds(&again), expected);
    let signs = |of: &Workload| -> Vec<_> { of.requests().map(|one| one.sign.clone()).collect() };
    assert_eq!(signs(&again), signs(&workload));
    let Some(Sign::HttpSignature(http)) = workload.requests().nth(5).unwrap().sign.as_deref()
    else {
        panic!("it is signed");
    };
    assert_eq!(
        (
            http.expires.as_ref().map(Template::source),
            http.label.as_str()
        ),
        (Some("5m"), "sig1")
    );
}

#[test]
fn a_signature_without_a_time_is_fixed_by_the_seed() {
    let sign = HMAC.replace("timestamp", "nonce");
    let workload = load(&format!("{sign}\n"), "    - { step: a, request: GET /a }\n").unwrap();
    assert!(workload.unseeded_steps().is_empty());
}

#[test]
fn what_is_wrong_is_told() {
    for (top, sign, expected) in [
        ("", "sign: nobody", "`nobody` signs nothing"),
        ("", "sign: {}", "sign: "),
        (
            "",
            "sign: { hmac: { key: k, over: x, headers: { A: b } }, oauth1: { consumer_key: a, consumer_secret: b } }",
            "sign: ",
        ),
        (
            "",
            "sign: { hmac: { key: k, over: '{{ metod }}', headers: { A: b } } }",
            "there is no variable `metod`",
        ),
        (
            "",
            "sign: { hmac: { key: k, over: x } }",
            "missing field `headers`",
        ),
        (
            "",
            "sign: { hmac: { key: k, over: x, algorithm: md4, headers: { A: b } } }",
            "unknown variant `md4`",
        ),
        (
            "",
            "sign: { hmac: { key: k, over: x, algorithm: md5, headers: { A: b } } }",
            "HMAC by MD5 is not supported",
        ),
        (
            "",
            "sign: { hmac: { key: k, over: x, headers: { 'A B': b } } }",
            "`A B` is not a header's name",
        ),
        (
            "",
            "sign: { aws_sigv4: { service: s3, region: r, access_key: a, secret_key: '{{ method }}' } }",
            "there is no variable `method`",
        ),
        (
            "",
            "sign: { aws_sigv4: { service: s3, region: r, access_key: a, secret_key: s, payload: some } }",
            "unknown variant `some`",
        ),
        (
            "",
            "sign: { http_signature: { key: k, algorithm: ed25519, key_id: i, components: ['@status'] } }",
            "there is no component `@status`",
        ),
        (
            "",
            "sign: { http_signature: { key: k, algorithm: ed25519, key_id: i, label: 'A b', components: ['@path'] } }",
            "a label is of lower-case letters",
        ),
        (
            "",
            "sign: { http_signature: { key: k, algorithm: ed25519, key_id: i, expires: soon, components: ['@path', '@path'] } }",
            "is listed twice",
        ),
        (
            "protocol: redis\n",
            HMAC,
            "`sign` belongs to requests of HTTP",
        ),
    ] {
        let steps = format!("    - step: a\n      request: GET /a\n      {sign}\n");
        let told = load(top, &steps).expect_err(sign);
        assert!(told.contains(expected), "{sign}: {told}");
    }
    let told = load(
        &format!("protocol: redis\n{HMAC}\n"),
        "    - { step: a, request: GET a }\n",
    );
    let told = told.unwrap_err();
    assert!(
        told.contains("`sign` belongs to requests of HTTP"),
        "{told}"
    );
}
