//! Cookies as scripts see and set them.

use lab_script::{Answer, Failure, Limits, Request, Runtime};
use serde_json::json;

use super::{answer, call, error, facts};
use crate::play::load;

fn with_cookie(request: &Request) -> Answer {
    let sets: &[&str] = match request.url.contains("login") {
        true => &["sid=abc", "theme=dark"],
        false => &[],
    };
    let header = |pair: &&str| {
        let value = format!("{pair}; Domain=shop.example; Path=/");
        ("Set-Cookie".to_owned(), value)
    };
    Answer {
        url: request.url.clone(),
        headers: sets.iter().map(header).collect(),
        ..answer("")
    }
}

#[test]
fn jar_shows_and_changes_cookies() {
    let script = "import http from 'k6/http';
        export default function () {
          const jar = http.cookieJar();
          const url = 'http://shop.example/cart/1';
          const first = jar.cookiesForURL(url);
          http.get('http://shop.example/login');
          const second = jar.cookiesForURL(url);
          jar.set('http://shop.example', 'own', 'a b', { domain: 'shop.example', path: '/cart', secure: false, max_age: 600 });
          jar.set('http://shop.example', 'safe', 'x', { secure: true });
          const third = jar.cookiesForURL(url);
          jar.delete(url, 'sid');
          const fourth = jar.cookiesForURL(url);
          jar.clear('http://shop.example/cart/1');
          http.get('http://shop.example/other');
          return [first, second, third, fourth, jar.cookiesForURL(url), jar.cookiesForURL('http://else.example/'), jar.cookiesForURL('https://shop.example/')];
        }";
    let program = load(&[("main.js", script)]);
    let mut runtime = Runtime::new(&program, Limits::default(), 1).unwrap();
    let done = call(&mut runtime, 0, facts(), &with_cookie);
    assert_eq!(
        *done.value(),
        json!([{}, { "sid": ["abc"], "theme": ["dark"] }, { "own": ["a b"], "sid": ["abc"], "theme": ["dark"] },
            { "own": ["a b"], "theme": ["dark"] }, {}, {}, { "safe": ["x"] }])
    );
    let changes: Vec<_> = done.requests[1]
        .jar
        .changes
        .iter()
        .map(|cookie| {
            (
                cookie.name.as_str(),
                cookie.value.as_str(),
                cookie.path.as_str(),
                cookie.max_age,
            )
        })
        .collect();
    assert_eq!(
        changes,
        [
            ("own", "a b", "/cart", Some(600)),
            ("safe", "x", "/", None),
            ("sid", "", "/", Some(0)),
            ("theme", "", "/", Some(0)),
            ("own", "", "/cart", Some(0)),
        ]
    );
    let again = call(&mut runtime, 0, facts(), &with_cookie);
    assert_eq!(
        again.value()[0],
        json!({}),
        "an iteration begins without cookies"
    );
}

#[test]
fn own_jar_sends_nothing() {
    let script = "import http from 'k6/http';
        export default function () {
          const jar = new http.CookieJar();
          jar.set('http://shop.example/', 'a', 'b');
          http.get('http://shop.example/login');
          let refused = '';
          try { http.get('http://shop.example/', { jar }); } catch (error) { refused = error.message; }
          return [jar.cookiesForURL('http://shop.example/'), http.cookieJar().cookiesForURL('http://shop.example/'), refused.includes('http.cookieJar()')];
        }";
    let program = load(&[("main.js", script)]);
    let mut runtime = Runtime::new(&program, Limits::default(), 1).unwrap();
    let done = call(&mut runtime, 0, facts(), &with_cookie);
    assert_eq!(
        *done.value(),
        json!([{ "a": ["b"] }, { "sid": ["abc"], "theme": ["dark"] }, true])
    );
    assert!(done.requests[0].jar.changes.is_empty());
}

#[test]
fn jars_of_an_iteration_end_with_it() {
    let script = "import http from 'k6/http';
        let kept = new http.CookieJar();
        let before;
        export default function () {
          const url = 'http://shop.example/';
          const jar = new http.CookieJar();
          if (before === undefined) kept.set(url, 'k', '1');
          const seen = [kept.cookiesForURL(url), before?.cookiesForURL(url)];
          jar.set(url, 'a', 'b');
          before = jar;
          return seen;
        }";
    let program = load(&[("main.js", script)]);
    let mut runtime = Runtime::new(&program, Limits::default(), 1).unwrap();
    let first = call(&mut runtime, 0, facts(), &with_cookie);
    assert_eq!(*first.value(), json!([{ "k": ["1"] }, null]));
    let second = call(&mut runtime, 0, facts(), &with_cookie);
    assert_eq!(*second.value(), json!([{ "k": ["1"] }, {}]));
}

