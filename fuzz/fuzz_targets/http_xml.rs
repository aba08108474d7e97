//! Any text as an XML answer: the values at a path, or an error.
//!
//! `cargo +nightly fuzz run http_xml -- -max_len=4096`
#![no_main]

use lab_client::http::xml_values;
use lab_workload::XmlPath;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for path in ["//a", "a/b", "//*@b"] {
        let path = XmlPath::parse(path).expect("a path");
        let _ = xml_values(bytes, &path);
    }
});
