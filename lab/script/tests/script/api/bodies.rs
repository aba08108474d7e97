//! Bodies of requests: forms, multipart, bytes.

use serde_json::json;

use super::run;

fn body(expression: &str) -> (String, Vec<u8>) {
    let script = format!(
        "import http from 'k6/http'; import {{ FormData }} from 'https://jslib.k6.io/formdata/0.0.2/index.js';\nexport default function () {{ http.post('http://shop/', {expression}); }}"
    );
    let done = run(&script, "");
    assert!(done.result.is_ok(), "{:?}", done.result);
    let request = &done.requests[0];
    let kind = request
        .headers
        .iter()
        .find(|(name, _)| name == "Content-Type");
    (
        kind.map(|(_, value)| value.clone()).unwrap_or_default(),
        request.body.to_vec(),
    )
}

#[test]
fn encodes_objects_as_forms() {
    let (kind, form) = body(
        "{ name: 'Bert & Ann', list: ['a', 'b'], n: 1, yes: true, none: null, sub: { a: 1 } }",
    );
    assert_eq!(kind, "application/x-www-form-urlencoded");
    assert_eq!(
        form,
        b"list=a&list=b&n=1&name=Bert+%26+Ann&none=&sub=%7B%22a%22%3A1%7D&yes=true"
    );
    let (kind, form) = body("new URLSearchParams({ q: 'ä+b' })");
    assert_eq!(
        (kind.as_str(), form.as_slice()),
        (
            "application/x-www-form-urlencoded",
            b"q=%C3%A4%2Bb".as_slice()
        )
    );
}

#[test]
fn keeps_type_that_script_gives() {
    let (kind, form) = body("{ a: 1 }, { headers: { 'Content-Type': 'x/y' } }");
    assert_eq!((kind.as_str(), form.as_slice()), ("x/y", b"a=1".as_slice()));
    let (kind, text) = body("JSON.stringify({ a: 1 })");
    assert_eq!(
        (kind.as_str(), text.as_slice()),
        ("", b"{\"a\":1}".as_slice())
    );
}

#[test]
fn sends_bytes_as_they_are() {
    assert_eq!(body("new Uint8Array([0, 255, 10]).buffer").1, [0, 255, 10]);
    assert_eq!(
        body("new Uint8Array([9, 0, 255, 10]).subarray(1, 3)").1,
        [0, 255]
    );
    let large = body("new Uint8Array(300000).fill(7).buffer").1;
    assert!(large.len() == 300_000 && large.iter().all(|&byte| byte == 7));
}

#[test]
fn sends_files_as_multipart() {
    let (kind, sent) = body(
        "{ name: 'x', file: http.file(new Uint8Array([1, 2, 255]).buffer, 'a\"b.bin', 'image/png'), text: http.file('hi', 'hi.txt') }",
    );
    let boundary = kind
        .strip_prefix("multipart/form-data; boundary=")
        .expect(&kind);
    let mut expected =
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nx\r\n")
            .into_bytes();
    expected.extend(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a%22b.bin\"\r\nContent-Type: image/png\r\n\r\n").bytes());
    expected.extend([1, 2, 255]);
    expected.extend(format!("\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"text\"; filename=\"hi.txt\"\r\nContent-Type: application/octet-stream\r\n\r\nhi\r\n--{boundary}--\r\n").bytes());
    assert_eq!(
        String::from_utf8_lossy(&sent),
        String::from_utf8_lossy(&expected)
    );
    assert_eq!(sent, expected);
}

#[test]
fn file_shows_its_parts() {
    let script = "import http from 'k6/http';
        export default function () { const f = http.file('abc', 'a.txt', 'text/plain'); return [f.data, f.filename, f.content_type, http.file([97, 98], 'b').data.byteLength]; }";
    assert_eq!(
        *run(script, "").value(),
        json!(["abc", "a.txt", "text/plain", 2])
    );
}

#[test]
fn form_data_builds_multipart() {
    let script = "import http from 'k6/http'; import { FormData } from 'https://jslib.k6.io/formdata/0.0.2/index.js';
        export default function () {
          const fd = new FormData();
          fd.append('a', 'text');
          fd.append('b', http.file('data', 'b.txt', 'text/plain'));
          fd.append('c', { data: new Uint8Array([104, 105]).buffer, filename: 'c.bin', content_type: 'x/y' });
          http.post('http://shop/', fd.body(), { headers: { 'Content-Type': 'multipart/form-data; boundary=' + fd.boundary } });
          return fd.boundary;
        }";
    let done = run(script, "");
    let boundary = done.value().as_str().unwrap();
    let text = String::from_utf8_lossy(&done.requests[0].body).into_owned();
    assert!(
        text.contains("name=\"b\"; filename=\"b.txt\"\r\nContent-Type: text/plain\r\n\r\ndata\r\n"),
        "{text}"
    );
    assert!(
        text.contains("name=\"c\"; filename=\"c.bin\"\r\nContent-Type: x/y\r\n\r\nhi\r\n"),
        "{text}"
    );
    assert!(text.ends_with(&format!("--{boundary}--\r\n")), "{text}");
}
