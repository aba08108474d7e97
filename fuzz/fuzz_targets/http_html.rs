//! Any text as an HTML answer: the values at a path, or an error, at a bounded cost.
//!
//! `cargo +nightly fuzz run http_html -- -max_len=4096`
#![no_main]

use lab_client::http::html_values;
use lab_workload::HtmlPath;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for path in ["(a)", "(ul > li a:not(.b))@href", "(*)"] {
        let path = HtmlPath::parse(path).expect("a path");
        let _ = html_values(bytes, &path);
    }
});
