//! Recordings as workloads: recorded values, captures, and secrets.

mod recorders;
mod tokens;

use std::io;

use lab_import::har::{HarOptions, Noise, import};
use lab_import::{ImportError, Imported};
use lab_study::{Files, Workload, load_workload};
use proptest::prelude::*;
use serde_json::{Value, json};

struct One(String);

impl Files for One {
    fn read(&self, _: &str) -> io::Result<Vec<u8>> {
        Ok(self.0.clone().into_bytes())
    }
}

#[track_caller]
fn load(imported: &Imported) -> Workload {
    load_workload("w.workload.yaml", &One(imported.workload.clone()))
        .unwrap_or_else(|error| panic!("{:?}\n{}", error.problems(), imported.workload))
}

/// A request `ms` after the first, with its response.
fn entry(ms: u64, request: Value, response: Value, kind: &str) -> Value {
    let began = format!(
        "2026-11-22T10:{:02}:{:02}.{:03}Z",
        ms / 60_000,
        ms / 1000 % 60,
        ms % 1000
    );
    json!({
        "startedDateTime": began,
        "time": 20.0,
        "_resourceType": kind,
        "request": request,
        "response": response,
    })
}

fn get(path: &str) -> Value {
    json!({ "method": "GET", "url": format!("http://shop.test:8080{path}"), "headers": [
        { "name": "User-Agent", "value": "Browser" },
        { "name": "Cookie", "value": "sid=cookie-secret-1" },
        { "name": "Accept", "value": "text/html,*/*" },
    ] })
}

fn post(path: &str, kind: &str, text: &str) -> Value {
    json!({
        "method": "POST",
        "url": format!("http://shop.test:8080{path}"),
        "headers": [
            { "name": "Content-Type", "value": kind },
            { "name": "Origin", "value": "http://shop.test:8080" },
            { "name": "Sec-Fetch-Site", "value": "same-origin" },
            { "name": "Sec-Fetch-Mode", "value": "navigate" },
        ],
        "postData": { "mimeType": kind, "text": text },
    })
}

fn answer(status: u16, kind: &str, text: &str) -> Value {
    json!({
        "status": status,
        "headers": [{ "name": "Content-Type", "value": kind }],
        "content": { "mimeType": kind, "text": text },
        "redirectURL": "",
    })
}

fn redirect(to: &str) -> Value {
    json!({
        "status": 303,
        "headers": [
            { "name": "Location", "value": to },
            { "name": "Set-Cookie", "value": "sid=cookie-secret-2; Path=/" },
        ],
        "content": {},
        "redirectURL": to,
    })
}

fn log(entries: Vec<Value>) -> String {
    json!({ "log": { "version": "1.2", "entries": entries } }).to_string()
}

fn options() -> HarOptions {
    HarOptions {
        name: "shop".to_owned(),
        hosts: vec![],
        without: Noise::USUAL.to_vec(),
    }
}

