//! Tests of `files`.

use super::*;

#[test]
fn paths_are_taken_from_the_file_that_names_them() {
    let check = |from: &str, path: &str, expected: &str| {
        assert_eq!(sibling_path(from, path), expected, "{path} from {from}");
    };
    check("a.study.yaml", "../workloads/b.yaml", "../workloads/b.yaml");
    check("studies/a.yaml", "../workloads/b.yaml", "workloads/b.yaml");
    check("/x/studies/a.yaml", "../w/b.yaml", "/x/w/b.yaml");
    check("../studies/a.yaml", "../w/b.yaml", "../w/b.yaml");
    check("a.yaml", "./b.yaml", "b.yaml");
    check("s/a.yaml", "/abs/b.yaml", "/abs/b.yaml");
    check("/a.yaml", "b.yaml", "/b.yaml");
}
