//! The book's examples of workloads, each run by a user against a server that answers as they expect.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_tests::{program, repository, web};

const JSON: &str = "application/json";
const HTML: &str = "text/html";
const EVENTS: &str = "text/event-stream";

/// A private key of Ed25519, published in RFC 8410, section 10.3.
const SIGNING_KEY: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
";

/// A status, a type, further headers, and a body.
type Answer = (u16, &'static str, &'static str, &'static str);

/// The answers that the examples expect of their servers.
fn answer(method: &str, path: &str) -> Answer {
    match (method, path) {
        ("GET", "/b") => (404, JSON, "", "{}"),
        ("GET", "/shop") => (301, HTML, "Location: /\r\n", ""),
        ("GET", "/" | "/login" | "/order") => (
            200,
            HTML,
            "",
            "<form id=\"order\"><input name=\"csrf\" value=\"x\"></form>\
             <div class=\"offer\"><h2>A lamp</h2></div><a href=\"/items/1\">1</a>",
        ),
        ("GET", "/inbox") => (200, JSON, "", "[{\"unread\":true,\"href\":\"/mails/1\"}]"),
        ("GET", "/items" | "/search") => (
            200,
            JSON,
            "",
            "{\"items\":[{\"id\":1,\"href\":\"/items/1\"}],\"next\":\"/pages/2\"}",
        ),
        ("POST", "/login") => (
            200,
            JSON,
            "Set-Cookie: sid=7\r\nLocation: /inbox\r\n",
            "{\"token\":\"t\",\"page\":\"Sign out\"}",
        ),
        ("POST", "/oauth/token") => (
            200,
            JSON,
            "",
            "{\"access_token\":\"t\",\"token_type\":\"Bearer\",\"expires_in\":3600}",
        ),
        ("POST", "/orders") => (
            201,
            JSON,
            "Location: /orders/7\r\nServer-Timing-Ms: 12\r\n",
            "{\"state\":\"open\",\"order\":7,\"queue\":{\"length\":3}}",
        ),
        ("GET", "/orders/7/price") => (
            200,
            JSON,
            "",
            "{\"total\":9.5,\"discount\":null,\"currency\":\"EUR\"}",
        ),
        ("GET", "/rooms/7/next") => (200, JSON, "", "{\"sent_us\":1}"),
        ("POST", "/graphql") => (200, JSON, "", "{\"data\":{\"me\":{\"name\":\"ada\"}}}"),
        ("POST", "/events" | "/photos" | "/v1/sessions") => (201, JSON, "", "{\"token\":\"t\"}"),
        ("POST", "/reports" | "/jobs") => (202, JSON, "Location: /jobs/7\r\n", "{\"id\":7}"),
        ("POST", "/v1/chat/completions") => (200, EVENTS, "", "data: It\n\ndata: [DONE]\n\n"),
        ("GET", "/v1/changes") => (200, EVENTS, "", "event: deployed\ndata: 7\n\n"),
        ("MKCALENDAR", _) => (201, HTML, "", ""),
        ("PROPFIND", _) => (
            207,
            "application/xml",
            "",
            "<d:multistatus xmlns:d=\"DAV:\"><d:response><d:href>/dav/1</d:href></d:response></d:multistatus>",
        ),
        _ => (
            200,
            JSON,
            "",
            "{\"items\":[{\"id\":1,\"href\":\"/items/1\"}],\"state\":\"done\"}",
        ),
    }
}

/// A server as long as the test runs.
fn server() -> String {
    let port = web::serve(|request| {
        let (status, kind, more, body) = answer(request.method(), request.target().0);
        let head = format!("{status} As said\r\nContent-Type: {kind}\r\n{more}");
        (head.trim_end().to_owned(), body.to_owned())
    });
    format!("http://127.0.0.1:{port}")
}

/// The workloads over HTTP on a page of the book. Bare steps are completed to workloads.
fn workloads(page: &str) -> Vec<String> {
    let text = fs::read_to_string(repository().join("docs").join(page)).expect(page);
    let mut found = Vec::new();
    let parts: Vec<&str> = text.split("\n```yaml").collect();
    for pair in parts.windows(2) {
        // A named file belongs to the study of the page, which has a separate test.
        if pair[0].ends_with("`:\n") {
            continue;
        }
        let block = pair[1].split("\n```").next().expect("a block");
        if let Some(workload) = block
            .strip_prefix('\n')
            .filter(|text| text.contains("session:"))
        {
            found.push(workload.to_owned());
        } else if let Some(steps) = block.strip_prefix(" step\n") {
            let steps = steps.replace('\n', "\n    ");
            found.push(format!(
                "workload: steps\nsession:\n  steps:\n    {steps}\n"
            ));
        }
    }
    found.retain(|text| !text.contains("\nprotocol:"));
    found
}

/// Writes the files that the examples name.
fn save_files(folder: &Path) {
    let rows = (0..20).map(|n| format!("user{n}@example.org,secret{n}\n"));
    let rows = format!("email,password\n{}", rows.collect::<String>());
    let sessions = (0..20).map(|n| format!("s{n};basic\n"));
    let sessions = format!("sid;plan\n{}", sessions.collect::<String>());
    let schema = "{ \"required\": [\"items\"] }";
    for (name, text) in [
        ("users.csv", rows.as_str()),
        ("sessions.csv", sessions.as_str()),
        ("photo.jpg", "a photo"),
        ("report.pdf", "a report"),
        ("order.schema.json", schema),
        ("api.pem", SIGNING_KEY),
    ] {
        fs::write(folder.join(name), text).expect("written");
    }
}

#[test]
fn a_user_goes_through_each_example_and_all_is_as_it_says() {
    let (folder, url) = (tempfile::tempdir().expect("a folder"), server());
    save_files(folder.path());
    let pages = ["workloads.md", "http.md", "recipes.md"].map(workloads);
    assert!(
        pages.each_ref().iter().all(|page| page.len() > 4),
        "{pages:?}"
    );
    let jobs = [
        "transactions.md",
        "assets.md",
        "signing.md",
        "credentials.md",
        "shared.md",
    ]
    .map(workloads);
    assert!(jobs.iter().all(|page| !page.is_empty()), "{jobs:?}");
    for text in pages.iter().chain(&jobs).flatten() {
        fs::write(folder.path().join("example.workload.yaml"), text).expect("written");
        let output = Command::new(program())
            .args(["try", "example.workload.yaml", "--url", &url])
            .current_dir(folder.path())
            .env("PLIMSOLL_STATE", folder.path().join("state"))
            .envs(
                [
                    "API_USER",
                    "API_PASSWORD",
                    "API_TOKEN",
                    "API_KEY",
                    "JWT_KEY",
                    "AWS_ACCESS_KEY_ID",
                    "AWS_SECRET_ACCESS_KEY",
                    "AWS_SESSION_TOKEN",
                    "SIGNING_KEY_ID",
                    "CLIENT_SECRET",
                    "PASSWORD",
                    "CONSUMER_KEY",
                    "CONSUMER_SECRET",
                    "TOKEN",
                    "TOKEN_SECRET",
                ]
                .map(|name| (name, "sesame")),
            )
            .env("SIGNING_KEY", SIGNING_KEY)
            .env("HOOK_KEY", "c2VzYW1l")
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{text}\n{said}\n{told}");
    }
}
