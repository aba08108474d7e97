//! `k6/http`: requests and responses.

use std::time::Duration;

use bytes::Bytes;
use lab_script::{Answer, Auth, Compression, Expected, Failure, Request, ResponseKind, Timings};
use serde_json::json;

use super::{answer, run, run_with};

/// The requests of the statements of an iteration.
fn sent(statements: &str) -> Vec<Request> {
    let script =
        format!("import http from 'k6/http';\nexport default function () {{\n{statements}\n}}\n");
    let done = run(&script, "{}");
    assert!(done.result.is_ok(), "{:?}", done.result);
    done.requests
}

fn refused(statements: &str) -> String {
    let script =
        format!("import http from 'k6/http';\nexport default function () {{\n{statements}\n}}\n");
    run(&script, "{}").error().to_owned()
}

fn header<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    let found = request.headers.iter().find(|(given, _)| given == name);
    found.map(|(_, value)| value.as_str())
}

#[test]
fn sends_each_method() {
    let all = sent(
        "http.get('http://shop/1'); http.post('http://shop/2', 'a'); http.put('http://shop/3', 'b'); http.patch('http://shop/4', 'c');
         http.del('http://shop/5'); http.head('http://shop/6'); http.options('http://shop/7'); http.request('purge', 'http://shop/8', 'd');",
    );
    let lines: Vec<_> = all
        .iter()
        .map(|r| format!("{} {} {:?}", r.method, r.url, r.body))
        .collect();
    assert_eq!(
        lines,
        [
            "GET http://shop/1 b\"\"",
            "POST http://shop/2 b\"a\"",
            "PUT http://shop/3 b\"b\"",
            "PATCH http://shop/4 b\"c\"",
            "DELETE http://shop/5 b\"\"",
            "HEAD http://shop/6 b\"\"",
            "OPTIONS http://shop/7 b\"\"",
            "PURGE http://shop/8 b\"d\"",
        ]
    );
    let sites: std::collections::BTreeSet<u32> = all.iter().map(|request| request.site).collect();
    assert_eq!(sites.len(), 8, "each call has its place");
}

