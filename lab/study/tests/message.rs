//! A deserialized workload equals the serialized one: the same draws, and the same requests byte for
//! byte, for any file.

use std::fmt::Write as _;
use std::path::Path;

use lab_study::{Files, Workload, load_workload};
use lab_workload::timing::{SessionChoice, TimingStream};
use lab_workload::{Body, CaptureSource, Message, Piece, Request, Template, User, UserScope};
use proptest::prelude::*;

use crate::faults::One;

struct Folder;

impl Files for Folder {
    fn read(&self, path: &str) -> std::io::Result<Vec<u8>> {
        std::fs::read(path)
    }
}

/// Returns the workload as another process receives it.
fn sent(workload: &Workload) -> Workload {
    let text = serde_json::to_vec(&Message::new(workload).unwrap()).unwrap();
    let message: Message = serde_json::from_slice(&text).unwrap();
    message.workload().unwrap()
}

fn render(template: &Template, scope: &mut UserScope, out: &mut String) {
    if let Err(error) = template.render(scope, out) {
        // The missing variable, or the error of an expression, must agree, too.
        write!(out, "<{error}>").unwrap();
    }
    out.push('\n');
}

fn request(request: &Request, scope: &mut UserScope, out: &mut String) {
    write!(out, "{} ", request.method).unwrap();
    render(&request.target, scope, out);
    let said = request.said.iter().flat_map(|said| said.templates());
    said.for_each(|template| render(template, scope, out));
    for (name, value) in &request.headers {
        write!(out, "{name}: ").unwrap();
        render(value, scope, out);
    }
    if let Some((name, password)) = &request.basic_auth {
        render(name, scope, out);
        render(password, scope, out);
    }
    match &request.body {
        Body::Empty => {}
        Body::Json(text) | Body::Text(text) => render(text, scope, out),
        Body::Form(fields) => {
            for (name, value) in fields {
                write!(out, "{name}=").unwrap();
                render(value, scope, out);
            }
        }
        Body::Pieces(pieces) => pieces.iter().for_each(|piece| match piece {
            Piece::Text(text) => render(text, scope, out),
            Piece::File(place) => write!(out, "<file {place}>").unwrap(),
        }),
    }
    writeln!(out, "{:?}", request.expect).unwrap();
    for capture in &request.captures {
        if let CaptureSource::JsonPathTemplate(path) = &capture.source {
            render(path, scope, out);
        }
        let entries = ["7", "/mail/ä \"q\"&<x>/b c", "/mail/b"];
        scope.set_list(capture.slot, &entries);
    }
}

/// All that one user draws and sends: the setup, three sessions, the probe.
fn acts(workload: &Workload, index: u32) -> String {
    let user = User {
        index,
        users: 5,
        first: 0,
        seed: 11,
        block: 2,
        base_date: jiff::civil::date(2026, 1, 5),
    };
    let password = [("password".to_owned(), "p&q \"r\"".to_owned())];
    let mut out = String::new();
    let mut scope = match workload.scope(user, &password) {
        Ok(scope) => scope,
        Err(error) => return error.to_string(),
    };
    for step in &workload.setup {
        step.requests
            .iter()
            .for_each(|r| request(r, &mut scope, &mut out));
    }
    let mut waits = TimingStream::new(user.seed, user.block, index);
    for _ in 0..3 {
        scope.next_cycle();
        let mut choice = SessionChoice::default();
        for step in &workload.session.steps {
            let does = choice.does(step.chance.as_ref(), &mut waits);
            for round in 0..step.repeat.min(3) {
                scope.set_round(round);
                let wait = waits.next_wait(&step.wait);
                writeln!(out, "{} {does} {wait:?}", step.name).unwrap();
                step.requests
                    .iter()
                    .for_each(|r| request(r, &mut scope, &mut out));
            }
        }
    }
    if let Some(probe) = &workload.probe {
        request(&probe.request, &mut scope, &mut out);
    }
    out
}

/// Compares a workload before and after serialization; returns the requests of the first user.
fn check(workload: &Workload) -> String {
    let arrived = sent(workload);
    assert_eq!(format!("{arrived:?}"), format!("{workload:?}"));
    for index in 1..4 {
        assert_eq!(acts(&arrived, index), acts(workload, index));
    }
    let first = acts(workload, 0);
    assert_eq!(acts(&arrived, 0), first);
    first
}

#[test]
fn every_shipped_workload_arrives_as_it_was_sent() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "yaml") {
            continue;
        }
        let workload = load_workload(path.to_str().unwrap(), &Folder).unwrap();
        let requests = check(&workload.at_speed(7.3));
        // A path, a key, a mail's header, or a value of a statement.
        let sends = requests.contains(['/', ':', '$']);
        assert!(sends, "{} sends something", path.display());
        seen += 1;
    }
    assert!(seen >= 8, "found only {seen}");
}