/// A form with a token, a login, a list in JSON, an order with the token of the login.
fn session() -> String {
    const FORM: &str = "<form><input type=\"hidden\" name=\"csrf\" value=\"tok3n-AbCdEf12\">\
                        <input name=\"user\"></form><img src=\"/logo.png\">";
    let bearer = |mut request: Value| {
        let header = json!({ "name": "Authorization", "value": "Bearer eyJhbGciOi.J9x1" });
        request["headers"].as_array_mut().unwrap().push(header);
        request
    };
    log(vec![
        entry(0, get("/login"), answer(200, "text/html", FORM), "document"),
        entry(50, get("/logo.png"), answer(200, "image/png", ""), "image"),
        entry(
            60,
            json!({ "method": "GET", "url": "https://counter.test/collect?id=1", "headers": [] }),
            answer(204, "", ""),
            "ping",
        ),
        entry(
            4000,
            post(
                "/login",
                "application/x-www-form-urlencoded",
                "csrf=tok3n-AbCdEf12&user=ada&password=correct+horse",
            ),
            redirect("/shop/4711/home"),
            "document",
        ),
        entry(
            4030,
            get("/shop/4711/home"),
            answer(200, "text/html", "Welcome"),
            "document",
        ),
        entry(
            4100,
            post(
                "/api/token",
                "application/json",
                "{\"user\":\"ada\",\"password\":\"correct horse\"}",
            ),
            answer(
                200,
                "application/json",
                "{\"access\":{\"token\":\"eyJhbGciOi.J9x1\"}}",
            ),
            "fetch",
        ),
        entry(
            4200,
            bearer(get("/api/items?count=20")),
            answer(
                200,
                "application/json",
                "{\"items\":[{\"id\":11},{\"id\":12}],\"next\":null}",
            ),
            "fetch",
        ),
        entry(
            9000,
            bearer(get("/api/items/12")),
            answer(
                200,
                "application/json",
                "{\"id\":12,\"name\":\"{{ braces }}\"}",
            ),
            "fetch",
        ),
        entry(
            9500,
            bearer(post(
                "/api/orders",
                "application/json",
                "{\"item_id\":12,\"note\":\"{{ hi }}\"}",
            )),
            answer(
                201,
                "application/json",
                "{\"order\":{\"id\":\"ord-77aa12\"}}",
            ),
            "fetch",
        ),
        entry(
            9900,
            bearer(get("/shop/4711/orders/ord-77aa12")),
            answer(404, "text/html", "none"),
            "document",
        ),
    ])
}

#[test]
fn a_session_of_a_shop_is_a_workload() {
    let imported = import(&session(), &options()).unwrap();
    let workload = load(&imported);
    assert_eq!(imported.server.as_deref(), Some("http://shop.test:8080"));
    assert_eq!(imported.asked, ["PASSWORD"]);
    for secret in [
        "correct horse",
        "correct+horse",
        "cookie-secret",
        "eyJhbGci",
        "tok3n",
    ] {
        assert!(
            !imported.workload.contains(secret),
            "{secret}: {}",
            imported.workload
        );
    }
    assert_eq!(workload.session.steps.len(), 5);
    let said = imported.said.join("\n");
    assert!(
        said.contains("1 request to counter.test left out"),
        "{said}"
    );
    assert!(said.contains("1 request left out: images"), "{said}");
    insta::assert_snapshot!(imported.workload);
}

/// A form with a file is multipart; its token is different each time, its file is constant.
#[test]
fn forms_of_several_parts_have_their_tokens_too() {
    let part = |name: &str, value: &str| {
        format!("--XyZ\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let file =
        "--XyZ\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\n{{ }}\r\n";
    let text =
        part("proof", "pr00f-AbCdEf") + &part("password", "hidden-one") + file + "--XyZ--\r\n";
    let form = "<form><input name=proof type=hidden value='x'><input name=\"proof\" value=\"pr00f-AbCdEf\">";
    let imported = import(
        &log(vec![
            entry(0, get("/write"), answer(200, "text/html", form), "document"),
            entry(
                2000,
                post("/write", "multipart/form-data; boundary=XyZ", &text),
                answer(200, "text/html", ""),
                "document",
            ),
        ]),
        &options(),
    );
    let imported = imported.unwrap();
    load(&imported);
    let written = &imported.workload;
    assert!(
        written.contains(r"\r\n\r\n{{ proof }}\r\n--XyZ"),
        "{written}"
    );
    assert!(written.contains("{{ secret('PASSWORD') }}"), "{written}");
    assert!(written.contains("{{ '{' }}{ }}"), "{written}");
    assert!(
        !written.contains("pr00f") && !written.contains("hidden-one"),
        "{written}"
    );
}

#[test]
fn noise_and_hosts_are_a_matter_of_choice() {
    let all = HarOptions {
        without: vec![],
        hosts: vec!["shop.test".to_owned(), "counter.test:443".to_owned()],
        ..options()
    };
    let imported = import(&session(), &all).unwrap();
    load(&imported);
    assert!(imported.workload.contains("GET /logo.png"));
    assert!(
        imported
            .workload
            .contains("https://counter.test/collect?id=1")
    );
    assert_eq!(imported.said.len(), 1, "{:?}", imported.said);
    let none = HarOptions {
        hosts: vec!["nobody.test".to_owned()],
        ..options()
    };
    let Err(ImportError::Nothing { said }) = import(&session(), &none) else {
        panic!("nothing is left");
    };
    assert_eq!(said.len(), 2);
}

#[test]
fn what_is_no_recording_is_said() {
    let said = |text: &str| import(text, &options()).unwrap_err().to_string();
    assert!(said("{").contains("line 1 column 1"), "{}", said("{"));
    assert!(said("{}").contains("`log`"), "{}", said("{}"));
    assert_eq!(said(&log(vec![])), "the recording has no request");
    let deep = format!("{{\"log\":{}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(
        said(&deep).contains("not JSON as expected"),
        "{}",
        said(&deep)
    );
    let many = (0..5001)
        .map(|n| entry(n, get("/"), answer(200, "", ""), ""))
        .collect();
    assert!(said(&log(many)).contains("5001 requests"));
    let collection = r#"{ "info": { "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json" } }"#;
    let said = import(collection, &options()).unwrap_err().to_string();
    assert!(said.contains("Postman"), "{said}");
}

/// Values of browsers, and odd ones.
fn odd() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9]{0,12}",
        "\\PC{0,20}",
        Just("{{ x }}".to_owned()),
        Just("{% if".to_owned()),
        Just("\u{0}\n\r\u{2028}".to_owned()),
        "[0-9]{1,8}",
    ]
}

