//! Named keys: values made with them, their destinations, and invalid keys.

use std::io;

use lab_study::plan::{PlanOptions, plan};
use lab_study::{Environment, Files, LoadedAny, Workload, load_any, load_workload};
use lab_workload::{DEFAULT_DATES_FROM, MASK, Message, Template, User, UserScope};

use crate::faults::seen;

const ED25519: &str = include_str!("../../filters/src/tests/ed25519.pem");
const RSA: &str = include_str!("../../filters/src/tests/rsa.pem");
const PUBLIC: &str = include_str!("../../filters/src/tests/public.pem");

const KEYS: &str = "\
keys:
  api: { file: api.pem }
  big: { file: keys/rsa.pem }
  hook: { secret: HOOK, encoding: base64 }
  plain: { secret: PLAIN }
";

/// A folder with a workload, keys, and an environment.
struct Place {
    workload: String,
    api: &'static str,
    plain: Option<&'static str>,
}

impl Files for Place {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let text = match path {
            "w.yaml" => self.workload.as_str(),
            "s.yaml" => {
                "study: s\ntitle: t\nworkload: w.yaml\nsystem: { attach: { url: 'http://h:1' } }\n\
                 load: { users: 1, ramp: 1s, hold: 10s }\ntrials: 1\n"
            }
            "api.pem" => self.api,
            "keys/rsa.pem" => RSA,
            "public.pem" => PUBLIC,
            "words.txt" => "correct horse",
            _ => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(text.as_bytes().to_vec())
    }

    fn names(&self, _: &str) -> Vec<String> {
        vec!["api.pem".to_owned()]
    }

    fn environment(&self, name: &str) -> Environment {
        let Some(plain) = self.plain else {
            return Environment::Untold;
        };
        match name {
            "HOOK" => Environment::Set("c2VzYW1l".to_owned()),
            "PLAIN" => Environment::Set(plain.to_owned()),
            "PEM" => Environment::Set(ED25519.to_owned()),
            _ => Environment::Unset,
        }
    }
}

fn place(top: &str, steps: &str) -> Place {
    Place {
        workload: format!("workload: w\n{top}session:\n  steps:\n{steps}"),
        api: ED25519,
        plain: Some("correct horse"),
    }
}

fn load(place: &Place) -> Workload {
    load_workload("w.yaml", place).unwrap_or_else(|error| panic!("{}", seen(&error)))
}

/// The texts of all requests of a user.
fn rendered(workload: &Workload) -> Vec<String> {
    let user = User {
        index: 3,
        users: 10,
        first: 0,
        seed: 1,
        block: 0,
        base_date: DEFAULT_DATES_FROM,
    };
    let mut scope = workload.scope(user, &[]).unwrap();
    let text = |template: &Template, scope: &mut UserScope| {
        let mut out = String::new();
        template.render(scope, &mut out).unwrap();
        out
    };
    workload
        .requests()
        .map(|request| match &request.body {
            lab_workload::Body::Text(body) => text(body, &mut scope),
            _ => text(&request.target, &mut scope),
        })
        .collect()
}

fn texts(expressions: &[&str]) -> String {
    let step = |(at, text): (usize, &&str)| {
        format!("    - {{ step: s{at}, request: POST /a, text: \"{text}\" }}\n")
    };
    expressions.iter().enumerate().map(step).collect()
}

