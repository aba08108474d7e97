//! What scripts find without an import: console, URL, URLSearchParams, crypto, timers, text.

use lab_script::{Event, Level};
use serde_json::json;

use super::{error, eval, run};

#[test]
fn logs_by_level() {
    let script = "export default function () { console.log('a', 1, { b: [true] }); console.warn(null, undefined); console.error(new Uint8Array([1, 2])); console.debug('x'.repeat(20000)); }";
    let done = run(script, "");
    let logs: Vec<_> = done
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Log { level, text, .. } => Some((*level, text.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(logs[0], (Level::Info, "a 1 {\"b\":[true]}"));
    assert_eq!(logs[1], (Level::Warn, "null undefined"));
    assert_eq!(logs[2].0, Level::Error);
    assert_eq!(logs[3].0, Level::Debug);
    assert!(logs[3].1.len() < 10_100 && logs[3].1.ends_with("… (20000 characters)"));
}

#[test]
fn parses_urls_as_whatwg_says() {
    // Inputs of the URL standard's own examples.
    let href = |input: &str| eval("", &format!("new URL({input}).href"));
    assert_eq!(href("'https:example.org'"), "https://example.org/");
    assert_eq!(
        href("'https://////example.com///'"),
        "https://example.com///"
    );
    assert_eq!(
        href("'https://example.com/././foo'"),
        "https://example.com/foo"
    );
    assert_eq!(href("'hello:world', 'https://example.com'"), "hello:world");
    assert_eq!(
        href("'https:example.org', 'https://example.com/'"),
        "https://example.com/example.org"
    );
    assert_eq!(
        href("'\\\\example\\\\..\\\\demo/.\\\\', 'https://example.com/'"),
        "https://example.com/demo/"
    );
    assert_eq!(
        href("'example', 'https://example.com/demo'"),
        "https://example.com/example"
    );
    assert_eq!(href("'https://EXAMPLE.com/../x'"), "https://example.com/x");
    assert_eq!(href("'https://ex%41mple.com'"), "https://example.com/");
    assert_eq!(href("'http://[1::2]:80'"), "http://[1::2]/");
    assert_eq!(
        href("'https://münchen.de/ä?ö#ü'"),
        "https://xn--mnchen-3ya.de/%C3%A4?%C3%B6#%C3%BC"
    );
    assert!(error("", "new URL('https://ex ample.org/')").contains("is not a valid URL"));
    assert!(error("", "new URL('//example.com')").contains("is not a valid URL"));
    assert!(error("", "new URL('https://example.com:demo')").contains("is not a valid URL"));
    assert_eq!(
        eval("", "[URL.canParse('x'), URL.canParse('x', 'http://a')]"),
        json!([false, true])
    );
}

#[test]
fn url_parts_can_be_set() {
    let script = "(() => {
        const url = new URL('https://user:pw@example.com:8443/a/b?x=1&y=2#frag');
        const before = [url.protocol, url.username, url.password, url.host, url.hostname, url.port, url.pathname, url.search, url.hash, url.origin];
        url.port = '443'; url.hash = ''; url.pathname = '/c d'; url.searchParams.append('z', 'a&b'); url.searchParams.delete('x'); url.host = 'shop.example:99';
        const mid = url.href;
        url.search = '?q=7';
        return [before, mid, url.searchParams.get('q'), String(url), JSON.stringify({ url })];
    })()";
    assert_eq!(
        eval("", script),
        json!([
            [
                "https:",
                "user",
                "pw",
                "example.com:8443",
                "example.com",
                "8443",
                "/a/b",
                "?x=1&y=2",
                "#frag",
                "https://example.com:8443"
            ],
            "https://user:pw@shop.example:99/c%20d?y=2&z=a%26b",
            "7",
            "https://user:pw@shop.example:99/c%20d?q=7",
            "{\"url\":\"https://user:pw@shop.example:99/c%20d?q=7\"}",
        ])
    );
}

