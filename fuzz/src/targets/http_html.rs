//! Any text as an HTML answer: the values at a path, or an error, at a bounded cost.

use lab_filters::reading::html::values as html_values;
use lab_workload::HtmlPath;

pub(crate) fn run(bytes: &[u8]) {
    for path in ["(a)", "(ul > li a:not(.b))@href", "(*)"] {
        let path = HtmlPath::parse(path).expect("a path");
        let _ = html_values(bytes, &path);
    }
}
