//! Tests of `request`.

use super::has_gap;

#[test]
fn spaces_of_a_target_are_those_outside_of_its_code() {
    for target in [
        "/a/{{ name }}/b",
        "/x{% if round > 0 %}?page={{ round }}{% endif %}",
        "{{ pick(links) }}",
        "/a{# a note #}",
        "/{{ unclosed and so an error elsewhere",
    ] {
        assert!(!has_gap(target), "{target}");
    }
    for target in ["/a b", "/a{{ name }} b", "/a{% if x %} {% endif %}", "/a\t"] {
        assert!(has_gap(target), "{target}");
    }
}
