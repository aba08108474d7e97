//! What ends a turn of one user, and leaves the others alone.

use std::time::Duration;

use lab_script::{Limits, Outcome, Runtime, ThrownKind, Turn};

use crate::play::{Play, call, load};

fn thrown(body: &str) -> (ThrownKind, Vec<String>, String) {
    let text = format!(
        "import http from 'k6/http';\nimport {{ check, sleep }} from 'k6';\nexport default function () {{ if (__VU === 1) broken(); else http.get('http://a/1'); return __VU }}\nfunction broken() {{\n{body}\n}}"
    );
    let program = load(&[("main.js", &text)]);
    let limits = Limits {
        turn: Duration::from_millis(50),
        memory: 64 << 20,
        ..Limits::default()
    };
    let mut runtime = Runtime::new(&program, limits, 1).expect("the modules run");
    // A user that waits meanwhile.
    let waiting = runtime.begin(1, &call("default", 1, 0));
    assert!(matches!(waiting, Turn::Request(_)), "{waiting:?}");
    let Turn::Threw(thrown) = runtime.begin(0, &call("default", 0, 0)) else {
        panic!("it doesn't throw");
    };
    let answer = Outcome::Answers(vec![lab_script::Answer::default()]);
    let done = runtime.resume(1, answer);
    assert!(
        matches!(&done, Turn::Done { value: Some(value) } if *value == 2),
        "{done:?}"
    );
    let frames = thrown
        .stack
        .iter()
        .map(|frame| format!("{}@{}:{}", frame.function, frame.file, frame.line));
    (thrown.kind, frames.collect(), thrown.message)
}

#[test]
fn endless_loop_ends() {
    let (kind, stack, message) = thrown("for (;;) {\n  Math.sqrt(2)\n}");
    assert_eq!(kind, ThrownKind::Turn);
    assert!(stack[0].starts_with("broken@main.js:"), "{stack:?}");
    assert_eq!(stack.last().map(String::as_str), Some("default@main.js:3"));
    assert!(message.contains("50 ms"), "{message}");
}

#[test]
fn endless_loop_cannot_be_caught() {
    let (kind, ..) = thrown("for (;;) { try { for (;;); } catch {} finally { for (;;); } }");
    assert_eq!(kind, ThrownKind::Turn);
}

#[test]
fn jobs_that_multiply_before_a_wait_end() {
    let text = "import { sleep } from 'k6';\nexport default async () => { const p = Promise.resolve(); const f = () => { p.then(f); p.then(f) }; f(); sleep(1) }";
    let limits = Limits {
        turn: Duration::from_millis(50),
        ..Limits::default()
    };
    let mut runtime = Runtime::new(&load(&[("main.js", text)]), limits, 1).expect("it loads");
    let turn = runtime.begin(0, &call("default", 0, 0));
    assert!(
        matches!(&turn, Turn::Threw(thrown) if thrown.kind == ThrownKind::Turn),
        "{turn:?}"
    );
    // Without the bound, the jobs end only when they have used up the memory.
    assert!(runtime.memory() < 512 << 20);
}

#[test]
fn memory_bomb_ends() {
    let (kind, stack, _) =
        thrown("const all = [];\nfor (;;) all.push('x'.repeat(1e5) + all.length)");
    assert_eq!(kind, ThrownKind::Memory, "{stack:?}");
}

#[test]
fn deep_recursion_ends() {
    let (kind, stack, _) = thrown("const f = (n) => 1 + f(n + 1);\nf(0)");
    assert_eq!(kind, ThrownKind::Stack, "{stack:?}");
    assert!(stack[0].contains("main.js:5"), "{stack:?}");
}

#[test]
fn throwing_check_has_place() {
    let (kind, stack, message) =
        thrown("const r = null;\ncheck(r, {\n  ok: (r) =>\n    r.status === 200\n})");
    assert_eq!(kind, ThrownKind::Error);
    assert_eq!(stack[0], "ok@main.js:8", "{stack:?}");
    assert!(message.starts_with("TypeError"), "{message}");
}

#[test]
fn lost_request_has_place() {
    let (kind, stack, _) =
        thrown("const lost = JSON.stringify(\n{ toJSON: http.get.bind(http, 'http://a') })");
    assert_eq!(kind, ThrownKind::NotHandedOver, "{stack:?}");
    let (kind, stack, _) = thrown(
        "const sort = [2, 1]\nsort.sort(hidden)\nfunction hidden() {\n  return http.get('http://a/1').status\n}",
    );
    assert_eq!(kind, ThrownKind::NotHandedOver);
    assert_eq!(stack[0], "@main.js:8", "{stack:?}");
}

