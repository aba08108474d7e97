//! Signed requests, against a server that verifies them with another library.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use plimsoll_tests::web::{self, Received};
use serde_json::Value;
use sha2_next::{Digest, Sha256};

const KEY: &str = "an api key";

const WORKLOAD: &str = r#"
workload: signed
session:
  steps:
    - step: Pay
      wait: 10ms..30ms
      set:
        sent: "{{ now() }}"
        order: '{"amount": 5, "to": "user{{ index }}"}'
        signature: "{{ ('POST\n/pay\n' ~ sent ~ '\n' ~ (order | sha256)) | hmac(secret('API_KEY'), 'sha256', 'base64') }}"
      request: POST /pay
      headers: { X-Timestamp: "{{ sent }}", X-Signature: "{{ signature }}" }
      text: "{{ order }}"
    - step: Read
      request: GET /account
      headers:
        Authorization: "Bearer {{ jwt({'sub': 'user' ~ index, 'exp': now() + 300}, secret('API_KEY'), 'HS256', {'kid': 'k1'}) }}"
"#;

#[expect(
    clippy::disallowed_methods,
    reason = "it is the clock of a server that tokens expire by"
)]
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

/// Signatures of the program: each request gets 503 once and is signed anew, and `/moved` redirects.
const SIGNED: &str = r#"
workload: signatures
sign:
  hmac:
    key: "{{ secret('API_KEY') }}"
    encoding: base64
    over: "{{ method }}\n{{ path }}\n{{ query_sorted }}\n{{ host }}\n{{ timestamp }}\n{{ nonce }}\n{{ body_sha256 }}"
    headers: { X-Timestamp: "{{ timestamp }}", X-Nonce: "{{ nonce }}", X-Sum: "{{ signature }}", X-User: "{{ index }}" }
session:
  steps:
    - step: By hmac
      wait: 10ms..30ms
      request: POST /hmac/a?z=1&b=2
      json: { amount: 5, to: "user{{ index }}" }
      retry: 1
    - step: File by hmac
      request: PUT /hmac/file
      body: { file: body.bin }
      retry: 1
    - step: By AWS
      request: GET /aws/a%20b/?z=1&a=%C3%A4&a
      headers: { X-Own: "{{ index }}" }
      sign:
        aws_sigv4: { service: execute-api, region: eu-west-1, access_key: AKID, secret_key: "{{ secret('API_KEY') }}" }
    - step: Moved
      request: POST /aws/moved
      text: "text {{ index }}"
      follow: 2
      sign:
        aws_sigv4: { service: execute-api, region: eu-west-1, access_key: AKID, secret_key: "{{ secret('API_KEY') }}" }
    - step: Unsigned
      request: GET /plain
      sign: none
"#;

fn is_signed(text: &str, signature: &[u8]) -> bool {
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).expect("a key");
    mac.update(text.as_bytes());
    mac.verify_slice(signature).is_ok()
}

/// Returns true if a payment is signed, at most a minute ago.
fn is_payment(header: impl Fn(&str) -> Option<String>, body: &str) -> Option<bool> {
    let sent = header("x-timestamp")?;
    let signature = STANDARD.decode(header("x-signature")?).ok()?;
    let hash: String = Sha256::digest(body)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let age = now().checked_sub(sent.parse().ok()?)?;
    Some(age < 60 && is_signed(&format!("POST\n/pay\n{sent}\n{hash}"), &signature))
}

/// Returns true if a token is signed, belongs to a user, and is valid.
fn is_token(authorization: &str) -> Option<bool> {
    let (signed, signature) = authorization.strip_prefix("Bearer ")?.rsplit_once('.')?;
    let (head, claims) = signed.split_once('.')?;
    let json = |part: &str| -> Option<Value> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
    };
    let (head, claims) = (json(head)?, json(claims)?);
    let holds = claims["exp"].as_u64()? > now() && claims["sub"].as_str()?.starts_with("user");
    let is_ours = head["alg"] == "HS256" && head["kid"] == "k1";
    Some(holds && is_ours && is_signed(signed, &URL_SAFE_NO_PAD.decode(signature).ok()?))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Returns true if the headers of `hmac` are right, and the nonce is new.