#[test]
fn another_version_is_refused_in_words() {
    let text = "workload: w\nsession: { steps: [{ step: s, request: GET / }] }\n";
    let workload = load_workload("w", &One(text.to_owned())).unwrap();
    let mut message = serde_json::to_value(Message::new(&workload).unwrap()).unwrap();
    let error = |message: &serde_json::Value| {
        let message: Message = serde_json::from_str(&message.to_string()).unwrap();
        message.workload().unwrap_err().to_string()
    };
    message["workload"]["session"]["steps"][0]["requests"][0]["target"]["parts"][0]["text"] =
        "{{ nobody }}".into();
    assert_eq!(
        error(&message),
        "a template of the workload is not understood: there is no variable `nobody`"
    );
    message["workload"] = serde_json::json!(["of another form"]);
    assert!(error(&message).starts_with("the workload is not understood"));
    message["schema"] = "plimsoll.workload/2".into();
    assert_eq!(
        error(&message),
        "the workload is of version `plimsoll.workload/2`, and this program knows \
         `plimsoll.workload/1`"
    );
}

/// A template of a request, in single quotes of YAML.
fn template() -> impl Strategy<Value = String> {
    let hole = prop::sample::select(vec![
        "{{ name }}",
        "{{ index }}",
        "{{ size }}",
        "{{ ratio }}",
        "{{ on }}",
        "{{ word }}",
        "{{ size + 1 }}",
        "{{ word | upper }}",
        "{{ take(links) }}",
        "{{ pick(links) }}",
        "{{ pad(neighbour(2), 4) }}",
        "{{ uuid() }}",
        "{{ int_in(1, 1000) }}",
        "{{ date_in(0, 13) }}",
        "{{ links | length }}",
        "{{ made }}",
        "{{ made ~ links }}",
        "{{ round * 10 + cycle }}",
        "{% if index > 1 %}{{ name }}{% else %}few{% endif %}",
        "{{ text_of_size(size) }}",
        "{{ profile(\"1 KB 50%, 2 KB 50%\") }}",
    ]);
    let literal = prop::sample::select(vec![
        "a",
        "/b?c=",
        "ä \"é\" \\ ",
        "<x>&amp;",
        "}}",
        "{ }",
        "7",
    ]);
    let part = prop_oneof![hole, literal];
    prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

fn wait() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("none".to_owned()),
        (1..5000_u32).prop_map(|ms| format!("{ms}ms")),
        (1..500_u32, 1..500_u32).prop_map(|(a, b)| format!("{a}ms..{}ms", a + b)),
        (1..99_u32).prop_map(|s| format!("exponential({s}.{s}s)")),
        (1..99_u32, 0..500_u32)
            .prop_map(|(s, d)| format!("lognormal({s}s, {})", f64::from(d) / 100.0)),
    ]
}

fn body() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        (template(), template()).prop_map(|(a, b)| format!(
            "      json: {{ a: ['{a}', 1, null, true], 'k\"': {{ b: 'x{b}' }}, c: '{{{{ size }}}}' }}\n"
        )),
        template().prop_map(|a| format!("      form: {{ 'k k': '{a}' }}\n")),
        template().prop_map(|a| format!("      xml: '{a}'\n")),
        template().prop_map(|a| format!("      text: '{a}'\n")),
        (template(), template()).prop_map(|(a, b)| format!(
            "      multipart: {{ 'k\"': '{a}', f: {{ file: w.bin, name: '{b}' }} }}\n"
        )),
        (0..9000_u32).prop_map(|n| format!("      bytes: {n}\n")),
    ]
}

fn generated() -> impl Strategy<Value = String> {
    let parameters = (any::<i64>(), any::<f64>(), any::<bool>());
    let step = (template(), template(), template(), body(), wait(), 1..4_u32);
    let steps = prop::collection::vec(step, 1..4);
    (parameters, steps).prop_map(|((size, ratio, on), steps)| {
        let ratio = if ratio.is_finite() { ratio } else { 0.1 };
        let size = size.rem_euclid(9000);
        let mut text = format!(
            "workload: w\nparameters: {{ size: {size}, ratio: {ratio:?}, on: {on}, word: 'a \"b\"' }}\n\
             user: {{ name: 'us\"er{{{{ pad(index, 3) }}}}' }}\nsession:\n  steps:\n"
        );
        for (at, (set, path, header, body, wait, repeat)) in steps.iter().enumerate() {
            let share = if at % 2 == 1 { "      share: 30%\n" } else { "" };
            write!(
                text,
                "    - step: Step {at}\n      set: {{ made: '{set}' }}\n      \
                 request: GET /{{{{ made | urlencode }}}}/{{{{ links }}}}\n      headers: {{ X-A: '{header}' }}\n{body}{share}      \
                 wait: {wait}\n      repeat: {repeat}\n      \
                 capture: {{ links: \"$[?@.a == '{{{{ name }}}}'].b\", id: '/id=([0-9]+)/', \
                 c: '$.x[*][\"é\"]', h: header.Location }}\n      basic_auth: {{ username: '{path}', \
                 password: '{{{{ password }}}}' }}\n",
            )
            .unwrap();
        }
        text + "probe: { request: 'GET /p/{{ name }}', every: 1.5s }\n"
    })
}

proptest! {
    #[test]
    fn any_workload_arrives_as_it_was_sent(text in generated()) {
        let workload = load_workload("w.yaml", &One(text.clone()));
        let workload = match workload {
            Ok(workload) => workload,
            Err(error) => panic!("{error}: {:?}\n{text}", error.problems()),
        };
        check(&workload);
    }
}
