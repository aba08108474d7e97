//! What a script says of its whole test, and what fails around its load: each reaches the trial and the exit code.

use serde_json::Value;

use super::scripts::{Log, first_trial, folder, run, shop};

/// Runs a script against the shop. Returns the trial, the output, the exit code, and the received requests.
fn ran(script: &str) -> (Value, String, Option<i32>, Vec<String>) {
    let log = Log::default();
    let url = shop(&log);
    let folder = folder(&[("test.js", script)]);
    let variable = format!("BASE_URL={url}");
    let arguments = [
        "run",
        "test.js",
        "-e",
        &variable,
        "--set",
        "repeats=0",
        "--out",
        "run",
    ];
    let (said, code) = run(folder.path(), &arguments);
    let trial = first_trial(folder.path(), &said);
    let log = log.lock().expect("not poisoned").clone();
    (trial, said, code, log)
}

#[test]
fn a_failed_test_fails_the_run() {
    let script = r"
import http from 'k6/http';
import exec from 'k6/execution';
export const options = { vus: 1, duration: '1s' };
export default function () {
  http.get(`${__ENV.BASE_URL}/a`);
  exec.test.fail('no stock');
}
";
    let (trial, said, code, _) = ran(script);
    assert!(matches!(code, Some(99 | 120)), "{code:?} {said}");
    assert_eq!(trial["test_failed"], "no stock", "{trial}");
    assert_eq!(trial["errors"], 0, "it is no failed request: {trial}");
    let judged = trial["thresholds"].as_array().expect("thresholds");
    let missed = judged.iter().find(|one| one["holds"] == false);
    let reason = missed.map(|one| one["reason"].to_string());
    assert!(
        reason.is_some_and(|why| why.contains("no stock")),
        "{trial}"
    );
    assert!(
        said.contains("the script failed the test: no stock"),
        "{said}"
    );
}

#[test]
fn an_aborted_test_ends_all_scenarios() {
    let script = r"
import http from 'k6/http';
import exec from 'k6/execution';
import { sleep } from 'k6';
const scenario = { executor: 'constant-vus', vus: 1, duration: '60s' };
export const options = {
  scenarios: { stops: { ...scenario, exec: 'stops' }, goes: { ...scenario, exec: 'goes' } },
};
export function stops() {
  http.get(`${__ENV.BASE_URL}/a`);
  sleep(0.5);
  exec.test.abort('the shop is closed');
}
export function goes() {
  http.get(`${__ENV.BASE_URL}/b/${exec.scenario.name}`);
  sleep(0.1);
}
export function teardown() {
  http.del(`${__ENV.BASE_URL}/${exec.scenario.executor}`);
}
";
    let (trial, said, code, log) = ran(script);
    assert!(trial["elapsed_ms"].as_u64() < Some(40_000), "{trial}");
    assert_eq!(trial["aborted"], true, "{trial}");
    assert!(code != Some(0), "{said}");
    assert!(said.contains("the shop is closed"), "{said}");
    assert!(log.iter().any(|line| line.contains("/b/goes")), "{log:?}");
    assert!(
        log.iter().any(|line| line.contains("DELETE /constant-vus")),
        "`teardown` runs after an aborted trial, too: {log:?}"
    );
}

#[test]
fn values_that_are_in_no_figure_fail_their_thresholds() {
    let script = r"
import http from 'k6/http';
import { check } from 'k6';
import { Trend } from 'k6/metrics';
const change = new Trend('change');
export const options = { vus: 1, duration: '1s', thresholds: { change: ['max<100'] } };
export default function () {
  const answer = http.get(`${__ENV.BASE_URL}/a`);
  check(answer, { [`status of ${__ITER} is 200`]: (r) => r.status === 200 });
  change.add(5);
  change.add(-5);
}
";
    let (trial, said, code, _) = ran(script);
    assert!(matches!(code, Some(99 | 120)), "{code:?} {said}");
    assert!(trial["not_counted"]["change"].as_u64() > Some(0), "{trial}");
    assert!(
        trial["not_counted"]["check: status of 0 is 200"] == 1,
        "{trial}"
    );
    let is_judged = code == Some(99);
    assert_eq!(
        said.contains("values are in no figure"),
        is_judged,
        "{said}"
    );
    let notes = trial["notes"].to_string();
    assert!(notes.contains("“change” are in no figure"), "{notes}");
}

