//! What is refused when a script is loaded, each with its place and what to do.

use crate::play::try_load;

/// The problems of a script, as `line: message`.
fn problems(text: &str) -> Vec<String> {
    let text = format!(
        "import http from 'k6/http';import {{ sleep }} from 'k6';\n{text}\nexport default () => {{}}"
    );
    match try_load(&[("main.js", &text)]) {
        Ok(_) => Vec::new(),
        Err(problems) => problems
            .iter()
            .map(|problem| format!("{}: {}", problem.line, problem.message))
            .collect(),
    }
}

#[test]
fn refuses_waits_where_javascript_cannot_wait() {
    assert_eq!(
        problems("\nhttp.get('http://a')"),
        ["3: a request can't be sent at module level"]
    );
    assert_eq!(
        problems("const r = http.get('http://a')"),
        ["2: a request can't be sent at module level"]
    );
    assert_eq!(
        problems("[1].sort((a, b) => http.get('http://a').status)"),
        ["2: a request can't be sent within a sort"]
    );
    assert_eq!(
        problems("'a'.replace('a', () => { sleep(1) })"),
        ["2: a user can't sleep within a replace"]
    );
    assert_eq!(
        problems("class A { constructor() { http.get('http://a') } }"),
        ["2: a request can't be sent within a constructor"]
    );
    assert_eq!(
        problems("const a = { get b() { return http.get('http://a') } }"),
        ["2: a request can't be sent within a getter"]
    );
    assert_eq!(
        problems("function A() { this.r = http.get('http://a') }\nconst f = () => new A()"),
        ["2: a request can't be sent within a function that is used with new"]
    );
    assert_eq!(
        problems("function f(r = http.get('http://a')) {}"),
        ["2: a request can't be sent in the default of a parameter or in a field of a class"]
    );
    assert_eq!(
        problems("function* f() { yield http.get('http://a') }"),
        ["2: a request can't be sent within a generator"]
    );
}

#[test]
fn refuses_code_of_text() {
    assert!(problems("const f = () => eval('1')")[0].starts_with("2: eval isn't possible"));
    assert!(
        problems("const f = () => new Function('1')")[0]
            .starts_with("2: new Function isn't possible")
    );
    assert!(
        problems("const f = () => import('./x.js')")[0].starts_with("2: import() isn't possible")
    );
    assert!(problems("const $$t = 1; const f = () => $$t")[0].contains("reserved"));
}

#[test]
fn refuses_modules_that_are_not_there() {
    let help = |specifier: &str| -> String {
        let text = format!("\nimport x from '{specifier}';");
        let problems = try_load(&[("main.js", &text)]).expect_err("it is refused");
        format!(
            "{}: {} {}",
            problems[0].line, problems[0].message, problems[0].help
        )
    };
    assert!(help("https://example.com/x.js").contains("fetch it"));
    assert!(help("lodash").contains("bundle packages"));
    assert!(help("fs").contains("bundle packages"));
    assert!(help("k6/browser").contains("k6/browser isn't available"));
    assert!(help("k6/x/sse").contains("extension"));
    for sockets in ["k6/ws", "k6/websockets", "k6/experimental/websockets"] {
        assert_eq!(
            help(sockets),
            format!(
                "2: {sockets} isn't available: a workload with `protocol: websocket` opens WebSockets write the messages \
                 as such a workload, see docs/clients.md"
            )
        );
    }
    assert!(help("./none.js").starts_with("2: the file './none.js' can't be imported"));
}

#[test]
fn shows_place_of_syntax_error() {
    let problems = try_load(&[("main.js", "\nexport default function () {\n  const = 1;\n}")])
        .expect_err("it is no JavaScript");
    assert_eq!(problems[0].line, 3);
    let problems = try_load(&[("main.js", "const ä = 'öü'; const f = () => eval('1');")])
        .expect_err("it is refused");
    assert_eq!((problems[0].line, problems[0].column), (1, 33));
    let problems = try_load(&[("main.js", "const a = 1;\nthrow new Error('no URL');")])
        .expect_err("it throws");
    assert_eq!(
        (problems[0].line, problems[0].message.as_str()),
        (2, "no URL")
    );
}
