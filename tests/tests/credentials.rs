//! OAuth 2 tokens that are renewed in the hold, and challenges of HTTP Digest, against servers that verify them with
//! other libraries.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use plimsoll_tests::web::{self, Received};
use serde_json::Value;
use sha2_next::{Digest, Sha256};

/// Secrets that no file of a run may contain.
const SECRET: &str = "a-client&secret";
const FORM_SECRET: &str = "a-client%26secret";
const TOKEN: &str = "tkn-0123456789abcdef-";
const REFRESH: &str = "rfr-0123456789";
const PASSWORD: &str = "pa55-word-literal";

/// The credentials of the client as HTTP Basic has them (RFC 6749, section 2.3.1).
fn basic() -> String {
    STANDARD.encode(format!("client+1:{FORM_SECRET}"))
}

/// The state of a token server.
#[derive(Default)]
struct Issued {
    /// The expiry of each token.
    tokens: HashMap<String, Instant>,
    count: usize,
    refreshed: usize,
    refused: usize,
    /// Requests to the API without any token.
    without: usize,
    /// The connections of requests to the API.
    connections: HashSet<usize>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "it is the clock of a server that tokens expire by"
)]
fn now() -> Instant {
    Instant::now()
}

/// A server that issues tokens with this lifetime, and an API that requires them.
struct TokenServer {
    issued: Mutex<Issued>,
    lives: Duration,
}

impl TokenServer {
    fn start(lives: Duration) -> (Arc<Self>, u16) {
        let server = Arc::new(Self {
            issued: Mutex::default(),
            lives,
        });
        let answering = Arc::clone(&server);
        let port = web::serve(move |request| answering.answer(request));
        (server, port)
    }

    fn answer(&self, request: &Received) -> (String, String) {
        let authorization = request.header("authorization");
        let (status, body) = match (request.method(), request.target().0) {
            ("POST", "/oauth/token") => self.token(request, authorization.as_deref()),
            ("GET", "/open" | "/health") if authorization.is_none() => ("200 OK", String::new()),
            ("GET" | "POST", path) if path.starts_with("/api") || path == "/orders" => {
                let token = authorization.unwrap_or_default();
                let token = token.strip_prefix("Bearer ").unwrap_or_default();
                let mut issued = self.issued.lock().expect("no panic");
                let is_valid = issued.tokens.get(token).is_some_and(|until| now() < *until);
                issued.refused += usize::from(!is_valid);
                issued.without += usize::from(token.is_empty());
                issued.connections.insert(request.connection);
                match is_valid {
                    true => ("200 OK", "{}".to_owned()),
                    // Like some servers, it echoes the token.
                    false => ("401 Expired", format!("{token} is not valid")),
                }
            }
            _ => ("404 Unknown", String::new()),
        };
        let head = format!("{status}\r\nContent-Type: application/json");
        (head, body)
    }

    fn token(&self, request: &Received, authorization: Option<&str>) -> (&'static str, String) {
        let form = String::from_utf8_lossy(&request.body).into_owned();
        let has = |field: &str| form.split('&').any(|one| one == field);
        let is_client = authorization == Some(&format!("Basic {}", basic()))
            || has("client_id=client+1") && has("client_secret=a-client%26secret");
        let mut issued = self.issued.lock().expect("no panic");
        let is_refresh = has("grant_type=refresh_token");
        // The client of the book has no scope.
        let book = STANDARD.encode("load-test:a-client%26secret");
        let is_book = authorization == Some(&format!("Basic {book}"))
            && form == "grant_type=client_credentials";
        let is_granted = has("grant_type=client_credentials") && has("audience=https%3A%2F%2Fapi")
            || has("grant_type=password") && has("username=user0") && has("password=p")
            || is_refresh && has(&format!("refresh_token={REFRESH}"));
        if !(is_client && is_granted && has("scope=api") || is_book) {
            return (
                "400 Bad Request",
                format!("{{\"error\": \"invalid_client\", \"sent\": {form:?}}}"),
            );
        }
        issued.count += 1;
        issued.refreshed += usize::from(is_refresh);
        let token = format!("{TOKEN}{}", issued.count);
        issued.tokens.insert(token.clone(), now() + self.lives);
        let answer = serde_json::json!({
            "access_token": token, "token_type": "bearer", "expires_in": self.lives.as_secs(),
            "refresh_token": REFRESH,
        });
        ("200 OK", answer.to_string())
    }
}

