//! Files that a script imports or opens.

use crate::play::{Play, load, played};

fn value(files: &[(&str, &str)]) -> String {
    let mut play = Play::new(&load(files));
    play.iteration(0)
        .expect("it runs")
        .expect("it returns")
        .to_string()
}

#[test]
fn imports_files_and_json() {
    let files = [
        (
            "shop/main.js",
            "import { a } from './lib/a';\nimport data from '../data.json';\nexport * from './flows.js';\nexport default () => [a, data.n];",
        ),
        (
            "shop/lib/a.js",
            "import { b } from '../b.js';\nexport const a = b + 1;",
        ),
        ("shop/b.js", "import './lib/a.js';\nexport const b = 1;"),
        ("data.json", "{ \"n\": 3 }"),
        (
            "shop/flows.js",
            "export function browse() {}\nexport const buy = () => {};",
        ),
    ];
    assert_eq!(value(&files), "[2,3]");
    let program = load(&files);
    assert_eq!(program.functions(), ["default", "browse", "buy"]);
    let names: Vec<&str> = program
        .sources()
        .iter()
        .map(|source| source.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "shop/main.js",
            "shop/lib/a.js",
            "data.json",
            "shop/flows.js",
            "shop/b.js"
        ]
    );
    let again = lab_script::Program::load(
        "shop/main.js",
        &lab_script::Bundle(program.sources()),
        &lab_script::Variables::default(),
    );
    assert_eq!(again.expect("it loads again").sites(), program.sites());
}

#[test]
fn opens_files() {
    let files = [
        (
            "main.js",
            "const users = JSON.parse(open('./data/users.json'));\nconst name = 'x';\nconst text = open('data/' + name + '.txt');\nconst bytes = open('data/x.txt', 'b');\nexport default () => [users.length, text, bytes.byteLength];",
        ),
        ("data/users.json", "[1, 2]"),
        ("data/x.txt", "text"),
    ];
    assert_eq!(value(&files), "[2,\"text\",4]");
    assert_eq!(load(&files).sources().len(), 3);
}

#[test]
fn typescript_keeps_lines() {
    let files = [(
        "main.ts",
        "import http from 'k6/http';\ninterface Item {\n  id: number;\n}\nenum Kind { A = 1, B }\nexport const options: object = { vus: 2 };\n\nfunction get<T>(path: string): T {\n  return http.get(`http://a${path}`).json() as unknown as T;\n}\nexport default function (): void {\n  const item: Item = get<Item>('/1');\n  if (item.id !== Kind.B) {\n    throw new Error('no');\n  }\n}",
    )];
    let program = load(&files);
    assert_eq!(program.options()["vus"], 2);
    assert_eq!(program.sites()[1].line, 9);
    let mut play = Play::new(&program);
    let thrown = play.iteration(0).expect_err("it throws");
    assert_eq!(thrown.place().as_deref(), Some("main.ts:14"));
    assert_eq!(play.sent, ["GET http://a/1"]);
}

#[test]
fn common_modules_are_loaded() {
    let files = [
        (
            "main.js",
            "const http = require('k6/http');\nconst { check, sleep } = require('k6');\nconst lib = require('./lib');\nmodule.exports.options = { vus: 3 };\nmodule.exports.default = function () {\n  const r = http.get('http://a/1');\n  check(r, { ok: (r) => r.status === 200 });\n  return lib.twice(21);\n};",
        ),
        (
            "lib.js",
            "const http = require('k6/http');\nfunction twice(n) { http.get('http://a/2'); return n * 2 }\nmodule.exports = { twice };",
        ),
    ];
    let program = load(&files);
    assert_eq!(program.options()["vus"], 3);
    let mut play = Play::new(&program);
    assert_eq!(play.iteration(0), Ok(Some(42.into())));
    assert_eq!(play.sent, ["GET http://a/1", "GET http://a/2"]);
}

#[test]
fn sites_have_names_groups_and_lines() {
    let text = "import http from 'k6/http';\nimport { group, check, sleep } from 'k6';\nconst BASE = __ENV.URL || 'http://b';\nexport default function () {\n  const id = 3;\n  const url = `${BASE}/items/${id}?q=1`;\n  http.get(url);\n  group('cart', () => {\n    http.post(BASE + '/cart/' + id, '{}');\n    group('pay', () => { http.request('PUT', 'http://x/pay') });\n  });\n  http.del(`${BASE}/cart`); http.batch([]);\n}";
    let program = load(&[("main.js", text)]);
    let sites: Vec<String> = program
        .sites()
        .iter()
        .map(|site| format!("{}:{} {:?}", site.line, site.name, site.group))
        .collect();
    assert_eq!(
        sites,
        [
            "0:unknown place []",
            "7:GET /items/{id} []",
            "8:cart []",
            "9:POST /cart/{id} [\"cart\"]",
            "10:pay [\"cart\"]",
            "10:PUT /pay [\"cart\", \"pay\"]",
            "12:DELETE /cart []",
            "12:main.js:12 []",
        ]
    );
}

#[test]
fn requests_carry_their_site() {
    let text = "import http from 'k6/http';\nimport { check } from 'k6';\nexport default function () {\n  http.get('http://a/1');\n  check(http.get('http://a/2'), { ok: (r) => http.get('http://a/3').status === r.status });\n}";
    let program = load(&[("main.js", text)]);
    let play = played(&[("main.js", text)]);
    let lab_script::Event::Check { site, .. } = &play.events[0] else {
        panic!("{:?}", play.events);
    };
    assert_eq!(
        program.sites()[*site as usize].kind,
        lab_script::SiteKind::Check
    );
    assert_eq!(
        play.sites
            .iter()
            .map(|site| program.sites()[*site as usize].name.as_str())
            .collect::<Vec<_>>(),
        ["GET /1", "GET /2", "GET /3"]
    );
}