#[test]
fn cookies_may_be_named_like_members_of_objects() {
    let script = "import http from 'k6/http';
        export default function () {
          const r = http.get('http://shop.example/');
          const seen = http.cookieJar().cookiesForURL('http://shop.example/');
          const { request } = http.get('http://shop.example/', { cookies: { valueOf: 'x' }, headers: { constructor: 'y' } });
          return [Object.keys(r.cookies), r.cookies.constructor[0].value, Object.keys(seen), r.headers['__proto__'],
            Object.keys(request.cookies), request.headers.Constructor];
        }";
    let program = load(&[("main.js", script)]);
    let mut runtime = Runtime::new(&program, Limits::default(), 1).unwrap();
    let set = |request: &Request| Answer {
        url: request.url.clone(),
        headers: [
            "constructor=1",
            "hasOwnProperty=2",
            "__proto__=3",
            "toString=4",
        ]
        .map(|value| ("Set-Cookie".to_owned(), value.to_owned()))
        .into_iter()
        .chain([("__proto__".to_owned(), "5".to_owned())])
        .collect(),
        ..answer("")
    };
    let done = call(&mut runtime, 0, facts(), &set);
    let names = json!(["constructor", "hasOwnProperty", "__proto__", "toString"]);
    assert_eq!(
        *done.value(),
        json!([names, "1", names, "5", ["valueOf"], ["y"]])
    );
}

#[test]
fn responses_keep_their_requests_after_a_refusal() {
    let script = "import http from 'k6/http';
        export const options = { throw: true };
        export default function () {
          const url = 'http://shop.example/';
          http.cookieJar().set(url, 'a', 'b');
          try { http.batch([[ 'GET', url + 'lost' ], ['GET', url, null, { timeout: 'soon' }]]); } catch {}
          try { http.batch([['GET', url + 'fails'], ['GET', url + 'second']]); } catch {}
          return http.get(url + 'third', { responseType: 'none' }).request.url;
        }";
    let program = load(&[("main.js", script)]);
    let mut runtime = Runtime::new(&program, Limits::default(), 1).unwrap();
    let failing = |request: &Request| Answer {
        error: request.url.contains("fails").then(|| Failure {
            code: 1050,
            message: "request timeout".to_owned(),
        }),
        ..answer("")
    };
    let done = call(&mut runtime, 0, facts(), &failing);
    assert_eq!(*done.value(), "http://shop.example/third");
    assert_eq!(done.requests[0].jar.changes.len(), 1);
}

#[test]
fn headers_set_and_end_cookies() {
    let script = "import http from 'k6/http';
        export default function () {
          const jar = http.cookieJar();
          http.get('http://shop.example/a/b');
          const first = jar.cookiesForURL('http://shop.example/a/c');
          http.get('http://shop.example/a/end');
          return [first, jar.cookiesForURL('http://shop.example/a/c'), jar.cookiesForURL('http://www.shop.example/')];
        }";
    let program = load(&[("main.js", script)]);
    let mut runtime = Runtime::new(&program, Limits::default(), 1).unwrap();
    let set = |request: &Request| {
        let set = if request.url.ends_with("end") {
            [
                "sid=; Max-Age=0; Path=/",
                "old=x; Expires=Wed, 21 Oct 2015 07:28:00 GMT",
            ]
        } else {
            ["sid=1; Domain=.shop.example; Path=/", "old=x"]
        };
        let headers = set
            .map(|value| ("Set-Cookie".to_owned(), value.to_owned()))
            .to_vec();
        Answer {
            url: request.url.clone(),
            headers,
            ..answer("")
        }
    };
    let done = call(&mut runtime, 0, facts(), &set);
    assert_eq!(
        *done.value(),
        json!([{ "old": ["x"], "sid": ["1"] }, {}, {}])
    );
}

#[test]
fn names_bad_addresses_and_dates() {
    let imports = "import http from 'k6/http'";
    assert!(
        error(imports, "http.cookieJar().cookiesForURL('shop')")
            .contains("'shop' is not a valid URL")
    );
    assert!(
        error(
            imports,
            "http.cookieJar().set('http://a.b', 'a', 'b', { expires: 'soon' })"
        )
        .contains("not a valid cookie date")
    );
}