#[test]
fn a_token_endpoint_on_another_server_leaves_the_users_connection_open() {
    let (server, port) = TokenServer::start(Duration::from_secs(3));
    let elsewhere = Arc::clone(&server);
    let tokens = web::serve(move |request| elsewhere.answer(request));
    let workload = SHOP
        .replace(
            "POST /oauth/token",
            &format!("POST http://127.0.0.1:{tokens}/oauth/token"),
        )
        .replace("      parallel: [GET /api/a, GET /api/b]\n", "");
    let folder = folder(port, 4, &workload);
    let trial = trial(folder.path());
    let issued = server.issued.lock().expect("no panic");
    assert!(issued.count >= 8 && issued.refused == 0, "{trial}");
    assert_eq!(issued.connections.len(), 4, "one for each user");
}

/// The environment of the program.
const GIVEN: [(&str, &str); 1] = [("CLIENT_SECRET", SECRET)];

/// A folder with a workload and a study of it with this many users.
fn folder(port: u16, users: u32, workload: &str) -> tempfile::TempDir {
    let study = format!(
        "study: shop\ntitle: Credentials\nworkload: shop\nrepeats: 0\n\
         system: {{ attach: {{ url: \"http://127.0.0.1:{port}\" }} }}\nload: {{ users: {users}, hold: 8s }}\n"
    );
    web::folder(&[
        ("shop.workload.yaml", workload.as_bytes()),
        ("shop.study.yaml", study.as_bytes()),
    ])
}

fn plimsoll(folder: &Path, arguments: &[&str]) -> (String, String) {
    web::plimsoll(folder, arguments, &GIVEN)
}

/// The first trial of a run.
fn trial(folder: &Path) -> Value {
    let (result, _) = web::result(folder, ("shop.study.yaml", "run"), &GIVEN);
    result["trials"][0].clone()
}

/// Transactions, errors, and skips of a step.
fn counts(trial: &Value, name: &str) -> (u64, u64, u64) {
    let steps = trial["steps"].as_array().expect("steps");
    let step = steps.iter().find(|one| one["name"] == name);
    let step = step.unwrap_or_else(|| panic!("no step {name}: {trial}"));
    let count = |name: &str| step[name].as_u64().unwrap_or_default();
    (count("transactions"), count("errors"), count("skipped"))
}

/// Asserts that no file of a folder holds these texts.
fn assert_absent(folder: &Path, secrets: &[&str]) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            assert_absent(&path, secrets);
            continue;
        }
        let bytes = fs::read(&path).expect("a file");
        for secret in secrets {
            let found = bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} is in {}", path.display());
        }
    }
}

const SHOP: &str = r#"
workload: shop
auth:
  oauth2:
    token: POST /oauth/token
    client_id: client 1
    client_secret: "{{ secret('CLIENT_SECRET') }}"
    scope: api
    form: { audience: "https://api" }
    renew: 1s
session:
  steps:
    - { step: Read, wait: 50ms..150ms, request: "GET /api/{{ index }}" }
    - step: Pay
      requests: [POST /api/pay, GET /api/receipt]
      parallel: [GET /api/a, GET /api/b]
    - { step: Open, request: GET /open, auth: none }
"#;