fn any_entry() -> impl Strategy<Value = Value> {
    let method = prop_oneof![
        Just("GET"),
        Just("POST"),
        Just("PUT"),
        Just("ODD"),
        Just("")
    ];
    let kind = prop_oneof![
        Just("application/json"),
        Just("application/x-www-form-urlencoded"),
        Just("text/html"),
        Just(""),
    ];
    let status = prop_oneof![
        Just(200i64),
        Just(302),
        Just(0),
        Just(-1),
        Just(404),
        Just(99999)
    ];
    let parts = (
        method,
        odd(),
        odd(),
        kind,
        odd(),
        odd(),
        status,
        0..20_000u64,
    );
    parts.prop_map(|(method, path, query, kind, name, value, status, ms)| {
        let text = match kind {
            "application/json" => json!({ name.clone(): value, "list": [{ "id": query }] }).to_string(),
            "application/x-www-form-urlencoded" => format!("{name}={value}"),
            _ => format!("<input name=\"{name}\" value=\"{value}\"><a href=\"/{path}/{value}\">"),
        };
        let mut one = entry(
            ms,
            json!({
                "method": method,
                "url": format!("http://h.test/{path}/{value}?{name}={query}"),
                "headers": [{ "name": name, "value": value }, { "name": "Authorization", "value": value }],
                "postData": { "mimeType": kind, "text": text },
            }),
            answer(200, kind, &text),
            "document",
        );
        one["response"]["status"] = json!(status);
        one["response"]["headers"][0] = json!({ "name": "Location", "value": format!("/{path}/{value}") });
        one
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any recording becomes a workload that loads, and contains no password.
    #[test]
    fn any_recording_is_a_workload_or_an_error(
        entries in prop::collection::vec(any_entry(), 1..8),
        secret in "[A-Za-z]{8}[0-9]{4}",
    ) {
        let mut entries = entries;
        let kind = "application/x-www-form-urlencoded";
        let text = format!("user=a&password={secret}");
        entries.push(entry(20_500, json!({
            "method": "POST", "url": "http://h.test/login", "headers": [],
            "postData": { "mimeType": kind, "text": text },
        }), answer(200, "text/html", &secret), "document"));
        let imported = import(&log(entries), &options()).unwrap();
        let loaded = load_workload("w.workload.yaml", &One(imported.workload.clone()));
        let problems = loaded.as_ref().err().map(|error| format!("{:?}", error.problems()));
        prop_assert!(loaded.is_ok(), "{:?}\n{}", problems, imported.workload);
        prop_assert!(!imported.workload.contains(&secret));
    }
}
