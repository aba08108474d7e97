//! Bindings at module level: shared, or of each user.

use lab_script::ThrownKind;

use crate::play::{Play, call, load, try_load};

const HTTP: &str = "import http from 'k6/http';\n";

/// The values that iterations of users return.
fn returned(files: &[(&str, &str)], users: &[u32]) -> Vec<String> {
    let mut play = Play::new(&load(files));
    let all = users.iter().map(|user| match play.iteration(*user) {
        Ok(value) => value.map(|value| value.to_string()).unwrap_or_default(),
        Err(thrown) => thrown.to_string(),
    });
    all.collect()
}

#[test]
fn each_user_has_its_own_state() {
    let text = "let n = 0; const seen = []; const cache = new Map(); var a = 1, b, { c, d: [e] } = { c: 2, d: [3] };\nexport default () => { n++; b = (b ?? 0) + 1; seen.push(n); cache.set(n, { n }); c++; return [n, seen.length, cache.size, a, b, c, e] }";
    assert_eq!(
        returned(&[("main.js", text)], &[0, 0, 1, 0]),
        [
            "[1,1,1,1,1,3,3]",
            "[2,2,2,1,2,4,3]",
            "[1,1,1,1,1,3,3]",
            "[3,3,3,1,3,5,3]"
        ]
    );
}

#[test]
fn state_is_kept_across_files() {
    let main = "import { count, add } from './lib.js';\nimport * as lib from './lib.js';\nexport { count as total } from './lib.js';\nexport default () => { add(); const { n = count } = {}; return { count, n, all: lib.count } }";
    let lib = "export let count = 0;\nexport function add() { count += 1 }";
    assert_eq!(
        returned(&[("main.js", main), ("lib.js", lib)], &[0, 0, 1]),
        [
            r#"{"all":1,"count":1,"n":1}"#,
            r#"{"all":2,"count":2,"n":2}"#,
            r#"{"all":1,"count":1,"n":1}"#
        ]
    );
}

#[test]
fn statements_at_module_level_run_for_each_user() {
    let text = "const all = [];\nfor (var i = 0; i < 3; i++) { all.push(i) }\nfor (var x of [7]) all.push(x)\nif (all.length > 2) {\n  all.push('x')\n}\nclass Counter { static n = 0 }\nexport default () => { all.push(__VU); Counter.n++; return [...all, Counter.n, i, x] }";
    assert_eq!(
        returned(&[("main.js", text)], &[0, 0, 1]),
        [
            r#"[0,1,2,7,"x",1,1,3,7]"#,
            r#"[0,1,2,7,"x",1,1,2,3,7]"#,
            r#"[0,1,2,7,"x",2,1,3,7]"#
        ]
    );
}

#[test]
fn class_belongs_to_each_user_as_its_parent_does() {
    let text = "class Page { static n = 0; open() { return ++Page.n } }\nclass Slow extends Page { open() { return -super.open() } }\nconst Late = class extends Slow {};\nclass Ids { static first = [__VU]; }\nexport default () => [new Page().open(), new Slow().open(), new Late().open(), Ids.first[0]]";
    assert_eq!(
        returned(&[("main.js", text)], &[0, 0, 1]),
        ["[1,-2,-3,1]", "[4,-5,-6,1]", "[1,-2,-3,2]"]
    );
}

#[test]
fn private_static_fields_belong_to_each_user() {
    let text = "class Ids { static #n = 0; static next() { return ++Ids.#n } }\nexport default () => Ids.next()";
    assert_eq!(returned(&[("main.js", text)], &[0, 0, 1]), ["1", "2", "1"]);
}