#[test]
fn tokens_are_renewed_in_the_hold_and_no_request_is_refused() {
    let (server, port) = TokenServer::start(Duration::from_secs(3));
    let folder = folder(port, 4, SHOP);
    let (planned, told) = plimsoll(folder.path(), &["plan", "shop.study.yaml"]);
    assert!(planned.contains("fewest and most"), "{planned} {told}");
    let trial = trial(folder.path());
    let (tokens, failed, _) = counts(&trial, "auth: Token");
    let issued = server.issued.lock().expect("no panic");
    // Each token lives for 3 s and is renewed after 2 s.
    assert!(
        (8..=40).contains(&tokens) && failed == 0,
        "{tokens} renewed, {failed} not: {trial}"
    );
    assert_eq!((issued.refused, issued.refreshed), (0, 0), "{trial}");
    assert!(issued.count as u64 >= tokens + 4, "{} issued", issued.count);
    for (step, least) in [("Read", 100), ("Pay", 100), ("Open", 100)] {
        let (good, bad, skipped) = counts(&trial, step);
        assert!(
            good > least && bad == 0 && skipped == 0,
            "{step}: {good} {bad} {skipped}"
        );
    }
    assert_absent(
        &folder.path().join("run"),
        &[TOKEN, SECRET, FORM_SECRET, &basic()],
    );
}

#[test]
fn a_worker_shares_one_token_that_a_refresh_token_renews() {
    let (server, port) = TokenServer::start(Duration::from_secs(3));
    let workload = SHOP
        .replace("    form: { audience: \"https://api\" }\n", "    grant: password\n    username: user0\n    password: p\n    per: worker\n    client_auth: body\n");
    let folder = folder(port, 40, &workload);
    let trial = trial(folder.path());
    let (tokens, failed, _) = counts(&trial, "auth: Token");
    let issued = server.issued.lock().expect("no panic");
    assert!(
        (2..=40).contains(&tokens) && failed == 0,
        "{tokens} renewed, {failed} not: {trial}"
    );
    assert_eq!(issued.refused, 0, "{trial}");
    // All tokens but the first of each worker.
    assert!(
        issued.refreshed as u64 >= tokens && issued.count < 40,
        "{} {}",
        issued.refreshed,
        issued.count
    );
    assert!(counts(&trial, "Read").0 > 1000, "{trial}");
}

#[test]
fn a_refused_token_is_replaced_and_without_one_nothing_is_sent() {
    // The server revokes tokens long before they expire.
    let (server, port) = TokenServer::start(Duration::from_secs(3600));
    let folder = folder(port, 2, SHOP);
    let (tried, told) = plimsoll(folder.path(), &["try", "shop.study.yaml"]);
    assert!(tried.contains("auth: Token"), "{tried} {told}");
    assert!(tried.contains("Authorization: Bearer ***"), "{tried}");
    assert!(tried.contains("Authorization: Basic ***"), "{tried}");
    assert!(
        ![TOKEN, SECRET, FORM_SECRET, &basic()]
            .iter()
            .any(|secret| tried.contains(secret)),
        "{tried}"
    );
    let revoked = Arc::clone(&server);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let revoking = std::thread::spawn(move || {
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_millis(700));
            revoked.issued.lock().expect("no panic").tokens.clear();
        }
    });
    let trial = trial(folder.path());
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    revoking.join().expect("it ends");
    let (tokens, failed, _) = counts(&trial, "auth: Token");
    let (good, bad, _) = counts(&trial, "Read");
    assert!(
        tokens > 4 && failed == 0 && good > 20,
        "{tokens} {failed} {good} {bad}: {trial}"
    );
    assert!(bad > 0, "a revoked token is refused: {trial}");
    let issued = server.issued.lock().expect("no panic");
    assert!(issued.refused > 0 && issued.without == 0, "{trial}");
    // The server echoes a refused token; the archive masks it.
    assert_absent(&folder.path().join("run"), &[TOKEN, SECRET]);
}

