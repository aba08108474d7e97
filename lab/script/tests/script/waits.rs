//! Functions that wait, in all forms in which scripts have them.

use crate::play::played;

/// Plays a script whose default function has this body, and returns its requests.
fn sent(body: &str) -> Vec<String> {
    script(&format!("export default function () {{\n{body}\n}}"))
}

/// Plays a script, behind the usual imports.
fn script(text: &str) -> Vec<String> {
    let text =
        format!("import http from 'k6/http';import {{ check, group, sleep }} from 'k6';\n{text}");
    let play = played(&[("main.js", &text)]);
    play.sent
        .iter()
        .map(|sent| sent.replace("GET http://a", ""))
        .collect()
}

#[test]
fn waits_in_expressions() {
    assert_eq!(
        sent(
            "const x = [http.get('http://a/1'), http.get('http://a/2')].length; http.get(`http://a/${x}`)"
        ),
        ["/1", "/2", "/2"]
    );
    assert_eq!(
        sent(
            "return http.get('http://a/1').json().id === 7 ? http.get('http://a/y') : http.get('http://a/n')"
        ),
        ["/1", "/y"]
    );
    assert_eq!(
        sent("http.get(http.get('http://a/1').json().url.replace('1', '2'))"),
        ["/1", "/2"]
    );
    assert_eq!(
        sent(
            "if (!http.get('http://a/1') || http.get('http://a/2').status) http.get('http://a/3')"
        ),
        ["/1", "/2", "/3"]
    );
    assert_eq!(
        sent("let i = 0; while (http.get(`http://a/${i}`).status === 200 && ++i < 3);"),
        ["/0", "/1", "/2"]
    );
    assert_eq!(
        sent("for (const c of http.get('http://a/1').body.slice(2, 5)) http.get(`http://a/${c}`)"),
        ["/1", "/u", "/r", "/l"]
    );
    assert_eq!(
        sent(
            "const { status: s, body: { length } } = http.get('http://a/1'); http.get(`http://a/${s}/${length > 5}`)"
        ),
        ["/1", "/200/true"]
    );
    assert_eq!(
        sent(
            "throw_: try { http.get('http://a/1'); throw 1 } catch { http.get('http://a/2') } finally { http.get('http://a/3') }"
        ),
        ["/1", "/2", "/3"]
    );
    assert_eq!(
        sent("switch (http.get('http://a/1').status) { case 200: http.get('http://a/2') }"),
        ["/1", "/2"]
    );
}

#[test]
fn statements_without_semicolons_stay_apart() {
    assert_eq!(
        sent(
            "const a = 1\nhttp.get('http://a/1')\nhttp.get('http://a/2').json()\nconst f = () => 3\nhttp.get(`http://a/${a}`)\nif (a) http.get('http://a/4')\nelse http.get('http://a/5')\nlet b = a\n++b\nhttp.get(`http://a/${b}`)"
        ),
        ["/1", "/2", "/1", "/4", "/2"]
    );
}

#[test]
fn functions_that_call_each_other_wait() {
    assert_eq!(
        script(
            "function a(n) { if (n > 0) b(n); return n }\nconst b = function (n) { http.get(`http://a/${n}`); a(n - 1) };\nexport default () => a(2)"
        ),
        ["/2", "/1"]
    );
    assert_eq!(
        script(
            "const get = (p) => http.get('http://a' + p);\nexport default () => { get('/1'); inner(); function inner() { get('/2') } }"
        ),
        ["/1", "/2"]
    );
    assert_eq!(
        script(
            "const twice = x => (get => [get(x), get(x)])(http.get);\nexport default () => { twice('http://a/1') }"
        ),
        ["/1", "/1"]
    );
    assert_eq!(
        sent("const { get: g } = http; g('http://a/1'); const f = http.get; f('http://a/2')"),
        ["/1", "/2"]
    );
    assert_eq!(
        sent(
            "function run(f) { return f('http://a/1') } run(http.get); run((u) => http.get(u + '2'))"
        ),
        ["/1", "/12"]
    );
    assert_eq!(
        sent(
            "function run({ action, n }) { for (let i = 0; i < n; i++) action(i) } run({ n: 2, action: (i) => http.get(`http://a/${i}`) })"
        ),
        ["/0", "/1"]
    );
    assert_eq!(
        sent(
            "const make = (p) => (n) => http.get(`http://a/${p}/${n}`); make('x')(1); const f = make('y'); f(2)"
        ),
        ["/x/1", "/y/2"]
    );
    assert_eq!(
        sent(
            "function get(p = '/d') { return http.get(`http://a${p}`) } get(); get.call(null, '/c'); get.apply(null, ['/a']); const b = get.bind(null, '/b'); b()"
        ),
        ["/d", "/c", "/a", "/b"]
    );
    assert_eq!(
        sent(
            "const steps = [() => http.get('http://a/1'), function () { http.get('http://a/2') }]; for (const step of steps) step(); steps[0]()"
        ),
        ["/1", "/2", "/1"]
    );
    assert_eq!(
        sent(
            "const flows = { a: () => http.get('http://a/1'), b() { http.get('http://a/2') } }; for (const name of Object.keys(flows)) flows[name]()"
        ),
        ["/1", "/2"]
    );
}