#[test]
fn patterns_that_keep_an_index_belong_to_each_user() {
    let text = "const tag = /<b>/g, word = new RegExp('a', 'y'), last = RegExp(/b/g);\nexport default () => ['<b>x<b>'.replace(tag, ''), word.test('aa'), word.lastIndex, last.test('bb')]";
    assert_eq!(
        returned(&[("main.js", text)], &[0, 1]),
        [r#"["x",true,1,true]"#, r#"["x",true,1,true]"#]
    );
}

#[test]
fn default_exports_belong_to_each_user_if_they_change() {
    let main = "import cfg from './cfg.js'; import Store from './store.js'; import client from './client.js'; import list from './list.js'; import rows from './rows.json';\nexport default () => { cfg.token ??= __VU; Store.seen.push(1); list.push(2); rows[0].n++; return [cfg.token, Store.seen.length, client.next(), list.length, rows[0].n] }";
    let files = [
        ("main.js", main),
        ("cfg.js", "export default { token: null } // the end"),
        (
            "store.js",
            "export default class Store { static seen = []; }",
        ),
        (
            "client.js",
            "class Client { n = 0; next() { return ++this.n } }\nexport default new Client()",
        ),
        (
            "list.js",
            "const list = [];\nlist.push(1);\nexport default list;",
        ),
        ("rows.json", "[{\"n\": 1}]"),
    ];
    assert_eq!(
        returned(&files, &[0, 0, 1]),
        ["[1,1,1,2,2]", "[1,2,2,3,3]", "[2,1,1,2,2]"]
    );
}

#[test]
fn write_to_shared_default_export_throws() {
    let main =
        "import cfg from './cfg.js';\nexport default () => { const own = cfg; own.token = 1 }";
    for cfg in [
        "export default { token: null }",
        "export default class { static token = 0 }\n[1].map(String)",
    ] {
        let shown = returned(&[("main.js", main), ("cfg.js", cfg)], &[0]);
        assert!(shown[0].contains("shared by all users"), "{shown:?}");
    }
}

#[test]
fn write_to_shared_object_throws() {
    let text = "const config = { a: { b: 1 } };\nexport default () => {\n  const alias = config.a;\n  alias.b = 2;\n}";
    let mut play = Play::new(&load(&[("main.js", text)]));
    let thrown = play.iteration(0).expect_err("the write throws");
    assert_eq!(thrown.place().as_deref(), Some("main.js:4"));
    assert!(thrown.message.contains("shared by all users"), "{thrown}");
}

#[test]
fn names_of_built_in_objects_can_be_assigned_on_own_objects() {
    let text = "function Shop() {}\nShop.prototype.toString = () => 'shop';\nexport default () => { const e = new Error('x'); e.name = 'Mine'; const o = {}; o.constructor = 1; o.toString = () => 'o'; return [String(new Shop()), String(e), String(o), Object.keys(o).length] }";
    assert_eq!(
        returned(&[("main.js", text)], &[0]),
        [r#"["shop","Mine: x","o",2]"#]
    );
}

#[test]
fn built_in_objects_are_frozen() {
    let text = "export default () => { Array.prototype.last = function () {}; }";
    let shown = returned(&[("main.js", text)], &[0]);
    assert!(shown[0].starts_with("main.js:1: TypeError"), "{shown:?}");
}

#[test]
fn random_numbers_are_those_of_the_user() {
    let text = "export default () => [Math.random(), Date.now(), new Date().getTime(), __ITER]";
    let program = load(&[("main.js", text)]);
    let play = |users: &[u32]| -> Vec<_> {
        let mut play = Play::new(&program);
        users
            .iter()
            .map(|user| play.iteration(*user).expect("it runs"))
            .collect()
    };
    let (both, second) = (play(&[0, 1, 0]), play(&[1]));
    assert_eq!(both[1], second[0]);
    assert_ne!(both[0], both[2]);
    assert_eq!(both[0].as_ref().expect("an array")[1], 1_000);
    assert_eq!(both[0].as_ref().expect("an array")[2], 1_000);
}

#[test]
fn data_of_setup_is_frozen() {
    let text = "export function setup() { return { tokens: ['a'] } }\nexport default (data) => { data.tokens.push('b') }";
    let mut play = Play::new(&load(&[("main.js", text)]));
    let data = play
        .call(0, &call("setup", 0, 0))
        .expect("setup runs")
        .expect("setup returns");
    let thrown = play.with_data(1, data).expect_err("the write throws");
    assert_eq!(thrown.kind, ThrownKind::Error);
    assert_eq!(thrown.place().as_deref(), Some("main.js:2"));
}

#[test]
fn request_within_initialiser_is_refused() {
    let text = format!(
        "{HTTP}const token = login();\nfunction login() {{\n  return http.get('http://a/1').body;\n}}\nexport default () => token"
    );
    let problems = try_load(&[("main.js", &text)]).expect_err("it can't wait");
    assert!(problems[0].message.contains("can't wait"), "{problems:?}");
    assert_eq!(
        (problems[0].file.as_str(), problems[0].line),
        ("main.js", 4)
    );
}