#[test]
fn key_makes_what_the_same_text_makes() {
    let named = texts(&[
        "{{ jwt({'sub': index}, key('api'), 'EdDSA') }}",
        "{{ jwt({'sub': index, 'a': [1, 2]}, key('big'), 'RS256', {'kid': 'k'}) }}",
        "{{ jwt({'sub': 1}, key('hook')) }}",
        "{{ index | hmac(key('hook')) }}",
        "{{ ('a' ~ index) | sha256 | hmac(key('plain'), 'sha1', 'base64') | upper }}",
        "{% for i in range(2) %}{{ i | hmac(key('plain')) }};{% endfor %}",
        "{{ made }}",
    ]);
    let top = format!("{KEYS}user: {{ made: \"{{{{ 'x' | hmac(key('hook'), 'sha512') }}}}\" }}\n");
    let workload = load(&place(&top, &named));
    let written = texts(&[
        "{{ jwt({'sub': index}, secret('PEM'), 'EdDSA') }}",
        "{{ jwt({'sub': index, 'a': [1, 2]}, key('big'), 'RS256', {'kid': 'k'}) }}",
        "{{ jwt({'sub': 1}, 'sesame') }}",
        "{{ index | hmac('sesame') }}",
        "{{ ('a' ~ index) | sha256 | hmac('correct horse', 'sha1', 'base64') | upper }}",
        "{% for i in range(2) %}{{ i | hmac('correct horse') }};{% endfor %}",
        "{{ 'x' | hmac('sesame', 'sha512') }}",
    ]);
    let expected = rendered(&load(&place(KEYS, &written)));
    assert_eq!(rendered(&workload), expected);
    // And elsewhere: the keys travel with the workload.
    let message = serde_json::to_string(&Message::new(&workload).unwrap()).unwrap();
    let message: Message = serde_json::from_str(&message).unwrap();
    assert_eq!(rendered(&message.workload().unwrap()), expected);
}

#[test]
fn key_is_shown_nowhere() {
    let steps = texts(&["{{ index | hmac(key('hook')) }}"]);
    let place = place(KEYS, &steps);
    let workload = load(&place);
    let line = RSA.lines().nth(3).unwrap();
    let shown = format!("{workload:?}");
    for secret in [line, "c2VzYW1l", "correct horse"] {
        assert!(!shown.contains(secret), "{shown}");
        let masked = workload.inputs.mask(&format!("a {secret} b"));
        assert_eq!(masked, format!("a {MASK} b"));
    }
    let LoadedAny::Study(study) = load_any("s.yaml", &place).unwrap() else {
        panic!("it is a study");
    };
    let kept: Vec<u8> = study
        .files
        .iter()
        .flat_map(|(_, bytes)| bytes.clone())
        .collect();
    let kept = String::from_utf8(kept).unwrap();
    assert!(kept.contains("file: keys/rsa.pem"), "{kept}");
    assert!(!kept.contains(line), "{kept}");
    assert!(!study.secrets.masked(line).contains(line));
}

#[test]
fn plan_has_the_hash_of_a_file_and_none_of_a_secret() {
    let steps = texts(&["{{ index | hmac(key('plain')) }}"]);
    let hash = |change: &dyn Fn(&mut Place)| {
        let mut place = place(KEYS, &steps);
        change(&mut place);
        match load_any("s.yaml", &place) {
            Ok(LoadedAny::Study(loaded)) => {
                let plan = plan(&loaded.study, &PlanOptions::default()).unwrap();
                plan.question.workload.sha256
            }
            other => panic!("{other:?}"),
        }
    };
    let own = hash(&|_| {});
    assert_eq!(hash(&|place| place.plain = Some("battery staple")), own);
    assert_eq!(hash(&|place| place.plain = None), own);
    assert_ne!(hash(&|place| place.api = RSA), own);
}

#[test]
fn file_is_judged_where_nobody_tells_the_environment() {
    let steps = texts(&[
        "{{ index | hmac(key('plain')) }}",
        "{{ jwt({}, key('plain'), 'RS256') }}",
    ]);
    let mut place = place(KEYS, &steps);
    place.plain = None;
    load(&place);
    // A secret may be a private key; its misuse is reported once its value is known.
    place.plain = Some(RSA);
    assert!(load_workload("w.yaml", &place).is_err());
    place.plain = None;
    place.workload = place.workload.replace("file: api.pem", "file: public.pem");
    assert!(load_workload("w.yaml", &place).is_err());
}