#[test]
fn search_params_are_lists_of_pairs() {
    let script = "(() => {
        const p = new URLSearchParams('?a=1&b=%20x+y&a=2');
        p.append('c', 'ü'); p.set('b', 'z');
        const q = new URLSearchParams([['k', 'v'], ['a', 1]]);
        q.sort();
        return [p.toString(), p.getAll('a'), p.get('none'), p.has('c'), [...p.keys()], p.size, q.toString(), [...new URLSearchParams({ x: 'y' })], [...q].length];
    })()";
    assert_eq!(
        eval("", script),
        json!([
            "a=1&b=z&a=2&c=%C3%BC",
            ["1", "2"],
            null,
            true,
            ["a", "b", "a", "c"],
            4,
            "a=1&k=v",
            [["x", "y"]],
            2
        ])
    );
    let library = "import { URL } from 'https://jslib.k6.io/url/1.0.0/index.js'";
    assert_eq!(
        eval(library, "new URL('/a', 'http://b').href"),
        "http://b/a"
    );
}

#[test]
fn web_crypto_draws_hashes_and_signs() {
    let uuid = eval("", "crypto.randomUUID()");
    let uuid = uuid.as_str().unwrap();
    assert!(
        uuid.len() == 36 && &uuid[14..15] == "4" && "89ab".contains(&uuid[19..20]),
        "{uuid}"
    );
    assert_eq!(
        eval("", "crypto.getRandomValues(new Uint32Array(3)).length"),
        3
    );
    assert!(error("", "crypto.getRandomValues(new Uint8Array(70000))").contains("at most 65536"));
    let script = "export default async function () {
        const data = new TextEncoder().encode('my data');
        const key = await crypto.subtle.importKey('raw', new TextEncoder().encode('a secret'), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);
        const signature = await crypto.subtle.sign('HMAC', key, data);
        const hash = await crypto.subtle.digest('SHA-1', new TextEncoder().encode('hello world!'));
        return [new Uint8Array(signature).toHex(), await crypto.subtle.verify('HMAC', key, signature, data), new Uint8Array(hash).toHex()];
    }";
    assert_eq!(
        *run(script, "").value(),
        json!([
            "82f669c8fde13aef6d6977257588dc4953dfac505428f8fd6b52e19cd96d7ea5",
            true,
            "430ce34d020724ed75a196dfc2ad67c77772d169"
        ])
    );
}

#[test]
fn converts_text() {
    assert_eq!(
        eval(
            "",
            "[btoa('hello'), atob('aGVsbG8='), new TextDecoder().decode(new TextEncoder().encode('é€'))]"
        ),
        json!(["aGVsbG8=", "hello", "é€"])
    );
}

#[test]
fn timers_run_before_iteration_ends() {
    let script = "import { setTimeout as later } from 'k6/timers';
        export default function () {
          console.log('start');
          const gone = setTimeout(() => console.log('never'), 10);
          clearTimeout(gone);
          later((name) => console.log('after ' + name), 200, 'wait');
          console.log('end');
        }";
    let done = run(script, "");
    assert_eq!(done.logs(), ["start", "end", "after wait"]);
    assert_eq!(done.waits.iter().sum::<u64>(), 200_000, "{:?}", done.waits);
}

#[test]
fn intervals_repeat_until_cleared() {
    let script = "export default function () {
          let n = 0;
          const id = setInterval(() => { n++; console.log('tick ' + n); if (n === 3) clearInterval(id); }, 100);
        }";
    let done = run(script, "");
    assert_eq!(done.logs(), ["tick 1", "tick 2", "tick 3"]);
    assert!(error("", "setTimeout('code', 1)").contains("takes a function"));
}

#[test]
fn base64_takes_any_value() {
    assert_eq!(eval("", "[btoa(123), atob('YQ==')]"), json!(["MTIz", "a"]));
}
