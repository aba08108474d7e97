//! `k6`, `k6/metrics`, `k6/execution`, and `k6/data`.

use lab_script::{Event, Facts, Limits, MetricKind, Runtime};
use serde_json::json;

use super::{answer, call, error, eval, facts, run};
use crate::play::load;

#[test]
fn records_checks() {
    let script = "import { check } from 'k6';
        export default function () {
          const good = check(4, { even: (n) => n % 2 === 0, 'is 4': 1 }, { part: 'a' });
          const bad = check(4, { odd: (n) => n % 2 === 1 });
          return [good, bad];
        }";
    let done = run(script, "");
    assert_eq!(*done.value(), json!([true, false]));
    assert_eq!(done.checks(), ["even", "is 4", "!odd"]);
}

#[test]
fn check_waits_for_its_tests() {
    let script = "import http from 'k6/http'; import { check } from 'k6';
        export default function () {
          return check(1, { first: true, sends: () => http.get('http://shop/a').status === 200, last: () => false });
        }";
    let done = run(script, "");
    assert_eq!(*done.value(), json!(false));
    assert_eq!(done.checks(), ["first", "sends", "!last"]);
    assert_eq!(done.requests.len(), 1);
}

#[test]
fn check_that_throws_fails_and_throws() {
    let script = "import { check } from 'k6';
        export default function () { check(null, { 'has a name': (v) => v.name === 'x', later: () => true }); }";
    let done = run(script, "");
    assert!(done.error().contains("TypeError"), "{}", done.error());
    assert_eq!(done.checks(), ["!has a name"]);
    assert!(error("import { check } from 'k6'", "check(1)").contains("object of named tests"));
}

#[test]
fn groups_nest_and_end_after_errors() {
    let script = "import http from 'k6/http'; import { group, sleep } from 'k6';
        export default function () {
          const got = group('shop', () => { http.get('http://shop/'); group('cart', () => sleep(0.5)); return 7; });
          try { group('broken', () => { throw new Error('no'); }); } catch {}
          return got;
        }";
    let done = run(script, "");
    assert_eq!(*done.value(), json!(7));
    let groups: Vec<_> = done
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Group { name, begins } => {
                Some(format!("{}{name}", if *begins { '+' } else { '-' }))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        groups,
        ["+shop", "+cart", "-cart", "-shop", "+broken", "-broken"]
    );
    assert_eq!(done.waits, [500_000]);
    assert!(error("import { group } from 'k6'", "group('a::b', () => 1)").contains("'::'"));
    assert!(error("import { group } from 'k6'", "group('a')").contains("takes a function"));
}

#[test]
fn sleeps_fails_and_seeds() {
    let done = run(
        "import { sleep, fail } from 'k6'; export default function () { sleep(1.5); sleep(-1); fail('no more'); }",
        "",
    );
    assert_eq!(done.waits, [1_500_000, 0]);
    assert!(done.error().contains("no more"));
    assert!(error("import { sleep } from 'k6'", "sleep('soon')").contains("number of seconds"));
    let seeded = eval(
        "import { randomSeed } from 'k6'",
        "(() => { randomSeed(7); const a = Math.random(); randomSeed(7); return [a === Math.random(), a !== Math.random()]; })()",
    );
    assert_eq!(seeded, json!([true, true]));
}

#[test]
fn adds_values_to_metrics() {
    let script = "import { Counter, Gauge, Rate, Trend } from 'k6/metrics';
        const counter = new Counter('orders'); const gauge = new Gauge('size'); const rate = new Rate('good'); const trend = new Trend('wait', true);
        export default function () {
          counter.add(true); gauge.add(12, { a: 1 }); rate.add('x'); rate.add(0); trend.add('3.5'); return trend.add('soon');
        }";
    let done = run(script, "");
    assert_eq!(*done.value(), json!(false));
    let metrics: Vec<_> = done
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Metric {
                name,
                kind,
                time,
                value,
                ..
            } => Some((name.as_str(), *kind, *time, *value)),
            _ => None,
        })
        .collect();
    assert_eq!(
        metrics,
        [
            ("orders", MetricKind::Counter, false, 1.0),
            ("size", MetricKind::Gauge, false, 12.0),
            ("good", MetricKind::Rate, false, 1.0),
            ("good", MetricKind::Rate, false, 0.0),
            ("wait", MetricKind::Trend, true, 3.5),
        ]
    );
    assert_eq!(
        done.logs(),
        ["wait: a string isn't a number, so it is not added"]
    );
}