#[test]
fn the_shop_of_the_book_is_served() {
    let (server, port) = TokenServer::start(Duration::from_secs(2));
    let folder = web::folder_of_page("credentials.md", port, &[]);
    let (planned, told) = plimsoll(folder.path(), &["plan", "shop.study.yaml"]);
    let line = "tokens of OAuth 2 by the step “auth: Token”, one for each user:\n  3 in the setup of the largest trial, 0 to ";
    assert!(planned.contains(line), "{planned} {told}");
    let trial = trial(folder.path());
    let (tokens, failed, _) = counts(&trial, "auth: Token");
    assert!(tokens >= 6 && failed == 0, "{tokens} {failed}: {trial}");
    for step in ["Read", "Order", "Health"] {
        let (good, bad, skipped) = counts(&trial, step);
        assert!(good > 20 && bad + skipped == 0, "{step}: {trial}");
    }
    assert_eq!(server.issued.lock().expect("no panic").refused, 0);
}

/// A server that echoes all that it receives, and fails most requests.
fn indiscreet() -> u16 {
    let count = AtomicUsize::new(0);
    web::serve(move |request| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        let authorization = request.header("authorization").unwrap_or_default();
        let decoded = authorization.strip_prefix("Basic ").map(|text| {
            let bytes = STANDARD.decode(text).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let form = String::from_utf8_lossy(&request.body);
        let sent = format!("{authorization} {} {form}", decoded.unwrap_or_default());
        if request.target().0 == "/oauth/token" && n % 3 != 2 {
            let answer = serde_json::json!({
                "access_token": format!("{TOKEN}{n}"), "expires_in": 1, "refresh_token": format!("{REFRESH}{n}"),
            });
            return ("200 OK".to_owned(), answer.to_string());
        }
        // An example has the first 200 bytes of an answer, which end within a secret.
        let before = "x".repeat(150 + n % 60);
        let token = authorization.strip_prefix("Bearer ").unwrap_or("none");
        let there = format!("302 There\r\nLocation: /login?from={token}");
        let statuses = match request.target().0 {
            "/oauth/token" => ["401 Who are you", "400 No", "500 No", &there],
            _ => ["401 Who are you", "200 OK", "500 No", &there],
        };
        let status = statuses[n / 3 % 4];
        let challenge = "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"";
        (
            format!("{status}\r\n{challenge}\r\nX-Sent: {sent}"),
            format!("{before} {sent}"),
        )
    })
}

#[test]
fn no_secret_is_in_an_archive_an_example_a_trace_or_a_page() {
    let port = indiscreet();
    let oauth2 = |more: &str| {
        format!(
            "workload: shop\nauth: {{ oauth2: {{ token: POST /oauth/token, client_id: c, scope: api, {more} }} }}\n\
             session:\n  steps:\n    - {{ step: Read, wait: 10ms, request: \"GET /api\" }}\n    \
             - {{ step: Pages, parallel: [GET /api/a, GET /api/b] }}\n"
        )
    };
    let literal = format!("client_secret: \"{SECRET}\"");
    let given = "client_secret: \"{{ secret('CLIENT_SECRET') }}\"";
    let password = format!("grant: password, username: u, password: \"{PASSWORD}\"");
    let digest = |password: &str| {
        format!(
            "workload: shop\nauth: {{ digest: {{ username: u, password: \"{password}\" }} }}\n\
             session: {{ steps: [{{ step: Read, wait: 10ms, request: \"GET /api\" }}] }}\n"
        )
    };
    for workload in [
        oauth2(&literal),
        oauth2(&format!("{given}, client_auth: body")),
        oauth2(&format!("{literal}, {password}")),
        oauth2(&format!(
            "{given}, per: worker, grant: refresh_token, refresh_token: \"{REFRESH}\""
        )),
        digest(PASSWORD),
        digest("{{ secret('CLIENT_SECRET') }}"),
    ] {
        let folder = folder(port, 3, &workload);
        let study = folder.path().join("shop.study.yaml");
        let short = fs::read_to_string(&study)
            .expect("a study")
            .replace("hold: 8s", "hold: 3s");
        fs::write(&study, short).expect("written");
        let mut said = plimsoll(folder.path(), &["run", "shop.study.yaml", "--out", "run"]);
        let tried = ["try", "shop.study.yaml", "--full", "--har", "run/try.har"];
        for arguments in [
            &tried[..],
            &["plan", "shop.study.yaml"],
            &["report", "run"],
            &["report", "run", "--format", "html"],
            &["report", "run", "--format", "md"],
            &["report", "run", "--format", "json"],
            &["report", "run", "--format", "junit"],
        ] {
            let (output, errors) = plimsoll(folder.path(), arguments);
            said.0 += &output;
            said.1 += &errors;
        }
        assert!(said.0.contains("xxxx"), "no example: {said:?}");
        fs::write(folder.path().join("run/said"), said.0 + &said.1).expect("written");
        assert!(folder.path().join("run/try.har").exists());
        assert_absent(
            &folder.path().join("run"),
            &[
                &TOKEN[..4],
                &REFRESH[..4],
                SECRET,
                "client%26secret",
                "client&amp;secret",
                "a-client",
                &PASSWORD[..6],
                // `c:a-client%26secret`
                &STANDARD.encode("c:a-client%26secret")[..12],
            ],
        );
    }
}

/// The state of a Digest server: the counts that each nonce was used with.
#[derive(Default)]
struct Challenged {
    nonces: HashMap<String, HashSet<u32>>,
    challenges: usize,
    stale: usize,
    /// Whether a nonce with fewer than three answers is sent again.
    is_given_again: bool,
    last: usize,
    wrong: Vec<String>,
}

fn hex<D: Digest>(text: &str) -> String {
    let sum = D::digest(text.as_bytes());
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A parameter of a Digest header.
fn field<'a>(header: &'a str, name: &str) -> &'a str {
    let header = header.strip_prefix("Digest ").unwrap_or(header);
    let mut fields = header.split(", ").filter_map(|field| field.split_once('='));
    let found = fields.find(|(one, _)| *one == name);
    found.map_or("", |(_, value)| value.trim_matches('"'))
}

