//! Tests of `reach`.

use super::*;

#[test]
fn files_lie_beside_the_study() {
    for (written, expected) in [
        ("ca.pem", "studies/ca.pem"),
        (" ../ca.pem ", "ca.pem"),
        ("/etc/ca.pem", "/etc/ca.pem"),
        ("{{ scratch }}/ca.pem", "{{ scratch }}/ca.pem"),
    ] {
        let found = path("studies/a.study.yaml", written);
        assert_eq!(found.unwrap(), expected, "{written}");
    }
    assert_eq!(path("--set", "ca.pem").unwrap(), "ca.pem");
    assert!(path("a.yaml", " ").is_err());
}

#[test]
fn versions_schemes_and_shares_are_few() {
    for (text, version) in [
        ("1", HttpVersion::One),
        ("1.1", HttpVersion::One),
        (" 2", HttpVersion::Two),
        ("auto", HttpVersion::Auto),
    ] {
        assert_eq!(http_version(text).unwrap(), version, "{text}");
    }
    assert!(http_version("3").is_err() && http_version("h2").is_err());
    assert!(share("machine", HttpVersion::Two).unwrap());
    assert!(share("machine", HttpVersion::One).unwrap());
    assert!(share("machine", HttpVersion::Auto).is_err());
    assert!(!share("user", HttpVersion::One).unwrap());
    assert_eq!(shared_connections("8", true).unwrap(), 8);
    assert!(shared_connections("8", false).is_err() && shared_connections("0", true).is_err());
    assert!(scheme("https").unwrap() && !scheme("http").unwrap() && scheme("ftp").is_err());
}
