//! Imports and calls that are refused, each with a sentence and what to do.

use crate::play::try_load;

use super::error;

#[test]
fn refuses_modules_with_what_to_do() {
    let cases = [
        ("k6/browser", "drives a browser", "HAR"),
        ("k6/experimental/redis", "HTTP only", "protocol: redis"),
        ("k6/x/sse", "extension of k6", "docs/clients.md"),
        ("k6/experimental/fs", "before the run", "open("),
        ("k6/experimental/csv", "before the run", "papaparse"),
        ("fs", "module of Node", "open("),
        ("path", "module of Node", "bundle"),
        ("crypto", "module of Node", "k6/crypto"),
        (
            "https://example.com/lib.js",
            "aren't fetched",
            "import the file",
        ),
        (
            "https://jslib.k6.io/aws/0.12.3/s3.js",
            "aren't fetched",
            "import the file",
        ),
    ];
    for (specifier, reason, help) in cases {
        let script =
            format!("import * as x from '{specifier}'; export default function () {{ return x; }}");
        let problems = try_load(&[("main.js", &script)]).expect_err(specifier);
        let problem = &problems[0];
        assert!(
            problem.message.contains(specifier) && problem.message.contains(reason),
            "{problem:?}"
        );
        assert!(problem.help.contains(help), "{problem:?}");
        assert_eq!(problem.line, 1);
    }
}

#[test]
fn knows_libraries_by_address_in_any_version() {
    for address in [
        "https://jslib.k6.io/k6-utils/1.0.0/index.js",
        "https://jslib.k6.io/k6-utils/9.9.9/index.js",
        "https://jslib.k6.io/k6-summary/0.0.1/index.js",
        "https://raw.githubusercontent.com/benc-uk/k6-reporter/main/dist/bundle.js",
        "https://raw.githubusercontent.com/benc-uk/k6-reporter/3.0.1/dist/bundle.js",
        "k6/net/grpc",
        "k6/secrets",
    ] {
        let script = format!(
            "import * as x from '{address}'; export default function () {{ return typeof x; }}"
        );
        assert!(try_load(&[("main.js", &script)]).is_ok(), "{address}");
    }
}

#[test]
fn refuses_grpc_with_what_to_do() {
    let imports = "import grpc from 'k6/net/grpc'; const client = new grpc.Client();";
    let message = error(
        imports,
        "client.connect('localhost:1', { plaintext: true })",
    );
    assert!(
        message.contains("can't send gRPC") && message.contains("docs/clients.md"),
        "{message}"
    );
}