#[test]
fn methods_and_classes_wait() {
    assert_eq!(
        script(
            "class Client { #base; constructor(base) { this.base = base; this.#base = base } get(p) { return http.get(this.base + p) } #own(p) { return this.get(p) } both() { return [this.#own('/1'), this.other('/2')] } other = (p) => this.get(p); static make() { return new Client('http://a') } }\nclass Sub extends Client { get(p) { return super.get('/sub' + p) } }\nexport default () => { Client.make().both(); new Sub('http://a').get('/3') }"
        ),
        ["/1", "/2", "/sub/3"]
    );
    assert_eq!(
        sent(
            "class Api { constructor(http) { this.http = http } load(p) { return this.http.get('http://a' + p) } } new Api(http).load('/1')"
        ),
        ["/1"]
    );
    assert_eq!(
        sent(
            "const api = { base: 'http://a', get(p) { return http.get(this.base + p) }, all() { ['/1', '/2'].forEach((p) => this.get(p)) } }; api.all()"
        ),
        ["/1", "/2"]
    );
    assert_eq!(
        sent(
            "const a = { b: { get: () => http.get('http://a/1') } }; a.b.get().json(); a?.b?.get?.().json().id; a.c?.get().json(); a?.b.get()\n  .json().url.length"
        ),
        ["/1", "/1", "/1"]
    );
}

#[test]
fn callbacks_of_arrays_wait() {
    assert_eq!(
        sent("[1, 2].forEach((n, i) => { http.get(`http://a/${n}${i}`) })"),
        ["/10", "/21"]
    );
    assert_eq!(
        sent(
            "const all = [1, 2].map((n) => http.get(`http://a/${n}`).status); http.get(`http://a/${all}`)"
        ),
        ["/1", "/2", "/200,200"]
    );
    assert_eq!(
        sent(
            "const n = [3, 4].filter((n) => http.get(`http://a/${n}`).status === 200 && n > 3); http.get(`http://a/${n}`)"
        ),
        ["/3", "/4", "/4"]
    );
    assert_eq!(
        sent(
            "const n = [1, 2].reduce((sum, n) => sum + http.get(`http://a/${n}`).status, 1); http.get(`http://a/${n}`)"
        ),
        ["/1", "/2", "/401"]
    );
    assert_eq!(
        sent(
            "const f = (n) => http.get(`http://a/${n}`); [1].some(f); [2].every(f); [3].find(f); Array.from({ length: 1 }, f); new Map([[4, 5]]).forEach(f)"
        ),
        ["/1", "/2", "/3", "/undefined", "/5"]
    );
    assert_eq!(
        sent(
            "Object.entries({ a: 1 }).forEach(([k, v]) => http.get(`http://a/${k}${v}`)); http.get('http://a/z')"
        ),
        ["/a1", "/z"]
    );
    // Callbacks that don't wait are left alone.
    assert_eq!(
        sent("const s = [2, 1].sort((a, b) => a - b).map((n) => n * 2); http.get(`http://a/${s}`)"),
        ["/2,4"]
    );
}

#[test]
fn tests_of_checks_and_groups_wait() {
    let text = "import http from 'k6/http';import { check, group } from 'k6';\nexport default function () { const r = group('outer', () => { http.get('http://a/1'); return group('inner', function () { return http.get('http://a/2') }) }); check(r, { ok: (r) => http.get(r.json().url + '3').status === 200 }) }";
    let play = played(&[("main.js", text)]);
    assert_eq!(
        play.sent,
        ["GET http://a/1", "GET http://a/2", "GET http://a/23"]
    );
}

#[test]
fn async_functions_wait() {
    assert_eq!(
        script(
            "async function get(p) { const r = http.get('http://a' + p); await null; sleep(1); return r }\nexport default async function () { await get('/1'); const [a, b] = await Promise.all([get('/2'), get('/3')]); http.get(`http://a/${a.status + b.status}`) }"
        ),
        ["/1", "/2", "/3", "/400"]
    );
    assert_eq!(
        script(
            "const f = (p) => http.get('http://a' + p);\nexport default async () => { ['/1', '/2'].forEach((p) => f(p)); f('/3'); await Promise.resolve(4).then((n) => f('/' + n)) }"
        ),
        ["/1", "/2", "/3", "/4"]
    );
}