/// Answers a Digest request: a nonce is valid for ten requests, each with another count.
fn answer_digest(request: &Received, known: &mut Challenged) -> String {
    let hash: fn(&str) -> String = match request.target().0.starts_with("/md5") {
        true => hex::<Md5>,
        false => hex::<Sha256>,
    };
    let is_session = request.target().0.ends_with("sess");
    let algorithm = match (request.target().0.starts_with("/md5"), is_session) {
        (true, false) => "MD5",
        (true, true) => "MD5-sess",
        (false, false) => "SHA-256",
        (false, true) => "SHA-256-sess",
    };
    let header = request.header("authorization").unwrap_or_default();
    let header = header.as_str();
    let (nonce, cnonce, uri) = (
        field(header, "nonce"),
        field(header, "cnonce"),
        field(header, "uri"),
    );
    let of_path = format!("{algorithm}:");
    let mut stale = "";
    let counts = known.nonces.get_mut(nonce);
    if let Some(counts) = counts.filter(|_| nonce.starts_with(&of_path)) {
        let user = field(header, "username");
        let mut secret = hash(&format!("{user}:a realm:pw {user}"));
        if is_session {
            secret = hash(&format!("{secret}:{nonce}:{cnonce}"));
        }
        let target = request.line().split(' ').nth(1).unwrap_or_default();
        let request = hash(&format!("{}:{target}", request.method()));
        let nc = field(header, "nc");
        let right = hash(&format!("{secret}:{nonce}:{nc}:{cnonce}:auth:{request}"));
        let count = u32::from_str_radix(nc, 16).unwrap_or_default();
        let is_new = counts.insert(count);
        if field(header, "response") != right || !is_new || uri != target || cnonce.len() < 16 {
            known.wrong.push(header.to_owned());
        } else if (1..=10).contains(&count) {
            return "200 OK".to_owned();
        } else {
            known.stale += 1;
            stale = ", stale=true";
        }
    }
    known.challenges += 1;
    let answered = known.nonces.get(&format!("{of_path}{}", known.last));
    if !known.is_given_again || answered.is_none_or(|counts| counts.len() >= 3) {
        known.last = known.challenges;
    }
    let nonce = format!("{of_path}{}", known.last);
    known.nonces.entry(nonce.clone()).or_default();
    format!(
        "401 Who are you\r\nWWW-Authenticate: Basic realm=\"a realm\"\r\nWWW-Authenticate: Digest realm=\"a realm\", \
         qop=\"auth\", algorithm={algorithm}, nonce=\"{nonce}\", opaque=\"o\"{stale}"
    )
}

