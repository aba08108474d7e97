//! Cookies of a workload's own, headers that a request may have, and advice that works when it is followed.

use std::io;

use lab_study::{Files, LoadError, Workload, load_workload};

/// A workload and a file of rows.
struct Folder(String, &'static str);

impl Files for Folder {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match path {
            "w.workload.yaml" => Ok(self.0.clone().into_bytes()),
            "rows.csv" | "rows.tsv" => Ok(self.1.into()),
            "s.proto" => Ok(PROTO.into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

const PROTO: &str = r#"
    syntax = "proto3";
    import "google/protobuf/struct.proto";
    import "google/protobuf/any.proto";
    service S {
        rpc Put(google.protobuf.Struct) returns (google.protobuf.Struct);
        rpc Value(google.protobuf.Value) returns (google.protobuf.Any);
        rpc List(google.protobuf.ListValue) returns (google.protobuf.ListValue);
    }
"#;

fn load(text: &str) -> Result<Workload, LoadError> {
    load_with(text, "")
}

fn load_with(text: &str, rows: &'static str) -> Result<Workload, LoadError> {
    load_workload("w.workload.yaml", &Folder(text.to_owned(), rows))
}

/// Whole head and tail around the parts of one step.
fn step(top: &str, parts: &str) -> String {
    format!("workload: w\n{top}session:\n  steps:\n    - step: One\n      request: GET /\n{parts}")
}

fn cookies(workload: &Workload) -> Vec<(String, String, bool)> {
    let request = &workload.session.steps[0].requests[0];
    let cookies = request.cookies.iter();
    cookies
        .map(|one| {
            (
                one.name.clone(),
                one.value.source().to_owned(),
                one.is_default,
            )
        })
        .collect()
}

fn said(result: Result<Workload, LoadError>) -> String {
    let error = result.expect_err("a problem");
    let lines = error.problems().iter().map(|problem| {
        let help = problem.help.clone().unwrap_or_default();
        format!("{}; help: {help}", problem.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_requests_cookies_take_the_place_of_the_workloads() {
    let top =
        "user: { sid: \"s{{ index }}\" }\ncookies: { session: \"{{ sid }}\", consent: \"yes\" }\n";
    let parts = "      cookies: { consent: \"no\" }\n      headers: { cookie: \"a=1; b={{ sid }};{{ sid }}\" }\n";
    let workload = load(&step(top, parts)).unwrap();
    let own = |name: &str, value: &str, is_default| (name.to_owned(), value.to_owned(), is_default);
    let expected = [
        own("consent", "no", false),
        own("", "a=1; b={{ sid }};{{ sid }}", false),
        own("session", "{{ sid }}", true),
    ];
    assert_eq!(cookies(&workload), expected);
    assert!(workload.session.steps[0].requests[0].headers.is_empty());
    // The form that generators receive.
    let message = lab_workload::Message::new(&workload).unwrap();
    assert_eq!(cookies(&message.workload().unwrap()), expected);
}

#[test]
fn what_no_cookie_or_header_can_be_has_its_reason() {
    for (parts, expected) in [
        ("      cookies: { \"a;b\": 1 }\n", "is no name of a cookie"),
        (
            "      cookies: { a: \"{{ nobody }}\" }\n",
            "no variable `nobody`",
        ),
        (
            "      headers: { Cookie: \"a={{ nobody }}\" }\n",
            "no variable `nobody`",
        ),
        (
            "      headers: { Expect: 100-continue }\n",
            "bodies are sent at once",
        ),
        (
            "      headers: { Connection: upgrade }\n",
            "`close` or `keep-alive`",
        ),
        (
            "      headers: { Upgrade: websocket }\n",
            "say `protocol: websocket`",
        ),
    ] {
        let said = said(load(&step("", parts)));
        assert!(said.contains(expected), "{said}");
    }
    let parts = "      headers: { Connection: Close }\n      capture: { a: \"cookie.x[1]\", b: \"cookie.a:b\" }\n";
    assert!(load(&step("", parts)).is_ok());
}

#[test]
fn a_handshake_of_websocket_has_cookies_as_a_header() {
    let chat = |top: &str, headers: &str| {
        let text = format!(
            "workload: w\n{top}protocol: {{ name: websocket, headers: {{ {headers} }} }}\nuser: {{ sid: a }}\nsession:\n  \
             steps:\n    - step: One\n      request: hello\n"
        );
        load(&text)
    };
    assert!(chat("", "Cookie: \"session={{ sid }}\"").is_ok());
    let refused = said(chat("cookies: { session: a }\n", "X: y"));
    assert!(
        refused.contains("`cookies` is a setting of HTTP"),
        "{refused}"
    );
    assert!(said(chat("", "Connection: close")).contains("written by the driver itself"));
}

#[test]
fn columns_with_another_character_between_them_are_read_as_advised() {
    let text = |data: &str| {
        step(
            &format!("data: {data}\n"),
            "      headers: { X: \"{{ b }}\" }\n",
        )
    };
    for (rows, advice) in [
        ("a;b\n1;2\n", "delimiter: \";\""),
        ("a\tb\n1\t2\n", "delimiter: tab"),
    ] {
        let refused = said(load_with(&text("rows.csv"), rows));
        assert!(refused.contains(&format!("say `{advice}`")), "{refused}");
        let followed = text(&format!("{{ file: rows.csv, {advice} }}"));
        assert!(load_with(&followed, rows).is_ok(), "{followed}");
    }
    assert!(load_with(&text("rows.tsv"), "a\tb\n1\t2\n").is_ok());
    let refused = said(load_with(
        &text("{ file: rows.csv, delimiter: ab }"),
        "a,b\n1,2\n",
    ));
    assert!(refused.contains("one character"), "{refused}");
}

#[test]
fn a_template_in_a_flow_mapping_is_advised_to_be_quoted() {
    let flow = |line: &str| {
        load(&format!(
            "workload: w\nsession:\n  steps:\n    - {{ step: a, {line} }}\n"
        ))
    };
    let refused = said(flow("request: GET /x{{ index }}"));
    assert!(refused.contains("wants quotes"), "{refused}");
    assert!(flow("request: \"GET /x{{ index }}\"").is_ok());
}

#[test]
fn an_entry_is_picked_from_a_list_that_is_written_out() {
    assert!(
        load(&step(
            "",
            "      headers: { X: \"{{ pick(['a', 'b']) }}\" }\n"
        ))
        .is_ok()
    );
    let refused = said(load(&step(
        "",
        "      headers: { X: \"{{ take(['a', 'b']) }}\" }\n",
    )));
    assert!(
        refused.contains("takes the name of a captured list"),
        "{refused}"
    );
    let refused = said(load(&step("", "      headers: { X: \"{{ hmac() }}\" }\n")));
    assert!(
        refused.contains("`env`") && refused.contains("`secret`"),
        "{refused}"
    );
}

#[test]
fn messages_with_json_of_their_own_are_the_message_itself() {
    let call = |method: &str, json: &str| {
        let text = format!(
            "workload: w\nprotocol: {{ name: grpc, descriptors: s.proto }}\nsession:\n  steps:\n    - step: One\n      \
             request: S/{method}\n      json: {json}\n"
        );
        load(&text)
    };
    for (method, json) in [
        ("Put", "{ a: 1, b: null, c: [x, { d: true }] }"),
        ("Value", "[1, two]"),
        ("Value", "text"),
        ("List", "[1, { a: b }]"),
    ] {
        let loaded = call(method, json);
        assert!(loaded.is_ok(), "{method} {json}: {}", said(loaded));
    }
    assert!(call("List", "{ a: 1 }").is_err());
}
