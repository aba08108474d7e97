//! Tests of `servers`.

use proptest::prelude::*;

use super::*;

#[test]
fn servers_are_addresses_without_a_path() {
    for (text, expected) in [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        (" https://example.org/ ", "https://example.org"),
        ("http://[::1]:81", "http://[::1]:81"),
        ("http://[::1]", "http://[::1]"),
    ] {
        assert_eq!(server(text).as_deref(), Ok(expected), "{text}");
    }
    for wrong in [
        "",
        "localhost:80",
        "ftp://a",
        "http://",
        "http://a:0",
        "http://a:70000",
        "http://a/path",
        "http://a b",
        "http://u@a",
    ] {
        assert!(server(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_exporter_has_its_usual_path() {
    assert_eq!(exporter("http://a:9100").unwrap(), "http://a:9100/metrics");
    assert_eq!(exporter("http://a:9100/x").unwrap(), "http://a:9100/x");
    assert!(exporter("a:9100").is_err());
}

#[test]
fn addresses_have_no_port_and_names_neither() {
    assert_eq!(
        ip_address(" fd00::7").unwrap(),
        "fd00::7".parse::<IpAddr>().unwrap()
    );
    for wrong in ["", "10.0.0.7:80", "[::1]", "host"] {
        assert!(ip_address(wrong).is_err(), "{wrong}");
    }
    assert_eq!(name("staging.example.org").unwrap(), "staging.example.org");
    for wrong in ["", "https://a", "a b", "a/b"] {
        assert!(name(wrong).is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn what_is_taken_is_taken_again(text in "(https?|tcp|redis)://[a-z0-9.:/%\\[\\]-]{0,20}|\\PC{0,30}") {
        for read in [server, exporter, name] {
            if let Ok(taken) = read(&text) {
                prop_assert_eq!(read(&taken), Ok(taken));
            }
        }
        if let Ok(address) = ip_address(&text) {
            prop_assert_eq!(ip_address(&address.to_string()), Ok(address));
        }
    }
}
