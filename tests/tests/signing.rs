//! Requests that are signed, against a server that verifies them by another library.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use plimsoll_tests::program;
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

fn is_signed(text: &str, signature: &[u8]) -> bool {
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).expect("a key");
    mac.update(text.as_bytes());
    mac.verify_slice(signature).is_ok()
}

/// Whether a payment is signed, and was a minute ago at most.
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

/// Whether a token is signed, is of a user, and holds.
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

/// Answers 200 to what is signed and 401 to all else.
fn serve(stream: &TcpStream) -> Option<()> {
    let mut input = BufReader::new(stream);
    let mut output = stream;
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let header = |name: &str| {
            let mut fields = lines.iter().filter_map(|line| line.split_once(": "));
            let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_owned())
        };
        let length = header("content-length").map_or(0, |text| text.parse().expect("a length"));
        let mut body = vec![0; length];
        input.read_exact(&mut body).ok()?;
        let body = String::from_utf8(body).ok()?;
        let is_good = match lines.first()?.starts_with("POST /pay ") {
            true => is_payment(header, &body),
            false => header("authorization").and_then(|token| is_token(&token)),
        };
        let status = if is_good == Some(true) {
            "200 OK"
        } else {
            "401 Unsigned"
        };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        output.write_all(answer.as_bytes()).ok()?;
    }
}

#[test]
fn signed_requests_are_accepted_and_the_steps_of_the_moment_are_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(&stream));
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("signed.workload.yaml"), WORKLOAD).expect("written");
    let study = format!(
        "study: signed\ntitle: Signed requests\nworkload: signed\nrepeats: 0\n\
         system: {{ attach: {{ url: \"http://127.0.0.1:{port}\" }} }}\nload: {{ users: 3, hold: 2s }}\n"
    );
    fs::write(folder.path().join("signed.study.yaml"), study).expect("written");
    let plimsoll = |arguments: &[&str], key: &str| {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .current_dir(folder.path())
            .env("API_KEY", key);
        command
            .env("PLIMSOLL_PATIENCE", "0")
            .env("PLIMSOLL_STATE", folder.path().join("state"));
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    let (planned, _) = plimsoll(&["plan", "signed.study.yaml"], KEY);
    let line = "not fixed by the seed (time of day, random signatures): Pay, Read\n";
    assert!(planned.contains(line), "{planned}");
    let errors = |out: &str, key: &str| {
        let ran = plimsoll(&["run", "signed.study.yaml", "--out", out], key);
        let (json, told) = plimsoll(&["report", out, "--format", "json"], key);
        let result: Value =
            serde_json::from_str(&json).unwrap_or_else(|_| panic!("{ran:?} {told}"));
        assert_eq!(
            result["study"]["unseeded_steps"],
            serde_json::json!(["Pay", "Read"])
        );
        let trial = &result["trials"][0];
        let count = |name: &str| trial[name].as_u64().expect("a count");
        (count("transactions"), count("errors"))
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