#[test]
fn what_is_wrong_with_a_key_has_its_place() {
    let sign = |key: &str, algorithm: &str| {
        format!(
            "sign: {{ http_signature: {{ key: {key}, algorithm: {algorithm}, key_id: i, components: ['@path'] }} }}\n"
        )
    };
    let hmac = "sign: { hmac: { key: api, over: x, headers: { A: b } } }\n";
    let keys = |of: &str| format!("keys: {{ {of} }}\n");
    let text = |expression: &str| (KEYS.to_owned(), texts(&[expression]));
    let top = |top: String| (top, texts(&["a"]));
    let cases = [
        text("{{ jwt({}, key('big'), 'ES256') }}"),
        text("{{ jwt({}, key('api')) }}"),
        text("{{ index | hmac(key('api')) }}"),
        text("{{ index | hmac(key('hok')) }}"),
        text("{{ key('hook') }}"),
        text("{{ key('hook') | base64 }}"),
        text("{{ jwt({'a': key('hook')}, key('hook')) }}"),
        text("{{ jwt(key('hook'), 'a') }}"),
        text("{{ 'a' | hmac(key('hook') ~ 'a') }}"),
        text("{{ 'a' | hmac('a', key('hook')) }}"),
        text("{{ 'a' | hmac(key(hook)) }}"),
        text("{% set k = key('hook') %}{{ 'a' | hmac(k) }}"),
        (String::new(), texts(&["{{ 'a' | hmac(key('api')) }}"])),
        top(KEYS.to_owned() + &sign("big", "ed25519")),
        top(KEYS.to_owned() + &sign("apj", "ed25519")),
        top(KEYS.to_owned() + hmac),
        top(sign("api", "ed25519")),
        top(keys("a: { file: none.pem }")),
        top(keys("a: { file: public.pem }")),
        top(keys("a: { file: words.txt }")),
        top(keys("a: { file: words.txt, encoding: hex }")),
        top(keys("a: { file: api.pem, secret: PLAIN }")),
        top(keys("a: {}")),
        top(keys("a: { secret: 'correct horse' }")),
        top(keys("a: { secret: NONE }")),
        top(keys("a: { secret: PLAIN, encoding: base32 }")),
        top(keys("a: { sekret: PLAIN }")),
        top(keys("'a b': { secret: PLAIN }")),
    ];
    let told = cases.map(|(top, steps)| {
        let error = load_workload("w.yaml", &place(&top, &steps)).err();
        seen(&error.unwrap_or_else(|| panic!("loads: {top}{steps}")))
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn nothing_of_a_moment_is_taken_where_all_is_to_be_repeatable() {
    let load = |top: &str, text: &str| {
        let mut place = place(&format!("{KEYS}{top}"), &texts(&[text]));
        place.workload = place
            .workload
            .replace("session:", "session:\n  repeatable: true");
        load_workload("w.yaml", &place)
    };
    let sign = |over: &str| {
        let headers = "headers: { A: '{{ signature }}' }";
        format!("sign: {{ hmac: {{ key: hook, over: '{{{{ {over} }}}}', {headers} }} }}\n")
    };
    for (top, text) in [
        ("", "{{ uuid() }} {{ email() }} {{ normal(1, 2) }}"),
        ("", "{{ jwt({'sub': 1}, key('api'), 'EdDSA') }}"),
        (&*sign("nonce"), "a"),
    ] {
        assert!(
            load(top, text).unwrap().unseeded_steps().is_empty(),
            "{top}{text}"
        );
    }
    let told = [
        ("", "{{ now() }}"),
        ("", "a {{ 'b' ~ now_text('%Y') }}"),
        ("", "{% if index > 2 %}{{ now_ms() }}{% endif %}"),
        ("", "{{ jwt({'sub': 1}, secret('PEM'), 'ES256') }}"),
        ("user: { since: '{{ now_us() }}' }\n", "a"),
        (&*sign("timestamp"), "a"),
        ("sign: { http_signature: { key: api, algorithm: ed25519, key_id: i, components: ['@path'] } }\n", "a"),
    ]
    .map(|(top, text)| match load(top, text) {
        Ok(_) => panic!("loads: {top}{text}"),
        Err(error) => seen(&error),
    });
    insta::assert_snapshot!(told.join("\n"));
}