#[test]
fn error_after_wait_has_whole_chain() {
    let text = "import { sleep } from 'k6';\nexport default () => {\n  outer();\n}\nfunction outer() {\n  [1].forEach((n) => {\n    inner(n);\n  })\n}\nfunction inner(n) {\n  sleep(1);\n  throw new Error('late');\n}";
    let mut play = Play::new(&load(&[("main.js", text)]));
    let thrown = play.iteration(0).expect_err("it throws");
    let lines: Vec<u32> = thrown.stack.iter().map(|frame| frame.line).collect();
    assert_eq!(lines, [12, 7, 8, 3], "{thrown:?}");
    assert_eq!(thrown.message, "late");
    assert_eq!(thrown.stack[0].function, "inner");
}

#[test]
fn thrown_values_are_shown() {
    let of = |value: &str| thrown(&format!("throw {value}")).2;
    assert_eq!(of("'text'"), "text");
    assert_eq!(of("{ code: 5 }"), "{\"code\":5}");
    assert_eq!(of("new RangeError('far')"), "RangeError: far");
    assert_eq!(of("undefined"), "undefined");
}

#[test]
fn module_code_may_take_longer_than_a_turn() {
    let text = "const end = Date.now() + 1; let sum = 0;\nlet rows = made();\nfunction made() { const all = []; for (let i = 0; i < 400_000; i++) all.push({ i, text: String(i) }); return all.length + Math.random() * 0 }\nexport default () => rows + sum + end * 0";
    let program = load(&[("main.js", text)]);
    let limits = Limits {
        turn: Duration::from_millis(5),
        ..Limits::default()
    };
    let mut runtime = Runtime::new(&program, limits, 1).expect("the modules run");
    for user in 0..2 {
        let done = runtime.begin(user, &call("default", user, 0));
        assert!(matches!(&done, Turn::Done { .. }), "{done:?}");
    }
}

#[test]
fn thrown_texts_of_a_server_keep_their_kind() {
    let (kind, _, message) = thrown("throw new Error('java: out of memory, db is read-only')");
    assert_eq!(
        (kind, message.as_str()),
        (ThrownKind::Error, "java: out of memory, db is read-only")
    );
    let (kind, ..) = thrown("throw 'stack overflow: out of memory'");
    assert_eq!(kind, ThrownKind::Error);
}

#[test]
fn cycles_are_collected() {
    let text = "export default () => { const a = { text: 'x'.repeat(10_000) + __ITER }; a.own = () => a; return 1 }";
    let mut play = Play::new(&load(&[("main.js", text)]));
    let before = play.runtime.memory();
    for _ in 0..10_000 {
        assert_eq!(play.iteration(0), Ok(Some(1.into())));
    }
    let grown = play.runtime.memory().saturating_sub(before);
    assert!(grown < 40_000_000, "{grown}");
    assert!(play.runtime.collect().bytes > 0);
}

/// The result of an iteration of a script with these statements in an async function.
fn of_async(body: &str) -> Result<Option<serde_json::Value>, lab_script::Thrown> {
    let text = format!(
        "import http from 'k6/http';\nimport {{ setTimeout }} from 'k6/timers';\nexport default async function () {{\n{body}\n}}"
    );
    Play::new(&load(&[("main.js", &text)])).iteration(0)
}

#[test]
fn unhandled_rejection_ends_the_iteration() {
    let thrown = of_async("setTimeout(() => {\n  throw new Error('late') }, 10)");
    let thrown = thrown.expect_err("it throws");
    assert_eq!(thrown.to_string(), "main.js:5: late");
    let thrown = of_async("(async () => { await null; throw 'lost' })(); return 1");
    assert_eq!(thrown.expect_err("it throws").message, "lost");
    let handled = "const p = (async () => { throw new Error('x') })();\nawait http.asyncRequest('GET', 'http://a/1');\ntry { await p } catch { return 2 }";
    assert_eq!(of_async(handled), Ok(Some(2.into())));
}

#[test]
fn endless_loop_in_promise_ends() {
    let text = "export default () => { (async () => { await null; for (;;); })(); return 1 }";
    let mut play = Play::new(&load(&[("main.js", text)]));
    let thrown = play.iteration(0).expect_err("it throws");
    assert_eq!(thrown.kind, ThrownKind::Turn);
    let text =
        "export default () => { const f = async () => { for (;;) await null }; f(); return 1 }";
    let mut play = Play::new(&load(&[("main.js", text)]));
    assert_eq!(
        play.iteration(0).map_err(|thrown| thrown.kind),
        Err(ThrownKind::Turn)
    );
}

#[test]
fn refused_parameter_has_place_and_can_be_caught() {
    let (kind, stack, message) = thrown("http.get('http://a',\n  { timeout: 'soon' })");
    assert_eq!(kind, ThrownKind::Error);
    assert_eq!(stack, ["@main.js:5"], "{message}");
    let text = "import http from 'k6/http';\nexport default () => {\n  try { http.batch([['GET', 'http://a/1'], ['GET', 'http://a/2', null, { headers: { 'a b': 'c' } }]]) } catch (error) { return [error.message.length > 0, http.get('http://a/3').status] }\n}";
    let mut play = Play::new(&load(&[("main.js", text)]));
    assert_eq!(play.iteration(0), Ok(Some(serde_json::json!([true, 200]))));
}

