//! Every possible error in a file, and the message for its author.

use crate::faults::{Fault, STUDY, WORKLOAD, folder, load, seen, snapshot};
use lab_study::{LoadedAny, load_any, load_study};

#[test]
fn faults_of_a_study() {
    let faults: &[Fault] = &[
        ("unknown key", "thresholds:", "treshold:"),
        ("unknown key far from any", "published:", "xyzzy:"),
        ("unknown key inside", "http_threads", "http_thread"),
        ("missing key", "title: Pages at two levels\n", ""),
        (
            "key without a value",
            "title: Pages at two levels",
            "title:",
        ),
        (
            "wrong type: list for text",
            "title: Pages at two levels",
            "title: [a, b]",
        ),
        (
            "wrong type: text for list",
            "users: [10, 20]",
            "users: many",
        ),
        (
            "wrong type: mapping wanted",
            "load: { users: \"{{ users }}\", ramp: 10s, hold: 4 cycles }",
            "load: heavy",
        ),
        ("bad name", "study: pages", "study: Pages and more"),
        ("bad duration", "ramp: 10s", "ramp: 10 parsecs"),
        ("duration without unit", "ramp: 10s", "ramp: 10"),
        ("bad hold", "hold: 4 cycles", "hold: four cycles"),
        ("endless hold", "hold: 4 cycles", "hold: 1000000 cycles"),
        ("no users", "[10, 20]", "[0, 20]"),
        ("10^12 users", "[10, 20]", "[1000000000000]"),
        ("half a user", "[10, 20]", "[1.5]"),
        ("negative users", "users: \"{{ users }}\"", "users: -5"),
        ("empty matrix", "\n  users: [10, 20]", " {}"),
        ("empty factor", "[10, 20]", "[]"),
        ("level twice", "[10, 20]", "[10, 10]"),
        (
            "bad factor name",
            "users: [10, 20]",
            "\"number of users\": [10]",
        ),
        (
            "matrix too large",
            "[10, 20]",
            "[1]\n  a: [1,2,3,4,5,6,7,8,9,10]\n  b: [1,2,3,4,5,6,7,8,9,10]\n  c: [1,2,3,4,5,6,7,8,9,10]\n  d: [1,2,3,4,5,6,7,8,9,10,11]",
        ),
        ("too many trials", "published:", "trials: 10001\npublished:"),
        (
            "too many trials with cells",
            "published:",
            "trials: 9000\npublished:",
        ),
        ("unknown factor", "{{ users }}", "{{ user }}"),
        ("function in a setting", "{{ users }}", "{{ uuid() }}"),
        (
            "setting that can't be worked out",
            "{{ users }}",
            "{{ users / 0 }}",
        ),
        ("unclosed template", "{{ users }}", "{{ users"),
        ("unknown metric", "response_time:", "response_tme:"),
        (
            "resends of one step",
            "response_time: [\"p(95) < 300ms\"]",
            "resends{step:Open a page}: [\"rate < 1%\"]",
        ),
        ("unknown figure", "p(95) < 300ms", "p95 < 300ms"),
        ("no comparison", "p(95) < 300ms", "p(95) 300ms"),
        ("bad limit", "p(95) < 300ms", "p(95) < fast"),
        (
            "unknown step in a threshold",
            "response_time:",
            "response_time{step:Open a pge}:",
        ),
        (
            "threshold narrowed by something else",
            "response_time:",
            "response_time{user:1}:",
        ),
        ("missing workload", "workload: pages", "workload: page"),
        (
            "missing workload by path",
            "workload: pages",
            "workload: ../other/pages.yaml",
        ),
        ("missing published file", "figures.csv", "figure.csv"),
        ("unknown order", "published:", "order: shufled\npublished:"),
        (
            "bad date",
            "published:",
            "dates_from: 5 January\npublished:",
        ),
        ("bad seed", "published:", "seed: lucky\npublished:"),
        ("unknown engine", "http_threads: 4", "engine: sqllite"),
        ("bad size", "http_threads: 4", "mailbox_pad: huge"),
        ("too many threads", "http_threads: 4", "http_threads: 1025"),
        ("too much padding", "http_threads: 4", "mailbox_pad: 2 GiB"),
        ("unknown layout", "http_threads: 4", "lookup_layout: index"),
        ("no mail", "http_threads: 4", "mail: { messages: 0 }"),
        (
            "unknown key of mail",
            "http_threads: 4",
            "mail: { message: 5 }",
        ),
        (
            "duplicate key",
            "title: Pages at two levels",
            "title: One\ntitle: Two",
        ),
        (
            "several documents",
            "published: figures.csv\n",
            "---\nmore: 1\n",
        ),
        ("bad indentation", "  response_time:", " - response_time:"),
        ("tab", "  users: [10", "\tusers: [10"),
        (
            "unknown alias",
            "title: Pages at two levels",
            "title: *nowhere",
        ),
        (
            "several at once",
            "title: Pages at two levels\nworkload: pages\nmatrix:",
            "titel: Pages\nworkload: [pages]\nmatriks:",
        ),
    ];
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

#[test]
fn faults_of_what_is_around_a_system() {
    const FROM: &str = "groupware: { http_threads: 4 }";
    let faults: &[Fault] = &[
        (
            "elsewhere",
            FROM,
            "groupware: {}\n  kernel: { /etc/passwd: 1 }",
        ),
        (
            "out of the folder",
            FROM,
            "groupware: {}\n  kernel: { /proc/sys/../sysrq-trigger: b }",
        ),
        (
            "no name",
            FROM,
            "groupware: {}\n  kernel: { swappiness: 1 }",
        ),
        (
            "twice",
            FROM,
            "groupware: {}\n  kernel:\n    vm.swappiness: 1\n    /proc/sys/vm/swappiness: 2",
        ),
        (
            "unknown factor",
            FROM,
            "groupware: {}\n  kernel: { vm.swappiness: \"{{ user }}\" }",
        ),
        (
            "empty value",
            FROM,
            "groupware: {}\n  kernel: { vm.swappiness: \"\" }",
        ),
        (
            "several lines",
            FROM,
            "groupware: {}\n  kernel: { vm.swappiness: \"1\\n2\" }",
        ),
        (
            "no time to wake",
            FROM,
            "groupware: {}\n  kernel: { /dev/cpu_dma_latency: soon }",
        ),
        ("a list", FROM, "groupware: {}\n  kernel: [vm.swappiness]"),
        ("bad cores", FROM, "groupware: {}\n  cpus: \"3-1\""),
        ("no cores", FROM, "groupware: {}\n  cpus: 0"),
        (
            "storage without a root",
            FROM,
            "groupware: {}\n  storage: fast",
        ),
        (
            "no such file system",
            FROM,
            "groupware: {}\n  storage: { filesystem: ext3, size: 4 GB }",
        ),
        (
            "no file system",
            FROM,
            "groupware: {}\n  storage: { size: 4 GB }",
        ),
        (
            "no size of it",
            FROM,
            "groupware: {}\n  storage: { filesystem: xfs }",
        ),
        (
            "too small for it",
            FROM,
            "groupware: {}\n  storage: { filesystem: xfs, size: 100 MB }",
        ),
        (
            "its folder without a root",
            FROM,
            "groupware: {}\n  storage: { filesystem: xfs, size: 4 GB, folder: var }",
        ),
        (
            "an unknown key of it",
            FROM,
            "groupware: {}\n  storage: { filesystem: xfs, size: 4 GB, option: noatime }",
        ),
        (
            "mounted for reading",
            FROM,
            "groupware: {}\n  storage: { filesystem: xfs, size: 4 GB, options: \"noatime,ro\" }",
        ),
        (
            "arguments in one text",
            FROM,
            "groupware: {}\n  storage: { filesystem: xfs, size: 4 GB, mkfs: -m reflink=0 }",
        ),
    ];
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

#[test]
fn faults_of_cells() {
    const FROM: &str = "users: [10, 20]";
    let faults: &[Fault] = &[
        (
            "zip of unknown",
            FROM,
            "users: [10, 20]\n  zip: [[users, usrs]]",
        ),
        ("zip of one", FROM, "users: [10, 20]\n  zip: [[users]]"),
        (
            "zip of unlike",
            FROM,
            "users: [10, 20]\n  a: [1]\n  zip: [[users, a]]",
        ),
        (
            "zip twice",
            FROM,
            "users: [10, 20]\n  a: [1, 2]\n  zip: [[users, a], [a, users]]",
        ),
        (
            "excludes nothing",
            FROM,
            "users: [10, 20]\n  exclude: [{ users: 30 }]",
        ),
        (
            "excludes all",
            FROM,
            "users: [10]\n  exclude: [{ users: 10 }]",
        ),
        (
            "excludes by no factor",
            FROM,
            "users: [10, 20]\n  exclude: [{}]",
        ),
        (
            "includes half a cell",
            FROM,
            "users: [10]\n  a: [1]\n  include: [{ users: 5 }]",
        ),
        (
            "includes what is there",
            FROM,
            "users: [10]\n  include: [{ users: 10 }]",
        ),
    ];
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

#[test]
fn faults_of_commands() {
    const FROM: &str = "groupware: { http_threads: 4 }";
    let faults: &[Fault] = &[
        ("no system", FROM, "kernel: { vm.swappiness: 1 }"),
        (
            "two systems",
            FROM,
            "groupware: {}\n  command: { start: [a] }",
        ),
        ("no program", FROM, "command: { start: [] }"),
        ("no start", FROM, "command: { env: { A: b } }"),
        ("not a list", FROM, "command: { start: nginx -g off }"),
        ("unknown key", FROM, "command: { start: [a], redy: {} }"),
        (
            "unknown factor",
            FROM,
            "command: { start: [a, \"{{ prt }}\"] }",
        ),
        (
            "sums of what a trial fills in",
            FROM,
            "command: { start: [a, \"{{ port + 1 }}\"] }",
        ),
        (
            "bad variable",
            FROM,
            "command: { start: [a], env: { A-B: c } }",
        ),
        (
            "file elsewhere",
            FROM,
            "command: { start: [a], files: { ../x: y } }",
        ),
        (
            "two kinds of readiness",
            FROM,
            "command: { start: [a], ready: { http: /, log: up } }",
        ),
        (
            "status of nothing",
            FROM,
            "command: { start: [a], ready: { status: 200 } }",
        ),
        (
            "bad path",
            FROM,
            "command: { start: [a], ready: { http: health } }",
        ),
        (
            "bad expression",
            FROM,
            "command: { start: [a], ready: { log: \"(up\" } }",
        ),
        (
            "bad signal",
            FROM,
            "command: { start: [a], stop: { signal: KIL } }",
        ),
        ("bad port", FROM, "command: { start: [a], port: 70000 }"),
        (
            "factor of that name",
            "users: [10, 20]\nsystem:\n  groupware: { http_threads: 4 }",
            "users: [10, 20]\n  port: [1, 2]\nsystem:\n  command: { start: [a] }",
        ),
    ];
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
}

#[test]
fn faults_of_a_workload() {
    let faults: &[Fault] = &[
        ("unknown key", "pace: 10s", "pase: 10s"),
        (
            "unknown key of a step",
            "request: POST /login",
            "requst: POST /login",
        ),
        (
            "range backwards",
            "wait: 1s..2s\n      request: POST",
            "wait: 15s..5s\n      request: POST",
        ),
        (
            "bad wait",
            "wait: 1s..2s\n      request: POST",
            "wait: soon\n      request: POST",
        ),
        (
            "unknown distribution",
            "wait: 1s..2s\n      request: POST",
            "wait: exponental(1s)\n      request: POST",
        ),
        ("no pace for cycles", "  pace: 10s\n", ""),
        ("zero pace", "pace: 10s", "pace: 0s"),
        ("unknown method", "POST /login", "PSOT /login"),
        ("no method", "POST /login", "/login"),
        ("target with a space", "POST /login", "POST /log in"),
        ("unknown variable", "{{ name }}", "{{ nam }}"),
        (
            "unknown variable in arithmetic",
            "{{ name }}",
            "{{ index + offset }}",
        ),
        ("unknown function", "pad(index, 5)", "padd(index, 5)"),
        ("unknown filter", "{{ name }}", "{{ name | uper }}"),
        ("too few arguments", "pad(index, 5)", "pad(index)"),
        ("arguments that never work", "pad(index, 5)", "int_in(5, 1)"),
        ("list that is none", "take(links)", "take(link)"),
        (
            "list that is an expression",
            "take(links)",
            "take(links[0])",
        ),
        ("template syntax", "{{ name }}", "{{ name + }}"),
        (
            "unclosed template",
            "GET {{ take(links) }}",
            "GET {{ take(links)",
        ),
        ("empty template", "{{ name }}", "{{ }}"),
        ("unclosed statement", "{{ name }}", "{% if name %}x"),
        (
            "variable before its time",
            "name: user{{ pad(index, 5) }}",
            "name: user{{ mail }}\n  mail: x",
        ),
        ("reserved name", "  name: user", "  index: 1\n  name: user"),
        (
            "bad variable name",
            "links: \"$.items",
            "the links: \"$.items",
        ),
        ("unknown capture", "$.items[*].href", "request.pth"),
        ("bad JSON path", "$.items[*].href", "$.items[*"),
        ("bad regular expression", "\"$.items[*].href\"", "/href=(/"),
        (
            "regular expression without a group",
            "\"$.items[*].href\"",
            "/href/",
        ),
        ("unknown status", "form: {", "expect: OK\n      form: {"),
        (
            "unknown key of an expectation",
            "form: {",
            "expect: { status: 200, contain: Welcome }\n      form: {",
        ),
        (
            "expectation without a path",
            "form: {",
            "expect: { json: { state: open } }\n      form: {",
        ),
        (
            "expectation with a broken path",
            "form: {",
            "expect: { json: { \"$.items[\": open } }\n      form: {",
        ),
        (
            "expectation of no header",
            "form: {",
            "expect: { header: { \"Content Type\": json } }\n      form: {",
        ),
        (
            "expectation with an unknown variable",
            "form: {",
            "expect: { contains: \"{{ nam }}\" }\n      form: {",
        ),
        ("two bodies", "form: {", "text: hello\n      form: {"),
        (
            "header of the driver's",
            "form: {",
            "headers: { Content-Length: 3 }\n      form: {",
        ),
        (
            "bad header name",
            "form: {",
            "headers: { \"X Y\": z }\n      form: {",
        ),
        (
            "step without a request",
            "request: GET /list\n      capture: { links: \"$.items[*].href\" }",
            "set: { links: x }",
        ),
        (
            "request and requests",
            "request: GET /list",
            "request: GET /list\n      requests: [GET /a]",
        ),
        ("duplicate step names", "step: Open a page", "step: Log in"),
        (
            "a step of a session for one user",
            "step: Open a page",
            "step: Open a page\n      once: true",
        ),
        (
            "probe without a request",
            "session:",
            "probe: { every: 1s }\nsession:",
        ),
        (
            "several at once",
            "wait: 1s..2s\n      request: GET {{ take(links) }}",
            "wait: 2s..1s\n      repeat: 0\n      request: GET {{ tke(links) }}",
        ),
    ];
    insta::assert_snapshot!(snapshot(WORKLOAD, faults, |text| load(
        STUDY.as_bytes(),
        text.as_bytes()
    )));
}

#[test]
fn files_that_are_no_files() {
    let bomb = {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for i in 1..12 {
            let before = format!("*a{}", i - 1);
            text.push_str(&format!("a{i}: &a{i} [{}]\n", vec![before; 9].join(", ")));
        }
        text.into_bytes()
    };
    let long_line = format!(
        "study: pages\ntitle: [{}]\nnonsense: 1\n",
        "'word', ".repeat(15_000)
    );
    let deep_flow = format!("study: {}{}", "[".repeat(5_000), "]".repeat(5_000));
    let deep_block: String = (0..3_000)
        .map(|i| format!("{}a:\n", " ".repeat(i.min(300))))
        .collect();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("blank", b"\n\n  \n".to_vec()),
        ("comments only", b"# nothing\n".to_vec()),
        ("a list", b"- a\n- b\n".to_vec()),
        ("a word", b"hello\n".to_vec()),
        ("neither", b"stduy: x\n".to_vec()),
        ("not UTF-8", b"study: pages\ntitle: caf\xe9\n".to_vec()),
        (
            "UTF-16",
            "study: pages"
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect(),
        ),
        ("binary", (0u8..=255).collect()),
        ("10 MB", vec![b'a'; 10_000_000]),
        ("alias bomb", bomb),
        (
            "one alias too often",
            format!("a: &a {{b: c}}\nd: [{}]\n", "*a, ".repeat(2_000)).into_bytes(),
        ),
        ("alias to itself", b"study: &a [*a]\n".to_vec()),
        ("deep flow", deep_flow.into_bytes()),
        ("deep block", deep_block.into_bytes()),
        ("a long line", long_line.into_bytes()),
        (
            "an infinite number",
            b"study: .inf\ntitle: x\nworkload: pages\n".to_vec(),
        ),
        ("a control character", b"study: a\x00b\n".to_vec()),
    ];
    let mut out = String::new();
    for (name, bytes) in cases {
        let error = load(&bytes, WORKLOAD.as_bytes())
            .err()
            .unwrap_or_else(|| panic!("{name}: loads"));
        let text = seen(&error);
        assert!(
            text.len() < 4_000,
            "{name}: a message of {} bytes",
            text.len()
        );
        out.push_str(&format!("=== {name}\n{text}\n"));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn faults_of_the_command_line() {
    let folder = folder(STUDY.as_bytes(), WORKLOAD.as_bytes());
    let mut out = String::new();
    let sets = [
        ("load.user", "5"),
        ("load.users", "0"),
        ("load.ramp", "[1"),
        ("load..users", "5"),
        ("title.short", "x"),
        ("matrix.users.7", "5"),
        ("system.groupware.engine", "fast"),
    ];
    for (key, value) in sets {
        let error = load_study(
            "studies/pages.study.yaml",
            &folder,
            &[(key.into(), value.into())],
        )
        .err()
        .unwrap_or_else(|| panic!("{key}: loads"));
        out.push_str(&format!("=== --set {key}={value}\n{}\n", seen(&error)));
    }
    let missing = load_study("studies/page.study.yaml", &folder, &[]).unwrap_err();
    out.push_str(&format!("=== missing study\n{}", seen(&missing)));
    insta::assert_snapshot!(out);
}

/// Sizes that a careless loader takes quadratic time for.
#[test]
fn large_faulty_files_are_refused_quickly() {
    let lines = |line: &str, count: usize| {
        (0..count)
            .map(|i| line.replace('#', &i.to_string()))
            .collect::<String>()
    };
    let head = "workload: pages\nsession:\n  steps:\n";
    let step = "    - step: s#\n      request: GET {{ nothing# }}\n";
    let captures = lines("        c#: $.a\n", 30_000);
    let cases = [
        lines("key#: 1\n", 45_000),
        format!("{head}{}", lines(step, 1_000)),
        format!("{head}{}", lines(step, 9_000)),
        format!("{head}    - step: s\n      request: GET /\n      capture:\n{captures}"),
        format!(
            "workload: pages\nuser:\n{}",
            lines("  v#: '{{ v# }}'\n", 20_000)
        ),
        format!(
            "{head}    - step: s\n      request: GET /\n      set: {{a: '{{{{ b }}}}'}}\n      json: [{}]\n",
            "a, ".repeat(40_000)
        ),
        format!(
            "workload: pages\nuser: {{ a: \"{}\" }}\n",
            "{{ b }}".repeat(20_000)
        ),
        format!(
            "workload: pages\nuser: {{ a: \"{}\" }}\n",
            "{{ a".repeat(100_000)
        ),
        format!(
            "workload: pages\nuser: {{ a: \"{{{{ {}1 }}}}\" }}\n",
            "(".repeat(100_000)
        ),
        format!(
            "workload: pages\nuser: {{ a: \"{{% {} %}}\" }}\n",
            "if ".repeat(100_000)
        ),
    ];
    for (i, workload) in cases.iter().enumerate() {
        let error = load(STUDY.as_bytes(), workload.as_bytes()).err();
        let error = error.unwrap_or_else(|| panic!("case {i} loads"));
        assert!(seen(&error).len() < 20_000, "case {i}");
    }
    let cells = lines("  f#: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n", 4);
    let study = STUDY.replace("  users: [10, 20]\n", &format!("  users: [0]\n{cells}"));
    assert!(load(study.as_bytes(), WORKLOAD.as_bytes()).is_err());
}

#[test]
fn a_session_needs_a_step() {
    let workload = "workload: pages\nsession:\n  pace: 10s\n  steps: []\n";
    let error = load(STUDY.as_bytes(), workload.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "a session has at least one step");
    assert_eq!(error.problems()[0].position(), Some((4, 10)));
}

#[test]
fn the_base_files_are_right() {
    let loaded = load(STUDY.as_bytes(), WORKLOAD.as_bytes()).unwrap();
    assert!(matches!(loaded, LoadedAny::Study(l) if l.files.len() == 3));
    let folder = folder(STUDY.as_bytes(), WORKLOAD.as_bytes());
    let workload = load_any("workloads/pages.workload.yaml", &folder).unwrap();
    assert!(matches!(workload, LoadedAny::Workload(w) if w.variables.len() == 3));
}