#[test]
fn reads_all_params() {
    let all = sent(
        "http.get('http://shop/', { headers: { 'X-One': 1, Accept: ['a', 'b'] }, tags: { name: 'Front', kind: 'page' }, timeout: '1m30s',
           redirects: 3, responseType: 'binary', compression: 'gzip, br', responseCallback: http.expectedStatuses(404, { min: 200, max: 204 }),
           cookies: { a: 'b', c: { value: 'd', replace: true } } });
         http.get('http://shop/', { timeout: 2500, responseCallback: null, responseType: 'none' });",
    );
    let first = &all[0];
    assert_eq!(
        first.headers,
        [("X-One", "1"), ("Accept", "a"), ("Accept", "b")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert_eq!(first.name.as_deref(), Some("Front"));
    assert_eq!(first.timeout, Some(Duration::from_secs(90)));
    assert_eq!(first.redirects, Some(3));
    assert_eq!(first.response, ResponseKind::Binary);
    assert_eq!(first.compression, [Compression::Gzip, Compression::Brotli]);
    assert_eq!(
        first.expected,
        Expected::Ranges(vec![(404, 404), (200, 204)])
    );
    assert_eq!(
        first.jar.own,
        [
            ("a".to_owned(), "b".to_owned(), false),
            ("c".to_owned(), "d".to_owned(), true)
        ]
    );
    assert_eq!(all[1].timeout, Some(Duration::from_millis(2500)));
    assert_eq!(all[1].expected, Expected::Any);
    assert_eq!(all[1].response, ResponseKind::None);
}

#[test]
fn refuses_params_with_reason() {
    assert!(refused("http.get('http://shop/', { auth: 'ntlm' })").contains("NTLM isn't supported"));
    assert!(refused("http.get('http://shop/', { timeout: 'soon' })").contains("a duration is"));
    assert!(
        refused("http.get('http://shop/', { responseType: 'blob' })").contains("responseType is")
    );
    assert!(
        refused("http.get('http://shop/', { compression: 'lzma' })")
            .contains("params.compression is")
    );
    assert!(
        refused("http.get('http://shop/', { headers: { 'a b': 'c' } })")
            .contains("not a valid HTTP header")
    );
    assert!(
        refused("http.get('http://shop/', { headers: { a: 'b\\r\\nc: d' } })")
            .contains("not a valid HTTP header")
    );
    assert!(refused("http.get('http://shop/', { jar: {} })").contains("CookieJar"));
    assert!(refused("http.get(undefined)").contains("URL of a request"));
    assert!(refused("http.expectedStatuses('200')").contains("whole numbers"));
    assert!(refused("http.batch('http://shop')").contains("http.batch takes"));
}

#[test]
fn signs_in_by_address() {
    let all = sent(
        "http.get('http://user:p%40ss@shop/x'); http.get('http://user:pw@shop/', { auth: 'digest' });",
    );
    assert_eq!(header(&all[0], "Authorization"), Some("Basic dXNlcjpwQHNz"));
    assert_eq!(all[0].url, "http://shop/x");
    assert_eq!(all[1].auth, Auth::Digest);
    assert_eq!(header(&all[1], "Authorization"), None);
}

#[test]
fn names_requests_by_template() {
    let all = sent("for (const id of [1, 2]) http.get(http.url`http://shop/items/${id}?x=${id}`);");
    assert_eq!(all[1].url, "http://shop/items/2?x=2");
    assert_eq!(all[1].name.as_deref(), Some("http://shop/items/${}?x=${}"));
}

#[test]
fn sends_batch_at_once_in_all_forms() {
    let script = "import http from 'k6/http';
        export default function () {
          const list = http.batch(['http://shop/a', ['POST', 'http://shop/b', 'body', { tags: { t: '1' } }], { method: 'PUT', url: 'http://shop/c', body: { x: 1 }, params: { headers: { A: 'b' } } }]);
          const named = http.batch({ front: 'http://shop/d', back: { method: 'DELETE', url: 'http://shop/e' } });
          const one = http.batch([http.url`http://shop/f`]);
          return [list.map((r) => r.url), named.front.url, named.back.url, Array.isArray(list), one.length, one[0].status];
        }";
    let done = run(script, "");
    assert_eq!(
        *done.value(),
        json!([
            ["http://shop/a", "http://shop/b", "http://shop/c"],
            "http://shop/d",
            "http://shop/e",
            true,
            1,
            200
        ])
    );
    assert_eq!(done.turns, [3, 2, 1]);
    assert_eq!(done.requests[1].body, "body");
    assert_eq!(done.requests[2].body, "x=1");
    assert_eq!(header(&done.requests[2], "A"), Some("b"));
}

#[test]
fn heeds_expected_statuses_of_all_users_and_of_one() {
    let script = "import http from 'k6/http';
        http.setResponseCallback(http.expectedStatuses(200));
        export default function () { http.get('http://shop/1'); http.setResponseCallback(null); http.get('http://shop/2'); }";
    let done = run(script, "");
    assert_eq!(
        done.requests[0].expected,
        Expected::Ranges(vec![(200, 200)])
    );
    assert_eq!(done.requests[1].expected, Expected::Any);
}

#[test]
fn heeds_options_for_all_requests() {
    let script = "import http from 'k6/http';
        export const options = { discardResponseBodies: true, maxRedirects: 2, userAgent: 'shop-test/1' };
        export default function () { return [http.get('http://shop/').body, http.get('http://shop/', { responseType: 'text' }).body]; }";
    let done = run(script, "text");
    assert_eq!(*done.value(), json!([null, "text"]));
    assert_eq!(done.requests[0].response, ResponseKind::None);
    assert_eq!(done.requests[0].redirects, Some(2));
    assert_eq!(header(&done.requests[0], "User-Agent"), Some("shop-test/1"));
}

fn full(request: &Request) -> Answer {
    let headers = [
        ("content-type", "text/plain"),
        ("x-two", "a"),
        ("X-Two", "b"),
        ("Set-Cookie", "sid=abc; Path=/; HttpOnly; Max-Age=60"),
    ];
    Answer {
        status: 404,
        headers: headers
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        body: Bytes::from_static(b"caf\xc3\xa9 \xff"),
        timings: Timings {
            blocked: 10,
            connecting: 200,
            tls_handshaking: 300,
            sending: 1000,
            waiting: 2500,
            receiving: 500,
            ..Timings::default()
        },
        url: format!("{}?moved", request.url),
        protocol: "HTTP/2".to_owned(),
        ..Answer::default()
    }
}

#[test]
fn response_has_all_parts() {
    let script = "import http from 'k6/http';
        export default function () {
          const r = http.post('http://shop/x', { a: 'b' }, { headers: { 'X-Test': 'y' } });
          return { status: r.status, text: r.status_text, url: r.url, body: r.body, type: r.headers['Content-Type'], two: r.headers['X-Two'],
            cookie: r.cookies.sid[0], timings: r.timings, error: r.error, code: r.error_code, proto: r.proto, ip: r.remote_ip, port: r.remote_port,
            tls: r.tls_version, request: { method: r.request.method, url: r.request.url, body: r.request.body, headers: r.request.headers },
            same: r.headers === r.headers, is: r instanceof http.Response };
        }";
    let done = run_with(script, &full);
    assert_eq!(
        *done.value(),
        json!({
            "status": 404, "text": "", "url": "http://shop/x?moved", "body": "café \u{fffd}", "type": "text/plain", "two": "a, b",
            "cookie": { "name": "sid", "value": "abc", "domain": "shop", "path": "/", "http_only": true, "httpOnly": true, "secure": false,
                "max_age": 60, "maxAge": 60, "expires": 0 },
            "timings": { "blocked": 0.01, "looking_up": 0, "connecting": 0.2, "tls_handshaking": 0.3, "sending": 1, "waiting": 2.5, "receiving": 0.5, "duration": 4 },
            "error": "", "code": 1404, "proto": "HTTP/2.0", "ip": "", "port": 0, "tls": "",
            "request": { "method": "POST", "url": "http://shop/x", "body": "a=b",
                "headers": { "X-Test": ["y"], "Content-Type": ["application/x-www-form-urlencoded"] } },
            "same": true, "is": true,
        })
    );
}

#[test]
fn response_without_answer_has_error() {
    let failed = |_: &Request| Answer {
        url: "http://shop/".to_owned(),
        error: Some(Failure {
            code: 1050,
            message: "request timeout".to_owned(),
        }),
        ..Answer::default()
    };
    let script = "import http from 'k6/http'; export default function () { const r = http.get('http://shop/'); return [r.status, r.error, r.error_code, r.body]; }";
    assert_eq!(
        *run_with(script, &failed).value(),
        json!([0, "request timeout", 1050, null])
    );
    let throwing = format!("export const options = {{ throw: true }};\n{script}");
    assert!(
        run_with(&throwing, &failed)
            .error()
            .contains("request timeout")
    );
}

#[test]
fn binary_body_is_buffer() {
    let script = "import http from 'k6/http'; export default function () { const r = http.get('http://shop/', { responseType: 'binary' }); return [r.body.byteLength, new Uint8Array(r.body)[6]]; }";
    assert_eq!(*run_with(script, &full).value(), json!([7, 255]));
}

const PAGE: &str = r#"<html><body><a href="/about?x=1">About</a><a class="next" href="items/2">Next</a>
<form id="login" action="/login" method="post"><input name="user" value="ann"><input type="hidden" name="token" value="t&amp;1">
<input type="checkbox" name="keep"><select name="lang"><option value="de">Deutsch</option><option value="en" selected>English</option></select>
<button type="submit" name="go" value="yes">Go</button></form>
<form id="find" action="/find?old=1"><input name="q" value="a b"></form></body></html>"#;

fn page(request: &Request) -> Answer {
    Answer {
        url: "http://shop/shelf/1".to_owned(),
        ..answer(if request.method == "GET" { PAGE } else { "" })
    }
}

#[test]
fn submits_forms_and_clicks_links() {
    let script = "import http from 'k6/http';
        export default function () {
          const r = http.get('http://shop/shelf/1');
          r.submitForm({ formSelector: '#login', fields: { user: 'bob', password: 'x y' }, params: { tags: { name: 'b' } } });
          r.submitForm({ formSelector: '#find' });
          r.clickLink();
          r.clickLink({ selector: 'a.next' });
          try { r.submitForm({ formSelector: '#none' }); } catch (error) { return error.message; }
        }";
    let done = run_with(script, &page);
    assert_eq!(
        *done.value(),
        "no form is found by '#none' in the response of http://shop/shelf/1"
    );
    let sent: Vec<_> = done.requests[1..]
        .iter()
        .map(|r| {
            format!(
                "{} {} {}",
                r.method,
                r.url,
                String::from_utf8_lossy(&r.body)
            )
        })
        .collect();
    assert_eq!(
        sent,
        [
            "POST http://shop/login go=yes&lang=en&password=x+y&token=t%261&user=bob",
            "GET http://shop/find?q=a+b ",
            "GET http://shop/about?x=1 ",
            "GET http://shop/shelf/items/2 ",
        ]
    );
    assert_eq!(done.requests[1].name.as_deref(), Some("b"));
}

#[test]
fn sends_async_requests_at_once() {
    let script = "import http from 'k6/http';
        export default async function () {
          const one = http.asyncRequest('GET', 'http://shop/1');
          const two = http.asyncRequest('POST', 'http://shop/2', 'x');
          const all = await Promise.all([one, two]);
          return all.map((r) => r.url);
        }";
    let done = run(script, "");
    assert_eq!(*done.value(), json!(["http://shop/1", "http://shop/2"]));
    assert_eq!(done.turns, [2]);
}

#[test]
fn request_of_response_is_known_in_all_forms() {
    for read in [
        "JSON.parse(JSON.stringify(r.request, null, 1)).method",
        "(({ request }) => request.method)(r)",
        "(({ request: { method } }) => method)(r)",
        "r['request'].method",
        "r?.request?.method",
        "[r.request, 1][0].method",
    ] {
        let text = format!(
            "import http from 'k6/http';\nexport default () => {{ const r = http.request('PUT', 'http://a'); return {read} }}"
        );
        assert_eq!(*run(&text, "").value(), "PUT", "{read}");
    }
}
