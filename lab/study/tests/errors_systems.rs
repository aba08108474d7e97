//! Faults of variants, attached systems, and searches.

use crate::faults::{Fault, STUDY, WORKLOAD, load, snapshot};

const SYSTEM: &str = "system:\n  groupware: { http_threads: 4 }\n";
const LOAD: &str = r#"{ users: "{{ users }}", ramp: 10s, hold: 4 cycles }"#;

fn check(faults: &[Fault]) -> String {
    snapshot(STUDY, faults, |text| {
        load(text.as_bytes(), WORKLOAD.as_bytes())
    })
}

#[test]
fn faults_of_variants() {
    insta::assert_snapshot!(check(&[
        ("neither", SYSTEM, ""),
        (
            "both",
            SYSTEM,
            "system: { groupware: {} }\nvariants: { a: { groupware: {} } }\n"
        ),
        ("none", SYSTEM, "variants: {}\n"),
        ("a list", SYSTEM, "variants: [a, b]\n"),
        (
            "bad name",
            SYSTEM,
            "variants: { \"the first\": { groupware: {} } }\n"
        ),
        ("an empty one", SYSTEM, "variants: { a: {} }\n"),
        (
            "wrong within",
            SYSTEM,
            "variants:\n  a: { groupware: {} }\n  b: { groupware: { http_threads: 0 } }\n"
        ),
        (
            "unknown factor within",
            SYSTEM,
            "variants:\n  a: { groupware: { http_threads: \"{{ varant }}\" } }\n"
        ),
        (
            "the factor's own name",
            "matrix:\n  users: [10, 20]\nsystem:\n  groupware: { http_threads: 4 }\n",
            "matrix:\n  users: [10]\n  variant: [1, 2]\nvariants: { a: { groupware: {} } }\n"
        ),
        (
            "excludes an unknown variant",
            "matrix:\n  users: [10, 20]\nsystem:\n  groupware: { http_threads: 4 }\n",
            "matrix:\n  users: [10]\n  exclude: [{ variant: c }]\n\
             variants: { a: { groupware: {} }, b: { groupware: {} } }\n"
        ),
    ]));
}

#[test]
fn faults_of_attached_systems() {
    const FROM: &str = "groupware: { http_threads: 4 }";
    insta::assert_snapshot!(check(&[
        ("no address", FROM, "attach: { pid: 5 }"),
        ("no scheme", FROM, "attach: { url: localhost:80 }"),
        ("a path", FROM, "attach: { url: http://localhost/mail }"),
        (
            "no process",
            FROM,
            "attach: { url: http://localhost, pid: 0 }"
        ),
        (
            "no exporter",
            FROM,
            "attach: { url: http://localhost, node_exporter: 9100 }"
        ),
        (
            "no program",
            FROM,
            "attach: { url: http://localhost, reset: [] }"
        ),
        (
            "cores",
            FROM,
            "attach: { url: http://localhost }\n  cpus: 1"
        ),
        (
            "storage",
            FROM,
            "attach: { url: http://localhost }\n  storage: /mnt"
        ),
        (
            "two systems",
            FROM,
            "groupware: {}\n  attach: { url: http://localhost }"
        ),
    ]));
}

#[test]
fn faults_of_a_preparation() {
    const FROM: &str = "groupware: { http_threads: 4 }";
    let provision = |step: &str| {
        format!("attach:\n    url: http://localhost\n    provision:\n      - {{ {step} }}")
    };
    let faults = [
        ("neither", provision("expect: 200")),
        ("both", provision("request: POST /a, command: [make]")),
        (
            "keys of a request beside a command",
            provision("command: [make], expect: 200, json: { a: 1 }"),
        ),
        ("an empty command", provision("command: []")),
        (
            "users of what is for one",
            provision("request: POST /a, users_per_request: 5"),
        ),
        (
            "two bodies",
            provision("request: POST /a, json: {}, text: a"),
        ),
        (
            "an unknown name",
            provision("request: \"POST /{{ nobody }}\""),
        ),
        (
            "into no variable",
            provision("request: POST /a, capture: { nothing: $.id }"),
        ),
        (
            "half of who signs in",
            provision("request: POST /a, basic_auth: { username: admin }"),
        ),
    ];
    let faults = faults.map(|(name, to)| (name, FROM, &*to.leak()));
    insta::assert_snapshot!(check(&faults));
}

