//! jslib: k6-utils, papaparse, httpx.

use lab_script::{Facts, Limits, Runtime};
use serde_json::json;

use super::{answer, call, error, eval, run};
use crate::play::load;

const UTILS: &str = "import { randomIntBetween, randomItem, randomString, uuidv4, findBetween, normalDistributionStages } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js'";

#[test]
fn utils_draw_in_range() {
    let script = "(() => {
        let least = 9, most = 0;
        for (let i = 0; i < 500; i++) { const n = randomIntBetween(1, 5); least = Math.min(least, n); most = Math.max(most, n); }
        return [least, most, ['a', 'b'].includes(randomItem(['a', 'b'])), randomString(8).length, /^[xy]{20}$/.test(randomString(20, 'xy')), uuidv4().length];
    })()";
    assert_eq!(eval(UTILS, script), json!([1, 5, true, 8, true, 36]));
    assert_eq!(
        eval(UTILS, "[randomIntBetween(1, 1e6), uuidv4()]"),
        eval(UTILS, "[randomIntBetween(1, 1e6), uuidv4()]"),
        "the seed decides"
    );
}

#[test]
fn utils_find_between() {
    let page = r#"<div class="message">Message 1</div><div class="message">Message 2</div>"#;
    let of = |more: &str| {
        eval(
            UTILS,
            &format!("findBetween('{page}', '<div class=\"message\">', '</div>'{more})"),
        )
    };
    assert_eq!(of(""), "Message 1");
    assert_eq!(of(", true"), json!(["Message 1", "Message 2"]));
    assert_eq!(
        eval(
            UTILS,
            "[findBetween('abc', 'x', 'y'), findBetween('abc', 'x', 'y', true), findBetween('aaa', '', '', true).length]"
        ),
        json!(["", [], 4])
    );
}

#[test]
fn utils_make_bell_of_stages() {
    let stages = eval(UTILS, "normalDistributionStages(10, 20, 5)");
    assert_eq!(
        stages,
        json!([{ "duration": "4s", "target": 1 }, { "duration": "4s", "target": 6 }, { "duration": "4s", "target": 10 },
            { "duration": "4s", "target": 6 }, { "duration": "4s", "target": 1 }])
    );
}

#[test]
fn utils_know_current_stage() {
    let script = "import { getCurrentStageIndex, tagWithCurrentStageIndex, tagWithCurrentStageProfile } from 'https://jslib.k6.io/k6-utils/1.3.0/index.js';
        import exec from 'k6/execution';
        export const options = { stages: [{ duration: '5s', target: 10 }, { duration: '1m', target: 10 }, { duration: '5s', target: 0 }] };
        export default function () { tagWithCurrentStageIndex(); tagWithCurrentStageProfile(); return [getCurrentStageIndex(), exec.vu.tags.stage, exec.vu.tags.stage_profile]; }";
    let program = load(&[("main.js", script)]);
    let mut runtime = Runtime::new(&program, Limits::default(), 1).unwrap();
    let mut at = |now_ms: f64| {
        let facts = Facts {
            scenario: "default".to_owned(),
            start_ms: 1000.0,
            now_ms,
            ..Facts::default()
        };
        let done = call(&mut runtime, 0, facts, &|_| answer(""));
        done.value().clone()
    };
    assert_eq!(at(2000.0), json!([0, "0", "ramp-up"]));
    assert_eq!(at(30_000.0), json!([1, "1", "steady"]));
    assert_eq!(at(68_000.0), json!([2, "2", "ramp-down"]));
}

#[test]
fn check_of_utils_tests_once() {
    let script = "import { check } from 'https://jslib.k6.io/k6-utils/1.5.0/index.js';
        import http from 'k6/http';
        export default async function () {
          let calls = 0;
          const good = check(1, { first: () => ++calls, sends: () => http.get('http://shop/').status === 200, flag: false });
          const later = await check(1, { slow: async () => true, plain: () => ++calls });
          try { check(1, { broken: () => { throw new Error('x') } }) } catch { calls++ }
          return [good, later, calls];
        }";
    let done = run(script, "");
    assert_eq!(*done.value(), json!([false, true, 3]));
    assert_eq!(
        done.checks(),
        ["first", "sends", "!flag", "plain", "slow", "!broken"]
    );
}

#[test]
fn papaparse_reads_csv() {
    let imports = "import papaparse from 'https://jslib.k6.io/papaparse/5.1.1/index.js'";
    let rows = eval(
        imports,
        r#"papaparse.parse('name,age\r\nAnn,7\r\n"B, ""x""\ny",8\r\n\r\n', { header: true, skipEmptyLines: true }).data"#,
    );
    assert_eq!(
        rows,
        json!([{ "name": "Ann", "age": "7" }, { "name": "B, \"x\"\ny", "age": "8" }])
    );
    assert_eq!(
        eval(
            imports,
            "papaparse.parse('a;b\\n1;true', { dynamicTyping: true }).data"
        ),
        json!([["a", "b"], [1, true]])
    );
    assert_eq!(
        eval(
            imports,
            "papaparse.parse('a,b\\n1', { header: true }).errors[0].code"
        ),
        "TooFewFields"
    );
    assert_eq!(
        eval(imports, "papaparse.parse('a,\"b').errors[0].code"),
        "MissingQuotes"
    );
    assert_eq!(
        eval(
            imports,
            "papaparse.parse('a\\nb\\nc', { preview: 2 }).data.length"
        ),
        2
    );
    assert_eq!(
        eval(imports, "papaparse.unparse([{ a: 1, b: 'x,\"y' }])"),
        "a,b\r\n1,\"x,\"\"y\""
    );
    assert!(error(imports, "papaparse.parse(null)").contains("takes text"));
}

#[test]
fn httpx_keeps_session() {
    let script = "import { Httpx, Get } from 'https://jslib.k6.io/httpx/0.1.0/index.js';
        const session = new Httpx({ baseURL: 'http://shop', headers: { 'User-Agent': 'mine' }, timeout: 20000 });
        export default function () {
          session.addHeader('Authorization', 'token');
          session.addTag('name', 'b');
          const r = session.post('/login', JSON.stringify({ u: 1 }), { headers: { X: 'y' } });
          session.clearHeader('Authorization');
          session.setBaseUrl('http://other');
          const all = session.batch([new Get('/1'), new Get('http://shop/2')], { tags: { name: 'both' } });
          return [r.status, all.length];
        }";
    let done = run(script, "{}");
    assert_eq!(*done.value(), json!([200, 2]));
    let first = &done.requests[0];
    assert_eq!(
        (first.method.as_str(), first.url.as_str()),
        ("POST", "http://shop/login")
    );
    assert_eq!(first.headers.len(), 3);
    assert_eq!(first.timeout, Some(std::time::Duration::from_secs(20)));
    assert_eq!(first.name.as_deref(), Some("b"));
    assert_eq!(done.requests[1].url, "http://other/1");
    assert_eq!(done.requests[2].url, "http://shop/2");
    assert_eq!(done.requests[1].name.as_deref(), Some("both"));
    assert_eq!(done.requests[1].headers.len(), 1);
}