#[test]
fn waits_of_async_functions_pass_together() {
    let text = "import http from 'k6/http';import { sleep } from 'k6';\nasync function nap(n) { sleep(n); return n }\nexport default async () => (await Promise.all([nap(2), nap(1), nap(3)])).join()";
    let mut play = crate::play::Play::new(&crate::play::load(&[("main.js", text)]));
    assert_eq!(play.iteration(0), Ok(Some("2,1,3".into())));
    assert_eq!(play.waits, [1_000_000, 1_000_000, 1_000_000]);
    // Begun by a function that isn't async, and ended after it.
    let text = "import http from 'k6/http';\nasync function later() { http.get('http://a/2') }\nexport default () => { later(); http.get('http://a/1') }";
    let play = played(&[("main.js", text)]);
    assert_eq!(play.sent, ["GET http://a/1", "GET http://a/2"]);
}

#[test]
fn timers_run_down_beside_requests() {
    let text = "import http from 'k6/http';import { sleep } from 'k6';\nexport default async () => { const log = []; setTimeout(() => log.push('a'), 1000); setTimeout(() => log.push('b'), 7000); await http.asyncRequest('GET', 'http://a/1'); log.push('r'); await new Promise((done) => setTimeout(done, 3000)); return log.join() }";
    let mut play = crate::play::Play::new(&crate::play::load(&[("main.js", text)]));
    // The clock goes on by 5 s each time that it is read.
    let clock = std::cell::Cell::new(0.0);
    play.runtime
        .set_clock(Box::new(move || clock.replace(clock.get() + 5_000.0)));
    assert_eq!(play.iteration(0), Ok(Some("r,a,b".into())));
    assert_eq!(play.waits, [0, 2_000_000, 1_000_000]);
    // A batch beside timers is sent first, and a wait of the function itself runs the timers down.
    let text = "import http from 'k6/http';import { sleep } from 'k6';\nlet log = [];\nasync function both() { setTimeout(() => log.push('a'), 1000); http.batch(['http://a/2']); log.push('b') }\nexport default () => { both(); sleep(3); log.push('s') }\nexport const seen = () => log.join()";
    let mut play = crate::play::Play::new(&crate::play::load(&[("main.js", text)]));
    assert_eq!(play.iteration(0), Ok(None));
    assert_eq!(play.waits, [3_000_000, 0]);
    let seen = play.call(0, &crate::play::call("seen", 0, 1));
    assert_eq!(seen, Ok(Some("s,b,a".into())));
}

#[test]
fn generators_of_script_are_not_drained() {
    assert_eq!(
        script(
            "function* pages() { yield '/1'; yield '/2' }\nexport default () => { for (const p of pages()) http.get('http://a' + p); const it = pages(); http.get('http://a' + it.next().value) }"
        ),
        ["/1", "/2", "/1"]
    );
    // Called where nothing is known of the function.
    assert_eq!(
        script(
            "const pages = function* () { yield '/1' };\nfunction* more() { yield '/2' }\nexport default () => { for (const f of [pages, more]) for (const p of f()) http.get('http://a' + p) }"
        ),
        ["/1", "/2"]
    );
}

#[test]
fn locals_are_forgotten_before_waits() {
    let text = "import { sleep } from 'k6';\nexport default () => {\n  const a = 'x'.repeat(1e5) + __VU\n  let b = a.length, c = 1\n  sleep(b > 1 ? 1 : 2)\n  sleep(1);\n  { const d = 'y'.repeat(1e5) + __VU; sleep(d.length / 1e5); sleep(2); }\n  const e = 'z'.repeat(1e5) + __VU; const f = () => e.length; sleep(3);\n  const g = 'w'.repeat(1e5) + __VU; [1].forEach((n) => g.length); e.length; sleep(f() * 0 + 4);\n  return [c, f()];\n}";
    let mut play = crate::play::Play::new(&crate::play::load(&[("main.js", text)]));
    let mut held = Vec::new();
    let mut turn = play.runtime.begin(0, &crate::play::call("default", 0, 0));
    let before = play.runtime.memory();
    while let lab_script::Turn::Wait { .. } = turn {
        held.push((play.runtime.memory().saturating_sub(before) + 50_000) / 100_000);
        turn = play.runtime.resume(0, lab_script::Outcome::Waited);
    }
    assert!(
        matches!(&turn, lab_script::Turn::Done { value: Some(value) } if *value == serde_json::json!([1, 100_001])),
        "{turn:?}"
    );
    assert_eq!(held, [0, 0, 1, 0, 1, 1]);
}