#[test]
fn each_user_has_its_own_timers() {
    let text = "import { sleep } from 'k6';\nimport { setTimeout, clearTimeout } from 'k6/timers';\nlet n = 0;\nexport default async () => { for (let i = 1; i < 500; i++) clearTimeout(i); setTimeout(() => { n++ }, 1000); if (__ITER === 1) return n; await null; sleep(5); return n }";
    let mut play = Play::new(&load(&[("main.js", text)]));
    for user in 0..10_100 {
        play.runtime.begin(user, &call("default", user, 0));
        play.runtime.end_call(user);
    }
    let mut first = play.runtime.begin(0, &call("default", 0, 0));
    play.runtime.begin(1, &call("default", 1, 0));
    while let Turn::Wait { .. } = first {
        first = play.runtime.resume(0, Outcome::Waited);
    }
    assert!(
        matches!(&first, Turn::Done { value: Some(n) } if *n == 1),
        "{first:?}"
    );
}

/// A runtime with 64 MiB, and its turns whose requests are answered with 1 MiB.
fn with_large_answers(text: &str) -> Result<serde_json::Value, lab_script::Thrown> {
    let limits = Limits {
        memory: 64 << 20,
        turn: Duration::from_secs(60),
        ..Limits::default()
    };
    let mut runtime = Runtime::new(&load(&[("main.js", text)]), limits, 1).expect("it loads");
    let mut turn = runtime.begin(0, &call("default", 0, 0));
    loop {
        let answer = lab_script::Answer {
            status: 200,
            body: vec![b'a'; 1 << 20].into(),
            ..lab_script::Answer::default()
        };
        turn = match turn {
            Turn::Request(_) => runtime.resume(0, Outcome::Answers(vec![answer])),
            Turn::Done { value } => return Ok(value.unwrap_or_default()),
            Turn::Threw(thrown) => return Err(thrown),
            other => panic!("{other:?}"),
        };
        assert!(runtime.memory() < 80 << 20);
    }
}

#[test]
fn held_answers_count_as_memory() {
    let text = "import http from 'k6/http';\nexport default () => { const all = []; for (let i = 0; i < 500; i++)\n all.push(http.get('http://a/1')); return all.length }";
    let thrown = with_large_answers(text).expect_err("it throws");
    assert_eq!(
        (thrown.kind, thrown.place().as_deref()),
        (ThrownKind::Memory, Some("main.js:3"))
    );
    let dropped = text.replace("all.push(http.get('http://a/1'))", "http.get('http://a/1')");
    assert_eq!(with_large_answers(&dropped), Ok(0.into()));
    let cycles = text.replace("all.push(", "((r) => { const a = { r }; a.a = a })(");
    assert_eq!(with_large_answers(&cycles), Ok(0.into()));
    let pages = text.replace(
        ".push(http.get('http://a/1'))",
        ".push(http.get('http://a/1').html())",
    );
    assert_eq!(
        with_large_answers(&pages).map_err(|thrown| thrown.kind),
        Err(ThrownKind::Memory)
    );
}

#[test]
fn pages_of_short_elements_count_as_memory() {
    let text = "import { parseHTML } from 'k6/html';\nexport default () => { const page = '<p>'.repeat(50_000), all = []; for (let i = 0; i < 16; i++) all.push(parseHTML(page)); return all.length }";
    assert_eq!(
        with_large_answers(text).map_err(|thrown| thrown.kind),
        Err(ThrownKind::Memory)
    );
}

#[test]
fn held_answers_are_collected_before_they_meet_the_heap() {
    let text = "import http from 'k6/http';\nconst large = Array.from({ length: 36 }, (_, i) => 'x'.repeat(1e6) + i);\nexport default () => { const all = []; for (let i = 0; i < 16; i++) all.push(http.get('http://a/1'));\n for (let i = 0; i < 100; i++) { const a = { r: http.get('http://a/1') }; a.a = a } return all.length + large.length }";
    assert_eq!(with_large_answers(text), Ok(52.into()));
}

#[test]
fn ended_call_frees_its_memory() {
    let text = "import { sleep } from 'k6';\nlet n = 0;\nexport default () => { n++; const data = 'x'.repeat(1e6) + n; sleep(1); return data.length + n }";
    let mut play = Play::new(&load(&[("main.js", text)]));
    let before = play.runtime.memory();
    for user in 0..50 {
        play.runtime.begin(user, &call("default", user, 0));
    }
    assert!(play.runtime.memory() > before + 50_000_000);
    for user in 0..50 {
        play.runtime.end_call(user);
    }
    assert!(play.runtime.memory() < before + 2_000_000);
    assert_eq!(play.iteration(3), Ok(Some(1_000_003.into())));
    play.runtime.begin(3, &call("default", 3, 1));
    play.runtime.end_call(3);
    assert_eq!(play.iteration(3), Ok(Some(1_000_005.into())));
}
