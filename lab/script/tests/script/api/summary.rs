//! Summaries: k6-summary and k6-reporter.

use super::run;

const DATA: &str = r#"const data = { root_group: { name: '', groups: [{ name: 'cart', groups: [], checks: [{ name: 'is <200>', passes: 9, fails: 1 }] }], checks: [] },
 metrics: { http_reqs: { type: 'counter', contains: 'default', values: { count: 5, rate: 3.352646 } },
  http_req_duration: { type: 'trend', contains: 'time', values: { avg: 202.256, 'p(95)': 1500.5 }, thresholds: { 'p(95)<200': { ok: false } } },
  http_req_failed: { type: 'rate', contains: 'default', values: { rate: 0.0123, passes: 1, fails: 99 }, thresholds: { 'rate<0.1': { ok: true } } },
  data_received: { type: 'counter', contains: 'data', values: { count: 63000, rate: 42000 } },
  vus: { type: 'gauge', contains: 'default', values: { value: 1, min: 1, max: 2 } } } };"#;

fn made(imports: &str, expression: &str) -> String {
    let script =
        format!("{imports}\n{DATA}\nexport default function () {{ return {expression}; }}");
    run(&script, "").value().as_str().unwrap().to_owned()
}

#[test]
fn makes_text() {
    let text = made(
        "import { textSummary } from 'https://jslib.k6.io/k6-summary/0.0.2/index.js'",
        "textSummary(data, { indent: '→', enableColors: false })",
    );
    let has = |line: &str| assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    has("→  █ cart");
    has("→    ✗ is <200>");
    has("→     ↳ 90% — ✓ 9 / ✗ 1");
    has("→✗ http_req_duration...: avg=202.26ms p(95)=1.5s");
    has("→    ✗ p(95)<200");
    has("→✓ http_req_failed.....: 1.23% ✓ 1 ✗ 99");
    has("→  http_reqs...........: 5 3.35/s");
    has("→  data_received.......: 63 kB 42 kB/s");
    has("→  vus.................: 1 min=1 max=2");
    let colored = made(
        "import { textSummary } from 'https://jslib.k6.io/k6-summary/0.0.2/index.js'",
        "textSummary(data, { enableColors: true })",
    );
    assert!(colored.contains("\u{1b}[31m✗\u{1b}[0m"));
}

#[test]
fn makes_junit() {
    let text = made(
        "import { jUnit } from 'https://jslib.k6.io/k6-summary/0.0.2/index.js'",
        "jUnit(data)",
    );
    assert!(
        text.starts_with("<?xml version=\"1.0\"?>\n<testsuites tests=\"2\" failures=\"1\">\n"),
        "{text}"
    );
    assert!(text.contains("<testcase name=\"http_req_duration - p(95)&lt;200\"><failure message=\"failed\" /></testcase>"), "{text}");
    assert!(
        text.contains("<testcase name=\"http_req_failed - rate&lt;0.1\" />"),
        "{text}"
    );
}

#[test]
fn makes_page() {
    let page = made(
        "import { htmlReport } from 'https://raw.githubusercontent.com/benc-uk/k6-reporter/main/dist/bundle.js'",
        "htmlReport(data, { title: 'Shop <1>' })",
    );
    assert!(
        page.starts_with("<!doctype html>") && page.contains("<title>Shop &lt;1&gt;</title>"),
        "{page}"
    );
    assert!(
        page.contains("cart › is &lt;200&gt;")
            && page.contains("202.26ms")
            && page.contains("failed")
    );
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<script"));
}