fn is_by_hmac(request: &Received, seen: &Mutex<HashSet<String>>) -> Option<bool> {
    let (path, query) = request.target();
    let mut sorted: Vec<&str> = query.split('&').collect();
    sorted.sort_unstable();
    let (sent, nonce) = (request.header("x-timestamp")?, request.header("x-nonce")?);
    let text = [
        request.method(),
        path,
        &sorted.join("&"),
        &request.header("host")?,
        &sent,
        &nonce,
        &hex(&Sha256::digest(&request.body)),
    ];
    let signature = STANDARD.decode(request.header("x-sum")?).ok()?;
    let is_new = seen.lock().expect("no panic").insert(nonce.clone());
    let age = now().checked_sub(sent.parse().ok()?)?;
    let knows_user = request.header("x-user")?.parse::<u32>().is_ok();
    Some(is_new && knows_user && age < 60 && is_signed(&text.join("\n"), &signature))
}

/// Returns true if the AWS signature is right: the canonical request built from the received one, the key derived.
fn is_by_aws(request: &Received, (path, query): (&str, &str)) -> Option<bool> {
    let authorization = request.header("authorization")?;
    let fields = authorization.strip_prefix("AWS4-HMAC-SHA256 ")?;
    let field = |name: &str| {
        let mut all = fields.split(", ").filter_map(|field| field.split_once('='));
        all.find(|(field, _)| *field == name)
            .map(|(_, value)| value)
    };
    let (names, signature) = (field("SignedHeaders")?, field("Signature")?);
    let date = request.header("x-amz-date")?;
    let scope = field("Credential")?.strip_prefix("AKID/")?;
    let mut canonical = format!("{}\n{path}\n{query}\n", request.method());
    for name in names.split(';') {
        canonical += &format!("{name}:{}\n", request.header(name)?);
    }
    canonical += &format!("\n{names}\n{}", hex(&Sha256::digest(&request.body)));
    let text = format!(
        "AWS4-HMAC-SHA256\n{date}\n{scope}\n{}",
        hex(&Sha256::digest(canonical.as_bytes()))
    );
    let mut key = format!("AWS4{KEY}").into_bytes();
    for part in scope.split('/') {
        key = hmac(&key, part);
    }
    let is_right = scope == format!("{}/eu-west-1/execute-api/aws4_request", &date[..8]);
    let all = names.contains("host") && names.contains("x-amz-date");
    Some(is_right && all && hex(&hmac(&key, &text)) == signature)
}

/// The server's record of its requests.
#[derive(Default)]
struct Seen {
    nonces: Mutex<HashSet<String>>,
    /// Requests of each user and path.
    counts: Mutex<HashMap<String, u64>>,
}

/// Returns the status for a request.
fn status(request: &Received, seen: &Seen) -> &'static str {
    let judged = |found: Option<bool>| match found {
        Some(true) => "200 OK",
        _ => "401 Unsigned",
    };
    match request.target() {
        ("/pay", _) => judged(is_payment(
            |name| request.header(name),
            &String::from_utf8_lossy(&request.body),
        )),
        ("/account", _) => judged(
            request
                .header("authorization")
                .and_then(|one| is_token(&one)),
        ),
        (path, _) if path.starts_with("/hmac/") => match is_by_hmac(request, &seen.nonces) {
            Some(true) => {
                let user = request.header("x-user").unwrap_or_default();
                let mut counts = seen.counts.lock().expect("no panic");
                let count = counts.entry(format!("{user} {path}")).or_default();
                *count += 1;
                match *count % 2 {
                    1 => "503 Again",
                    _ => "200 OK",
                }
            }
            other => judged(other),
        },
        ("/aws/a%20b/", "z=1&a=%C3%A4&a") => {
            judged(is_by_aws(request, ("/aws/a%2520b/", "a=&a=%C3%A4&z=1")))
        }
        ("/aws/moved", "") if is_by_aws(request, ("/aws/moved", "")) == Some(true) => {
            "307 There\r\nLocation: /aws/there?x=y"
        }
        ("/aws/there", "x=y") => judged(is_by_aws(request, ("/aws/there", "x=y"))),
        ("/plain", _) => judged(Some(
            request.header("authorization").is_none() && request.header("x-sum").is_none(),
        )),
        _ => "401 Unsigned",
    }
}

/// A server that answers 200 to signed requests and 401 to all others.
fn start() -> u16 {
    let seen = Seen::default();
    web::serve(move |request| (status(request, &seen).to_owned(), String::new()))
}