#[test]
fn faults_of_the_way_to_a_system() {
    const FROM: &str = "groupware: { http_threads: 4 }";
    let attach = |more: &str| format!("attach: {{ url: https://localhost }}\n{more}");
    let command = |more: &str| format!("command: {{ start: [serve] }}\n{more}");
    let faults: Vec<(&str, String)> = vec![
        ("unknown key", attach("  tls: { cafile: a.pem }")),
        ("a key alone", attach("  tls: { key: key.pem }")),
        (
            "a certificate alone",
            attach("  tls: { certificate: user.pem }"),
        ),
        ("no switch", attach("  tls: { insecure: perhaps }")),
        ("no name", attach("  tls: { server_name: \"https://a\" }")),
        ("no file", attach("  tls: { ca: \"\" }")),
        (
            "a port",
            attach("  resolve: { localhost: \"127.0.0.1:80\" }"),
        ),
        ("a scheme twice", attach("  scheme: https")),
        ("no such scheme", command("  scheme: wss")),
        (
            "nothing to fill in",
            attach("  tls: { ca: \"{{ scratch }}/ca.pem\" }"),
        ),
        ("the groupware", format!("{FROM}\n  scheme: https")),
    ];
    let faults = faults.into_iter();
    let faults: Vec<Fault> = faults.map(|(name, to)| (name, FROM, &*to.leak())).collect();
    insta::assert_snapshot!(check(&faults));
}

#[test]
fn faults_of_a_search() {
    const HOLD: &str = "{ ramp: 10s, hold: 4 cycles }";
    let study = STUDY.replace(LOAD, HOLD);
    const FROM: &str = "published:";
    const GOOD: &str =
        "find: { users: { min: 5, max: 50 }, subject_to: { error_rate: [\"rate < 1%\"] } }\n";
    let faults: &[(&str, &str)] = &[
        (
            "no users",
            "find: { subject_to: { error_rate: [\"rate < 1%\"] } }\n",
        ),
        (
            "no end",
            "find: { users: { min: 5 }, subject_to: { error_rate: [\"rate < 1%\"] } }\n",
        ),
        (
            "nothing to hold",
            "find: { users: { max: 50 }, subject_to: {} }\n",
        ),
        (
            "wrong threshold",
            "find: { users: { max: 50 }, subject_to: { response_time: [\"p95 < 1ms\"] } }\n",
        ),
        (
            "ends before it begins",
            "find: { users: { min: 50, max: 5 }, subject_to: { error_rate: [\"rate < 1%\"] } }\n",
        ),
        (
            "too fine",
            "find: { users: { max: 5 }, resolution: 0%, subject_to: { error_rate: [\"rate < 1%\"] } }\n",
        ),
        (
            "unknown key",
            "find: { user: { max: 50 }, subject_to: { error_rate: [\"rate < 1%\"] } }\n",
        ),
    ];
    let mut out = String::new();
    for (name, find) in faults {
        let to = format!("{find}published:");
        let text = study.replace(FROM, &to);
        let error = load(text.as_bytes(), WORKLOAD.as_bytes()).unwrap_err();
        out.push_str(&format!("=== {name}\n{}\n", crate::faults::seen(&error)));
    }
    let others = [
        ("with users", LOAD.to_owned(), GOOD.to_owned()),
        ("with trials", HOLD.to_owned(), format!("{GOOD}trials: 6\n")),
        (
            "with a control",
            HOLD.to_owned(),
            format!("{GOOD}control: true\n"),
        ),
    ];
    for (name, load_text, find) in others {
        let text = STUDY.replace(LOAD, &load_text);
        let text = text.replace(FROM, &format!("{find}published:"));
        let error = load(text.as_bytes(), WORKLOAD.as_bytes()).unwrap_err();
        out.push_str(&format!("=== {name}\n{}\n", crate::faults::seen(&error)));
    }
    insta::assert_snapshot!(out);
}
