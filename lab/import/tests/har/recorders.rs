//! The formats of recorders other than Chromium, with their omissions.

use super::*;

/// A page, and a person's request a while later.
fn with(request: Value) -> Imported {
    let page = entry(0, get("/"), answer(200, "text/html", "<p>hi"), "document");
    let then = entry(3000, request, answer(200, "text/html", "done"), "");
    let imported = import(&log(vec![page, then]), &options()).unwrap();
    load(&imported);
    imported
}

fn put(kind: Option<&str>, body: Value) -> Value {
    let headers = kind.map(|kind| json!({ "name": "content-type", "value": kind }));
    json!({
        "method": "PUT",
        "url": "http://shop.test:8080/notes",
        "headers": headers.into_iter().collect::<Vec<_>>(),
        "postData": body,
    })
}

#[track_caller]
fn holds(imported: &Imported, lines: &[&str]) {
    for line in lines {
        assert!(
            imported.workload.contains(line),
            "{line}\n{}\n{:?}",
            imported.workload,
            imported.said
        );
    }
}

/// Any member may be null, or of a wrong type.
#[test]
fn a_member_that_is_null_costs_no_request() {
    let whole = entry(
        2000,
        post("/cart", "application/x-www-form-urlencoded", "size=42"),
        answer(200, "text/html", "ok"),
        "",
    );
    for pointer in [
        "/startedDateTime",
        "/time",
        "/_resourceType",
        "/_fromCache",
        "/request/headers",
        "/request/headers/0",
        "/request/headers/1/value",
        "/request/postData/mimeType",
        "/request/postData/params",
        "/request/postData/encoding",
        "/response/headers",
        "/response/content",
        "/response/content/mimeType",
        "/response/content/text",
        "/response/redirectURL",
    ] {
        for odd in [Value::Null, json!(7), json!([null]), json!({})] {
            let mut one = whole.clone();
            let parts: Vec<&str> = pointer.rsplitn(2, '/').collect();
            let inner = one.pointer_mut(parts[1]).unwrap();
            match inner {
                Value::Array(items) => items[parts[0].parse::<usize>().unwrap()] = odd,
                other => other[parts[0]] = odd,
            }
            let page = entry(0, get("/"), answer(200, "text/html", "x"), "document");
            let imported = import(&log(vec![page, one]), &options()).unwrap();
            load(&imported);
            holds(&imported, &["POST /cart", "size: \"42\""]);
        }
    }
}

#[test]
fn an_entry_that_cannot_be_read_is_left_out_and_reported() {
    let page = entry(0, get("/"), answer(200, "text/html", "x"), "document");
    let nameless = json!({ "request": { "method": "GET" } });
    let entries = vec![Value::Null, page, json!("entry"), nameless];
    let imported = import(&log(entries), &options()).unwrap();
    load(&imported);
    let said = imported.said.join("\n");
    assert!(said.contains("3 entries left out"), "{said}");
    assert!(said.contains("the first is entry 1"), "{said}");
}

#[test]
fn base64_that_is_text_is_that_text() {
    let json = json!({ "mimeType": "application/json", "encoding": "base64",
        "text": "eyJtIjogMS41MCwgImEiOiAi\nw6QifQ" });
    holds(&with(put(None, json)), &["json: { m: 1.50, a: \"ä\" }"]);
    let form = json!({ "text": "cT1saW1vbmNlbGxvJm09Mg==", "_encoding": "base64" });
    let form = with(put(Some("application/x-www-form-urlencoded"), form));
    holds(&form, &["q: \"limoncello\"", "m: \"2\""]);
    let binary = json!({ "text": "AAEC/w==", "encoding": "base64" });
    let binary = with(put(Some("application/octet-stream"), binary));
    holds(&binary, &["bytes: 4"]);
    // Invalid base64 stays unchanged.
    let none = json!({ "text": "not base64!", "encoding": "base64" });
    holds(
        &with(put(Some("text/plain"), none)),
        &["text: \"not base64!\""],
    );
}