#[test]
fn challenges_of_digest_are_answered_and_are_no_errors() {
    let known = Arc::new(Mutex::new(Challenged::default()));
    let answering = Arc::clone(&known);
    let port = web::serve(move |request| {
        let known = &mut *answering.lock().expect("no panic");
        (answer_digest(request, known), "a body".to_owned())
    });
    for (path, password) in [
        ("md5", "pw"),
        ("sha", "pw"),
        ("md5/sess", "pw"),
        ("sha/sess", "pw"),
        ("sha", "another"),
    ] {
        *known.lock().expect("no panic") = Challenged::default();
        let workload = format!(
            "workload: shop\nuser: {{ name: \"user{{{{ index }}}}\" }}\n\
             auth: {{ digest: {{ username: \"{{{{ name }}}}\", password: \"{password} {{{{ name }}}}\" }} }}\n\
             session:\n  steps:\n    - {{ step: Read, wait: 20ms..60ms, request: \"GET /{path}\" }}\n    \
             - {{ step: Write, request: \"POST /{path}\", json: {{ a: 1 }} }}\n    \
             - {{ step: Page, parallel: [\"GET /{path}\", \"GET /{path}\", \"GET /{path}\"] }}\n"
        );
        let folder = folder(port, 2, &workload);
        let trial = trial(folder.path());
        let known = known.lock().expect("no panic");
        let (good, bad, _) = counts(&trial, "Write");
        if password == "another" {
            assert!(good == 0 && known.wrong.len() > 10, "{trial}");
            assert!(counts(&trial, "Read").1 > 10, "{trial}");
            continue;
        }
        assert!(good > 50 && bad == 0, "{path}: {good} {bad}: {trial}");
        let (good, bad, _) = counts(&trial, "Page");
        assert!(good > 150 && bad == 0, "{path}: {good} {bad}: {trial}");
        assert_eq!(known.wrong, [""; 0], "{path}");
        // One for each user's first request, then one whenever a nonce is used up.
        assert!(
            known.stale > 2 && known.challenges == known.stale + 2,
            "{path}: {}",
            known.challenges
        );
    }
}

#[test]
fn requests_that_are_challenged_together_have_counts_of_their_own() {
    let start = || Challenged {
        is_given_again: true,
        ..Challenged::default()
    };
    let known = Arc::new(Mutex::new(start()));
    let answering = Arc::clone(&known);
    let port = web::serve(move |request| {
        let known = &mut *answering.lock().expect("no panic");
        (answer_digest(request, known), "a body".to_owned())
    });
    let workload = "workload: shop\nuser: { name: \"user{{ index }}\" }\n\
         auth: { digest: { username: \"{{ name }}\", password: \"pw {{ name }}\" } }\n\
         session:\n  steps:\n    - { step: Page, wait: 20ms..60ms, parallel: [GET /sha, GET /sha, GET /sha] }\n";
    let folder = folder(port, 1, workload);
    let trial = trial(folder.path());
    let known = known.lock().expect("no panic");
    let (good, bad, _) = counts(&trial, "Page");
    assert!(good > 50 && bad == 0, "{good} {bad}: {trial}");
    assert_eq!(known.wrong, [""; 0], "no count comes twice");
    assert!(known.stale > 2, "{}", known.challenges);
}
