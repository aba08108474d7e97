//! Scripts in the form of k6 as users: against a server that records what it receives.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use plimsoll_tests::web::{self, Received};
use serde_json::Value;

use super::plimsoll;

/// What a server received: lines with the body and the cookies.
pub(super) type Log = Arc<Mutex<Vec<String>>>;

/// A shop that sets a cookie at the login, and knows items and orders.
pub(super) fn shop(log: &Log) -> String {
    let log = Arc::clone(log);
    let port = web::serve(move |request: &Received| {
        let body = String::from_utf8_lossy(&request.body);
        let cookies = request.header("cookie").unwrap_or_default();
        let line = format!("{} [{cookies}] {body}", request.line());
        log.lock().expect("not poisoned").push(line);
        let (path, _) = request.target();
        match path {
            "/login" => (
                "200 OK\r\nSet-Cookie: session=s1; Path=/".to_owned(),
                "{}".to_owned(),
            ),
            "/token" => ("200 OK".to_owned(), r#"{"token":"t-7"}"#.to_owned()),
            "/items" => (
                "200 OK".to_owned(),
                r#"{"items":[{"id":3},{"id":4}]}"#.to_owned(),
            ),
            "/orders" => ("201 Created".to_owned(), r#"{"id":9}"#.to_owned()),
            "/missing" => ("404 None".to_owned(), "{}".to_owned()),
            _ => ("200 OK".to_owned(), "{}".to_owned()),
        }
    });
    format!("http://127.0.0.1:{port}")
}

const SHOP: &str = r"
import http from 'k6/http';
import { check, group, sleep } from 'k6';
import { Trend } from 'k6/metrics';
import { order } from './lib/order.js';

const BASE = __ENV.BASE_URL || 'http://127.0.0.1:1';
const price = new Trend('price');

export const options = {
  vus: 2,
  duration: '2s',
  thresholds: {
    http_req_failed: ['rate<0.5'],
    http_req_duration: ['p(50)<10000'],
    checks: ['rate<=0.5'],
    price: ['avg==20', 'count>0'],
  },
};

export function setup() {
  const answer = http.get(`${BASE}/token`);
  return { token: answer.json('token') };
}

export default function (data) {
  group('Sign in', () => {
    http.post(`${BASE}/login`, JSON.stringify({ user: 'u' }), { headers: { 'X-Token': data.token } });
  });
  const list = http.get(`${BASE}/items?page=1`);
  check(list, {
    'list is there': (r) => r.status === 200,
    'list is empty': (r) => r.json('items').length === 0,
  });
  const all = http.batch([['GET', `${BASE}/a`], ['GET', `${BASE}/b`]]);
  price.add(all.length * 10);
  order(BASE, list.json().items[0].id);
  sleep(0.05);
}

export function teardown(data) {
  http.del(`${BASE}/token/${data.token}`);
}
";

const ORDER: &str = r"
import http from 'k6/http';

export function order(base, id) {
  http.post(`${base}/orders`, JSON.stringify({ id }), { headers: { 'Content-Type': 'application/json' } });
}
";

/// Writes the files, and returns the folder.
pub(super) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    folder
}

pub(super) fn run(folder: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let output = plimsoll(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    let shown = String::from_utf8_lossy(&output.stdout);
    (format!("{shown}{said}"), output.status.code())
}

pub(super) fn first_trial(folder: &Path, said: &str) -> Value {
    let text = fs::read_to_string(folder.join("run/result.json"));
    let text = text.unwrap_or_else(|error| panic!("{error}: {said}"));
    let mut result: Value = serde_json::from_str(&text).expect("JSON");
    result["trials"][0].take()
}

fn steps(trial: &Value) -> Vec<(String, u64)> {
    let steps = trial["steps"].as_array().expect("steps");
    let step = |step: &Value| {
        let name = step["name"].as_str().expect("a name");
        let done = step["transactions"].as_u64().expect("a count");
        (name.to_owned(), done)
    };
    steps.iter().map(step).collect()
}

#[test]
fn a_script_of_k6_is_measured_as_it_is() {
    let log = Log::default();
    let url = shop(&log);
    let folder = folder(&[("shop.js", SHOP), ("lib/order.js", ORDER)]);
    let variable = format!("BASE_URL={url}");
    let (said, code) = run(
        folder.path(),
        &[
            "run",
            "shop.js",
            "-e",
            &variable,
            "--set",
            "repeats=0",
            "--out",
            "run",
        ],
    );
    assert!(matches!(code, Some(0 | 120)), "{code:?} {said}");
    assert!(said.contains("the server is http://127.0.0.1"), "{said}");
    let trial = first_trial(folder.path(), &said);
    let counted = steps(&trial);
    let count = |part: &str| -> u64 {
        let of = counted.iter().filter(|(name, _)| name.contains(part));
        of.map(|(_, count)| count).sum()
    };
    let lists = count("/items");
    assert!(lists > 3, "{counted:?}");
    assert!(
        count("/login") >= lists && count("/orders") > 0,
        "{counted:?}"
    );
    assert_eq!(trial["errors"], 0, "{trial}");

    let log = log.lock().expect("not poisoned").clone();
    let received = |part: &str| log.iter().filter(|line| line.contains(part)).count();
    assert_eq!(received("GET /token "), 1, "once, before the load");
    assert_eq!(received("DELETE /token/t-7 "), 1, "once, after the load");
    let with_cookie = |line: &&String| line.contains("/items") && line.contains("[session=s1]");
    assert!(log.iter().filter(with_cookie).count() as u64 >= lists);
    let login = log.iter().filter(|line| line.contains("/login"));
    assert!(
        login
            .clone()
            .all(|line| line.contains("[] {\"user\":\"u\"}")),
        "each session begins without cookies: {login:?}"
    );
    assert!(
        log.iter()
            .any(|line| line.contains("/orders") && line.ends_with("{\"id\":3}"))
    );

    let measures = trial["measures"].as_array().expect("measures");
    let mean = |name: &str| {
        let mut found = measures.iter().filter(|one| one["name"] == name);
        found.next().map(|one| one["values"]["mean"].clone())
    };
    assert_eq!(
        mean("check: list is there"),
        Some(1.0.into()),
        "{measures:?}"
    );
    assert_eq!(
        mean("check: list is empty"),
        Some(0.0.into()),
        "{measures:?}"
    );
    assert_eq!(mean("price"), Some(20.0.into()), "{measures:?}");
    let thresholds = trial["thresholds"].as_array().expect("thresholds");
    let of_measures = thresholds.iter().filter(|one| one["metric"] == "measure");
    let of_measures: Vec<(&Value, &Value)> = of_measures
        .map(|one| (&one["measure"], &one["holds"]))
        .collect();
    let (checks, price) = (Value::from("checks"), Value::from("price"));
    let holds = Value::from(true);
    let expected = [&checks, &price, &price, &price].map(|name| (name, &holds));
    assert_eq!(of_measures, expected, "{trial}");
    let transactions = trial["named_transactions"].to_string();
    assert!(transactions.contains("Sign in"), "{trial}");

    let archived = fs::read_to_string(folder.path().join("run/files/script-shop.js"));
    assert_eq!(archived.expect("archived"), SHOP);
    let archived = fs::read_to_string(folder.path().join("run/files/script-lib_order.js"));
    assert_eq!(archived.expect("archived"), ORDER);
}

const DRAWS: &str = r"
import http from 'k6/http';
import { sleep } from 'k6';

export default function () {
  http.get(`${__ENV.BASE_URL}/a?x=${Math.random()}&n=${__ITER}`);
  http.post(`${__ENV.BASE_URL}/b`, `${Math.floor(Math.random() * 1000)}`);
  sleep(Math.random() / 100);
}
";

#[test]
fn two_runs_send_the_same_bytes() {
    let sent = || {
        let log = Log::default();
        let url = shop(&log);
        let folder = folder(&[("draws.js", DRAWS)]);
        let variable = format!("BASE_URL={url}");
        let (said, code) = run(
            folder.path(),
            &[
                "run",
                "draws.js",
                "--iterations",
                "5",
                "-e",
                &variable,
                "--set",
                "repeats=0",
                "--out",
                "run",
            ],
        );
        assert!(matches!(code, Some(0 | 120)), "{code:?} {said}");
        let log = log.lock().expect("not poisoned").clone();
        assert_eq!(log.len(), 10, "{said} {log:?}");
        log
    };
    let (one, other) = (sent(), sent());
    assert_eq!(one, other);
    assert_ne!(one[0], one[2], "the sessions differ");
}

const BROKEN: &str = r"
import http from 'k6/http';

export const options = { vus: 2, duration: '1s' };

export default function () {
  let spun = 0;
  http.get(`${__ENV.BASE_URL}/a`);
  if (__ITER % 2 === 0) {
    while (true) {
      spun = Math.sqrt(spun + 1);
    }
  }
  throw new Error('no items');
}
";

#[test]
fn errors_of_a_script_are_counted_with_their_place() {
    let log = Log::default();
    let url = shop(&log);
    let folder = folder(&[("broken.js", BROKEN)]);
    let variable = format!("BASE_URL={url}");
    let (said, code) = run(
        folder.path(),
        &[
            "run",
            "broken.js",
            "-e",
            &variable,
            "--set",
            "repeats=0",
            "--out",
            "run",
        ],
    );
    assert!(matches!(code, Some(99 | 120)), "{code:?} {said}");
    let trial = first_trial(folder.path(), &said);
    let errors = trial["errors_by_class"]["script"].as_u64();
    assert!(errors > Some(1), "{trial}");
    let examples = trial["error_examples"].to_string();
    assert!(
        examples.contains("broken.js:14") && examples.contains("no items"),
        "{examples}"
    );
    // The engine stops at the call in the loop, or at its end, which has the place of what is before it.
    assert!(
        ["broken.js:9", "broken.js:10", "broken.js:11"]
            .iter()
            .any(|line| examples.contains(line)),
        "the endless loop: {examples}"
    );
}

#[test]
fn options_without_a_counterpart_are_refused_with_their_line() {
    let script = "import http from 'k6/http';\n\nexport const options = {\n  rps: 10,\n};\n\
                  export default function () { http.get('http://127.0.0.1:1/'); }\n";
    let folder = folder(&[("old.js", script)]);
    let (said, code) = run(folder.path(), &["run", "old.js"]);
    assert_eq!(code, Some(104), "{said}");
    assert!(
        said.contains("old.js:4") && said.contains("constant-arrival-rate"),
        "{said}"
    );
}

#[test]
fn a_workload_of_a_script_is_checked_and_tried() {
    let log = Log::default();
    let url = shop(&log);
    let workload = "workload: shop\nsession: { script: shop.js }\n";
    let folder = folder(&[
        ("shop.js", SHOP),
        ("lib/order.js", ORDER),
        ("shop.workload.yaml", workload),
    ]);
    let (said, code) = run(folder.path(), &["check", "shop.workload.yaml"]);
    assert_eq!(code, Some(0), "{said}");
    let variable = format!("BASE_URL={url}");
    let (said, code) = run(
        folder.path(),
        &["plan", "shop.js", "--vus", "3", "-e", &variable],
    );
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("rate <= 50% of “checks”") && said.contains("3 connections at most"),
        "{said}"
    );
    let (said, code) = run(
        folder.path(),
        &["run", "shop.js", "--url", &url, "--rate", "3"],
    );
    assert_eq!(code, Some(104), "{said}");
    assert!(
        said.contains("--rate can't be used with a script"),
        "{said}"
    );
    let named = ["init", "--from", "shop.js", "--name", "made", "--url", &url];
    let (said, code) = run(folder.path(), &named);
    assert_eq!(code, Some(0), "{said}");
    let study = fs::read_to_string(folder.path().join("made.study.yaml"));
    let study = study.expect("a study");
    assert!(study.contains("measure{name:price}"), "{study}");
    let (said, code) = run(folder.path(), &["try", "shop.js", "-e", &variable]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("/items?page=1") && said.contains("/orders"),
        "{said}"
    );
    let text = workload.replace("shop.js }", "shop.js, function: checkout }");
    fs::write(folder.path().join("shop.workload.yaml"), text).expect("written");
    let (said, code) = run(folder.path(), &["check", "shop.workload.yaml"]);
    assert_eq!(code, Some(104), "{said}");
    assert!(
        said.contains("the script exports no function `checkout`"),
        "{said}"
    );
}