#[test]
fn fields_without_a_text_are_the_body() {
    let field = |name: &str, value: &str| json!({ "name": name, "value": value });
    let form = "application/x-www-form-urlencoded";
    let of =
        |kind: &str, fields: Value| with(put(None, json!({ "mimeType": kind, "params": fields })));
    let decoded = of(
        form,
        json!([field("total", "3+4 = 7"), field("pct", "50%25")]),
    );
    holds(&decoded, &["total: \"3+4 = 7\"", "pct: \"50%25\""]);
    let encoded = of(
        form,
        json!([field("city", "S%C3%A3o+Paulo"), field("n", "1")]),
    );
    holds(&encoded, &["city: \"São Paulo\""]);
    let alone = of(form, json!([field("sum", "1+1")]));
    holds(&alone, &["sum: \"1+1\""]);
    let twice = of(form, json!([field("pick[]", "a b"), field("pick[]", "c")]));
    holds(
        &twice,
        &["text: \"pick%5B%5D=a+b&pick%5B%5D=c\"", "Content-Type"],
    );
    let file = json!({ "name": "scan", "fileName": "p \"1\".txt", "contentType": "text/plain", "value": "line" });
    let lost = json!({ "name": "more", "fileName": "q.bin" });
    let parts = of(
        "multipart/form-data",
        json!([field("title", "x"), file, lost]),
    );
    holds(
        &parts,
        &[
            r#"name=\"title\"\r\n\r\nx\r\n"#,
            r#"name=\"scan\"; filename=\"p %221%22.txt\"\r\nContent-Type: text/plain\r\n\r\nline\r\n"#,
            "multipart/form-data; boundary=plimsoll-part",
        ],
    );
    let said = parts.said.join("\n");
    assert!(said.contains("content of its file q.bin"), "{said}");
    let other = of("application/msgpack", json!([field("a", "1")]));
    assert!(
        other.said.join("\n").contains("is left out"),
        "{:?}",
        other.said
    );
}

#[test]
fn a_missing_content_type_is_that_of_the_body() {
    let of = |text: &str| with(put(None, json!({ "text": text })));
    holds(&of("{\"deep\": [1e3]}"), &["json: { deep: [1e3] }"]);
    holds(&of("a=1&b=x%20y"), &["form:", "b: \"x y\""]);
    holds(
        &of("<?xml version=\"1.0\"?><a/>"),
        &["Content-Type: \"application/xml\""],
    );
    let plain = of("just words");
    assert!(
        plain.said.join("\n").contains("sent as text/plain"),
        "{:?}",
        plain.said
    );
    // The recorder's type counts if there is no header.
    let said = with(put(
        None,
        json!({ "mimeType": "application/soap+xml", "text": "<a/>" }),
    ));
    holds(&said, &["Content-Type: \"application/soap+xml\""]);
}

/// Times in any form: the order is that of the recording, and so are the waits.
#[test]
fn moments_without_a_zone_keep_order_and_waits() {
    let at = |path: &str, started: Value| {
        let mut one = entry(0, get(path), answer(200, "text/html", ""), "document");
        one["startedDateTime"] = started;
        one
    };
    for (first, second) in [
        (
            json!("2026-03-01T08:00:00"),
            json!("2026-03-01T08:00:04+01:00"),
        ),
        (
            json!("2026-03-01T08:00:00+01:00"),
            json!("2026-03-01 08:00:04"),
        ),
        (json!(1_772_348_400_000_u64), json!(1_772_348_404_000_u64)),
        (
            json!("Sun, 01 Mar 2026 08:00:00 GMT"),
            json!("Sun, 01 Mar 2026 08:00:04 GMT"),
        ),
    ] {
        let entries = vec![at("/one", first), at("/two", second)];
        let imported = import(&log(entries), &options()).unwrap();
        let workload = &imported.workload;
        assert!(workload.find("/one") < workload.find("/two"), "{workload}");
        assert_eq!(workload.matches("wait:").count(), 1, "{workload}");
        assert!(workload.contains("wait: 1.9s..5.9s"), "{workload}");
    }
    // One without a time in the middle stays there, and causes no wait since 1970.
    let entries = vec![
        at("/one", json!("2026-03-01T08:00:00Z")),
        at("/two", json!("soon")),
        at("/three", json!("2026-03-01T08:00:02Z")),
    ];
    let imported = import(&log(entries), &options()).unwrap();
    let workload = &imported.workload;
    assert!(
        workload.find("/two") < workload.find("/three"),
        "{workload}"
    );
    assert_eq!(workload.matches("wait:").count(), 1, "{workload}");
    assert!(
        imported
            .said
            .join("\n")
            .contains("1 of 3 requests have no moment"),
        "{:?}",
        imported.said
    );
}

#[test]
fn methods_that_workloads_send_are_taken() {
    for method in ["QUERY", "PURGE", "purge"] {
        let request =
            json!({ "method": method, "url": "http://shop.test:8080/cache", "headers": [] });
        let line = format!("{} /cache", method.to_ascii_uppercase());
        holds(&with(request), &[line.as_str()]);
    }
    let page = entry(0, get("/"), answer(200, "text/html", ""), "document");
    let socket = json!({
        "_resourceType": "websocket",
        "_webSocketMessages": [{ "type": "send", "data": "hello" }],
        "request": { "method": "GET", "url": "ws://shop.test:8080/feed", "headers": [] },
        "response": { "status": 101 },
    });
    let imported = import(&log(vec![page, socket]), &options()).unwrap();
    let said = imported.said.join("\n");
    assert!(said.contains("whose messages the recording has"), "{said}");
}