#[test]
fn failures_around_the_load_are_told_and_lose_no_trial() {
    let script = r"
import http from 'k6/http';
export const options = { vus: 1, duration: '1s' };
export function setup() {
  http.get(`${__ENV.BASE_URL}/missing`);
}
export default function () {
  http.get(`${__ENV.BASE_URL}/a`);
}
export function teardown() {
  http.get(`${__ENV.BASE_URL}/missing`);
  throw new Error('nothing to remove');
}
";
    let (trial, said, code, _) = ran(script);
    assert!(matches!(code, Some(0 | 120)), "{code:?} {said}");
    assert!(trial["preparation_failure"].is_null(), "{trial}");
    assert!(trial["transactions"].as_u64() > Some(3), "{trial}");
    assert_eq!(trial["errors"], 0, "{trial}");
    assert_eq!(trial["setup_errors"], 1, "{trial}");
    let examples = trial["error_examples"].to_string();
    assert!(examples.contains("setup: GET /missing"), "{examples}");
    let notes = trial["notes"].to_string();
    assert!(notes.contains("nothing to remove"), "{notes}");
    assert!(notes.contains("1 of 1 requests of `teardown`"), "{notes}");
}

#[test]
fn a_try_runs_everything_once_and_prints_no_secret() {
    let script = r"
import http from 'k6/http';
export const options = { vus: 2, duration: '1s' };
export function setup() {
  http.post(`${__ENV.BASE_URL}/rooms`);
  return { room: 7 };
}
export default function (data) {
  http.get(`${__ENV.BASE_URL}/rooms/${data.room}`);
  console.log('the room is', data.room, 'by', __ENV.API_TOKEN);
  throw new Error(`no entry with ${__ENV.API_TOKEN}`);
}
export function teardown(data) {
  http.del(`${__ENV.BASE_URL}/rooms/${data.room}`);
}
";
    let log = Log::default();
    let url = shop(&log);
    let folder = folder(&[("rooms.js", script)]);
    let variable = format!("BASE_URL={url}");
    let token = "API_TOKEN=hush-9271";
    let arguments = ["try", "rooms.js", "-e", &variable, "-e", token];
    let (said, code) = run(folder.path(), &arguments);
    assert_eq!(code, Some(99), "{said}");
    let log = log.lock().expect("not poisoned").clone();
    let lines: Vec<&str> = log
        .iter()
        .map(|line| line.split(" [").next().unwrap_or(line))
        .collect();
    let expected = ["POST /rooms", "GET /rooms/7", "DELETE /rooms/7"];
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{lines:?}");
    }
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(said.contains("log: the room is 7 by ***"), "{said}");
    assert!(said.contains("no entry with ***"), "{said}");
    assert!(!said.contains("hush-9271"), "{said}");
}

#[test]
fn a_script_that_cannot_be_loaded_prints_no_secret() {
    let script = r"
if (!`${__ENV.API_TOKEN ?? 'live'}`.startsWith('live')) throw new Error(`bad token ${__ENV.API_TOKEN}`);
export default function () {}
";
    let folder = folder(&[("start.js", script)]);
    let given = ["-e", "API_TOKEN=hush-9271", "--url", "http://127.0.0.1:1"];
    for command in ["try", "run", "plan"] {
        let (said, code) = run(
            folder.path(),
            &[&[command, "start.js"][..], &given].concat(),
        );
        assert_eq!(code, Some(104), "{said}");
        assert!(said.contains("bad token ***"), "{said}");
        assert!(!said.contains("hush-9271"), "{said}");
    }
}

#[test]
fn cookies_of_a_script_are_sent_as_the_script_says() {
    let script = r"
import http from 'k6/http';
export default function () {
  const url = __ENV.BASE_URL;
  http.post(`${url}/login`, 'x');
  http.get(`${url}/with`, { headers: { Cookie: 'own=1; session=mine' } });
  http.get(`${url}/with`);
  const jar = http.cookieJar();
  jar.delete(url, 'session');
  jar.set('https://auth.other/', 'foreign', 'f');
  jar.set(url, 'kept', 'k', { max_age: 60 });
  http.get(`${url}/without`);
}
";
    let log = Log::default();
    let url = shop(&log);
    let folder = folder(&[("cookies.js", script)]);
    let variable = format!("BASE_URL={url}");
    let (said, code) = run(folder.path(), &["try", "cookies.js", "-e", &variable]);
    assert_eq!(code, Some(0), "{said}");
    let log = log.lock().expect("not poisoned").clone();
    let cookies = log.iter().map(|line| {
        let sent = line.split_once('[').map_or("", |(_, rest)| rest);
        sent.split(']').next().unwrap_or_default()
    });
    let cookies: Vec<&str> = cookies.collect();
    assert_eq!(cookies, ["", "own=1; session=mine", "session=s1", "kept=k"]);
}
