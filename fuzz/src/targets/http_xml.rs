//! Any text as an XML answer: the values at a path, or an error.

use lab_filters::reading::xml::values as xml_values;
use lab_workload::XmlPath;

pub(crate) fn run(bytes: &[u8]) {
    for path in ["//a", "a/b", "//*@b"] {
        let path = XmlPath::parse(path).expect("a path");
        let _ = xml_values(bytes, &path);
    }
}