/// A folder with a workload and a study of it.
fn folder(name: &str, workload: &str) -> tempfile::TempDir {
    let study = format!(
        "study: {name}\ntitle: Signed requests\nworkload: {name}\nrepeats: 0\n\
         system: {{ attach: {{ url: \"http://127.0.0.1:{}\" }} }}\nload: {{ users: 3, hold: 2s }}\n",
        start()
    );
    web::folder(&[
        (&format!("{name}.workload.yaml"), workload.as_bytes()),
        ("body.bin", &[0, 255, 13, 10]),
        (&format!("{name}.study.yaml"), study.as_bytes()),
    ])
}

/// Runs the program; returns its outputs.
fn plimsoll(folder: &Path, arguments: &[&str], key: &str) -> (String, String) {
    web::plimsoll(folder, arguments, &[("API_KEY", key)])
}

/// The result of a run.
fn result(folder: &Path, study: &str, out: &str, key: &str) -> Value {
    web::result(folder, (study, out), &[("API_KEY", key)]).0
}

/// Transactions and errors of its first trial.
fn counts(result: &Value) -> (u64, u64) {
    let count = |name: &str| result["trials"][0][name].as_u64().expect("a count");
    (count("transactions"), count("errors"))
}

#[test]
fn signatures_of_sign_are_accepted_also_after_retries_and_redirects() {
    let folder = folder("signatures", SIGNED);
    let path = folder.path();
    let study = "signatures.study.yaml";
    let (planned, _) = plimsoll(path, &["plan", study], KEY);
    let line = "not fixed by the seed (time of day, random signatures, what users share): By hmac, File by hmac, By AWS, Moved\n";
    assert!(planned.contains(line), "{planned}");
    let signed = result(path, study, "run", KEY);
    let (good, bad) = counts(&signed);
    assert!(good > 50 && bad == 0, "{good} signed, {bad} not: {signed}");
    let other = result(path, study, "other", "another key");
    let steps = other["trials"][0]["steps"]
        .as_array()
        .expect("steps")
        .clone();
    for step in &steps {
        let (good, bad) = (&step["transactions"], &step["errors"]);
        let is_plain = step["name"] == "Unsigned";
        let (good, bad) = (
            good.as_u64().expect("a count"),
            bad.as_u64().expect("a count"),
        );
        assert_eq!((good > 0, bad > 0), (is_plain, !is_plain), "{step}");
    }
    let (tried, told) = plimsoll(path, &["try", study], KEY);
    assert!(tried.contains("X-Sum: ***"), "{tried} {told}");
    assert!(
        tried.contains("Authorization: AWS4-HMAC-SHA256 ***"),
        "{tried}"
    );
    assert!(
        tried.contains("X-User: 0") && !tried.contains(KEY),
        "{tried}"
    );
}

#[test]
fn signed_requests_are_accepted_and_the_steps_of_the_moment_are_named() {
    let folder = folder("signed", WORKLOAD);
    let (path, study) = (folder.path(), "signed.study.yaml");
    let (planned, _) = plimsoll(path, &["plan", study], KEY);
    let line =
        "not fixed by the seed (time of day, random signatures, what users share): Pay, Read\n";
    assert!(planned.contains(line), "{planned}");
    let errors = |out: &str, key: &str| {
        let result = result(path, study, out, key);
        assert_eq!(
            result["study"]["unseeded_steps"],
            serde_json::json!(["Pay", "Read"])
        );
        counts(&result)
    };
    let (signed, unsigned) = errors("run", KEY);
    assert!(
        signed > 50 && unsigned == 0,
        "{signed} signed, {unsigned} not"
    );
    let (signed, unsigned) = errors("other", "another key");
    assert!(
        signed == 0 && unsigned > 10,
        "{signed} signed, {unsigned} not"
    );
}

#[test]
fn what_the_book_signs_is_accepted() {
    let folder = web::folder_of_page("signing.md", start(), &[]);
    let (path, study) = (folder.path(), "payments.study.yaml");
    let (good, bad) = counts(&result(path, study, "run", KEY));
    assert!(good > 50 && bad == 0, "{good} signed, {bad} not");
    let (good, bad) = counts(&result(path, study, "other", "another key"));
    assert!(good == 0 && bad > 10, "{good} signed, {bad} not");
}