#[test]
fn shows_facts_of_call() {
    let script = "import exec from 'k6/execution';
        export const options = { stages: [{ duration: '5s', target: 100 }] };
        export default function () {
          return [exec.vu.idInTest, exec.vu.idInInstance, exec.vu.iterationInInstance, exec.vu.iterationInScenario,
            exec.scenario.name, exec.scenario.executor, exec.scenario.iterationInTest, exec.scenario.iterationInInstance,
            exec.scenario.startTime, exec.scenario.progress, exec.instance.vusActive, exec.instance.iterationsCompleted,
            exec.instance.currentTestRunDuration, exec.test.options.paused, exec.test.options.scenarios.default.stages[0].target];
        }";
    let program = load(&[("main.js", script)]);
    let mut runtime = Runtime::new(&program, Limits::default(), 1).unwrap();
    let facts = Facts {
        vu_in_test: 12,
        vu_in_instance: 2,
        iteration_in_test: 100,
        iteration_in_instance: 50,
        iteration_in_scenario: 5,
        iteration_of_user: 6,
        scenario: "shop".to_owned(),
        executor: "ramping-vus".to_owned(),
        start_ms: 1000.0,
        now_ms: 1500.0,
        progress: 0.25,
        iterations_completed: 9,
        vus_active: 3,
        ..Facts::default()
    };
    let done = call(&mut runtime, 0, facts, &|_| answer(""));
    assert_eq!(
        *done.value(),
        json!([
            12,
            2,
            6,
            5,
            "shop",
            "ramping-vus",
            100,
            50,
            1000,
            0.25,
            3,
            9,
            500,
            null,
            100
        ])
    );
}

#[test]
fn tags_of_user_name_all_requests_that_follow() {
    let script = "import exec from 'k6/execution'; import http from 'k6/http'; import { check } from 'k6';
        export default function () {
          if (exec.vu.metrics.tags.plan !== undefined) return [Object.keys(exec.vu.tags), exec.vu.tags.plan, 'plan' in exec.vu.tags];
          exec.vu.metrics.tags.plan = 2;
          http.get('http://shop/');
          exec.vu.tags.name = 'Plan';
          http.get('http://shop/');
          http.get('http://shop/', { tags: { name: 'own' } });
          delete exec.vu.tags.name;
          exec.vu.tags['gone'] = 'y';
          delete exec.vu.metrics.tags.gone;
        }";
    let program = load(&[("main.js", script)]);
    let mut runtime = Runtime::new(&program, Limits::default(), 1).unwrap();
    let done = call(&mut runtime, 0, facts(), &|_| answer(""));
    let names = [None, Some("Plan".to_owned()), Some("own".to_owned())];
    let sent = done.requests.iter().map(|request| request.name.clone());
    assert_eq!(sent.collect::<Vec<_>>(), names);
    assert_eq!(
        *call(&mut runtime, 0, facts(), &|_| answer("")).value(),
        json!([["scenario", "plan"], "2", true])
    );
    assert_eq!(
        *call(&mut runtime, 1, facts(), &|_| answer("")).value(),
        json!(null),
        "another user has none"
    );
    assert!(
        error("import exec from 'k6/execution'", "(exec.vu.tags.a = {})")
            .contains("isn't a text, a number, or a boolean")
    );
}

#[test]
fn aborts_and_fails_test() {
    let done = run(
        "import exec from 'k6/execution'; export default function () { exec.test.fail('later'); exec.test.abort('now'); }",
        "",
    );
    assert!(done.error().contains("now"));
    assert!(matches!(&done.events[0], Event::Fail { reason } if reason == "later"));
    assert!(matches!(&done.events[1], Event::Interrupt { reason } if reason == "now"));
}

#[test]
fn shares_rows_that_nobody_can_change() {
    let script = "import { SharedArray } from 'k6/data';
        const rows = new SharedArray('users', () => [{ name: 'a', tags: ['x'] }, { name: 'b' }]);
        export default function () {
          const names = []; for (const row of rows) names.push(row.name);
          let kept = true; try { rows[0].tags.push('y'); kept = false; } catch {}
          return [rows.length, names, rows[1].name, rows.map((row) => row.name).join(), kept];
        }";
    assert_eq!(
        *run(script, "").value(),
        json!([2, ["a", "b"], "b", "a,b", true])
    );
    let imports = "import { SharedArray } from 'k6/data'";
    assert!(error(imports, "new SharedArray('x', () => [])").contains("top of a module"));
}

#[test]
fn options_of_test_are_shared_and_frozen() {
    let script = "import exec from 'k6/execution';
        export const options = { vus: 2, tags: { a: 'b' } };
        export default function () {
          let refused = 0;
          for (const write of [() => { exec.test.options.vus = 3 }, () => { exec.test.options.tags.a = 'c' }]) {
            try { write() } catch { refused++ }
          }
          return [refused, exec.test.options.vus, exec.test.options.tags.a, exec.test.options.rps];
        }";
    assert_eq!(*run(script, "").value(), json!([2, 2, "b", null]));
}
