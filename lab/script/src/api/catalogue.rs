//! The modules that scripts can import, by the names that they use, and why others are refused.

macro_rules! bundled {
    ($($name:literal => $file:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("modules/", $file, ".js")))),*]
    };
}

/// Names and texts of all modules. The names that begin with `plimsoll/internal/` are for the others.
const MODULES: &[(&str, &str)] = bundled! {
    "plimsoll/internal/waiting" => "waiting",
    "plimsoll/internal/inspect" => "inspect",
    "plimsoll/internal/same" => "same",
    "plimsoll/internal/element" => "element",
    "plimsoll/internal/body" => "body",
    "k6" => "k6",
    "k6/html" => "html",
    "plimsoll/internal/response" => "response",
    "k6/http" => "http",
    "k6/metrics" => "metrics",
    "k6/execution" => "execution",
    "k6/data" => "data",
    "k6/encoding" => "encoding",
    "k6/crypto" => "crypto",
    "k6/timers" => "timers",
    "k6/net/grpc" => "grpc",
    "k6/secrets" => "secrets",
    "plimsoll" => "plimsoll",
    "jslib/url" => "url",
    "plimsoll/internal/globals" => "globals",
    "jslib/k6-utils" => "k6-utils",
    "jslib/k6-summary" => "k6-summary",
    "jslib/formdata" => "formdata",
    "jslib/papaparse" => "papaparse",
    "jslib/httpx" => "httpx",
    "jslib/k6chaijs" => "k6chaijs",
    "jslib/expect" => "expect",
    "jslib/k6-testing" => "k6-testing",
    "jslib/k6-reporter" => "k6-reporter",
};

/// The names and texts of all modules.
pub(crate) fn modules() -> &'static [(&'static str, &'static str)] {
    MODULES
}

/// The module that an import names: by its name, or by its known address in any version.
pub(crate) fn resolve(specifier: &str) -> Option<&'static str> {
    let name = match specifier {
        "k6/experimental/timers" => "k6/timers",
        "k6/experimental/grpc" => "k6/net/grpc",
        _ if specifier.starts_with("k6") || specifier == "plimsoll" => specifier,
        _ => return library(specifier),
    };
    let known = MODULES.iter().find(|(known, _)| *known == name);
    known.map(|(known, _)| *known)
}

fn library(specifier: &str) -> Option<&'static str> {
    let address = specifier
        .strip_prefix("https://")
        .or_else(|| specifier.strip_prefix("http://"))?;
    let address = address.split(['?', '#']).next().unwrap_or(address);
    let path = if let Some(path) = address.strip_prefix("jslib.k6.io/") {
        path.split('/').next()?
    } else if address.contains("k6-reporter") {
        "k6-reporter"
    } else if address.contains("k6-jslib-summary") || address.contains("k6-summary") {
        "k6-summary"
    } else if address.contains("k6-jslib-utils") || address.contains("k6-utils") {
        "k6-utils"
    } else {
        return None;
    };
    MODULES
        .iter()
        .map(|(known, _)| *known)
        .find(|known| known.strip_prefix("jslib/") == Some(path))
}

/// Why an import is refused, and what to do; `None` if there is nothing to say but that it isn't known.
pub(crate) fn refused(specifier: &str) -> Option<(String, &'static str)> {
    let (what, help) = match specifier {
        "k6/browser" | "k6/experimental/browser" => (
            "it drives a browser",
            "measure the pages' requests: record them as HAR, and run `plimsoll init --from shop.har`",
        ),
        "k6/ws" | "k6/websockets" | "k6/experimental/websockets" => (
            "a workload with `protocol: websocket` opens WebSockets",
            "write the messages as such a workload, see docs/clients.md",
        ),
        "k6/experimental/redis" | "k6/x/redis" => (
            "scripts send HTTP only",
            "write the commands as a workload with `protocol: redis`",
        ),
        "k6/experimental/fs" => (
            "files are opened before the run",
            "read the file by open('file.csv')",
        ),
        "k6/experimental/csv" => (
            "files are opened before the run",
            "parse the file by papaparse from https://jslib.k6.io/papaparse/5.1.1/index.js",
        ),
        "k6/experimental/tracing" => (
            "k6 removed it",
            "send the header traceparent with params.headers",
        ),
        "k6/experimental/streams" => (
            "streams aren't supported",
            "read the file by open('file.csv')",
        ),
        "fs" | "node:fs" => (
            "it is a module of Node",
            "bundle packages of npm without Node's modules; a script reads files by open('file.csv')",
        ),
        "path" | "node:path" | "url" | "node:url" | "util" | "node:util" | "os" | "node:os"
        | "process" | "buffer" | "node:buffer" | "stream" | "events" | "http" | "node:http"
        | "https" | "node:https" | "child_process" => (
            "it is a module of Node",
            "use the modules of k6, or a bundle that contains all it needs",
        ),
        "crypto" | "node:crypto" => (
            "it is a module of Node",
            "import 'k6/crypto', or use the global crypto",
        ),
        _ if specifier.starts_with("k6/x/") => (
            "it is an extension of k6",
            "write that part as a workload, see docs/clients.md",
        ),
        _ if specifier.starts_with("https://") || specifier.starts_with("http://") => (
            "modules aren't fetched",
            "fetch it, put it beside the script, and import the file",
        ),
        _ => return None,
    };
    Some((format!("{specifier} isn't available: {what}"), help))
}
