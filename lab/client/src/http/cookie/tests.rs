//! Tests of `cookie`.

use super::*;

fn kept(jar: &Jar) -> Vec<String> {
    let cookies = jar.cookies.get().map(|cookies| cookies.borrow());
    let names = cookies.iter().flat_map(|all| all.list.iter());
    names.map(|cookie| cookie.name().to_owned()).collect()
}

fn sent(jar: &Jar, secure: bool, path: &str) -> String {
    let mut out = String::new();
    jar.write(secure, path, &[], &mut out);
    out
}

fn set<'a>(jar: &Jar, value: &'a str, host: &str, path: &str) -> Option<(&'a str, &'a str)> {
    let set = jar.store(value, host, path)?;
    assert!(!set.has_evicted);
    Some((set.name, set.value))
}

#[test]
fn a_cookie_comes_back_under_its_path() {
    let jar = Jar::default();
    assert_eq!(
        set(&jar, "s=1; Path=/mail", "h", "/login"),
        Some(("s", "1"))
    );
    assert_eq!(sent(&jar, false, "/mail/a?x=/b"), "Cookie: s=1\r\n");
    assert_eq!(sent(&jar, false, "/mailbox"), "");
    jar.store("t=2; HttpOnly; SameSite=Lax", "h", "/mail/login?next=/x");
    assert_eq!(sent(&jar, false, "/mail/a"), "Cookie: s=1; t=2\r\n");
    jar.store("s=3; Path=/mail", "h", "/");
    assert_eq!(sent(&jar, false, "/mail"), "Cookie: s=3; t=2\r\n");
}

#[test]
fn longer_paths_come_first_and_then_older_cookies() {
    let jar = Jar::default();
    for value in [
        "sid=root; Path=/",
        "a=1; Path=/",
        "sid=app; Path=/app",
        "b=2; Path=/app",
    ] {
        jar.store(value, "h", "/");
    }
    let expected = "Cookie: sid=app; b=2; sid=root; a=1\r\n";
    assert_eq!(sent(&jar, false, "/app/me"), expected);
    jar.store("sid=new; Path=/", "h", "/");
    jar.store("b=3; Path=/app", "h", "/");
    let expected = "Cookie: sid=app; b=3; sid=new; a=1\r\n";
    assert_eq!(sent(&jar, false, "/app/me"), expected);
}

#[test]
fn cookies_of_the_workload_are_sent_beside_those_of_the_server() {
    let own = |pair: &str, is_default| RenderedCookie {
        pair: pair.into(),
        is_default,
    };
    let own = [
        own("consent=yes", true),
        own("sid=mine", true),
        own("v=b", false),
    ];
    let with = |jar: &Jar, path: &str| {
        let mut out = String::new();
        jar.write(false, path, &own, &mut out);
        out
    };
    let jar = Jar::default();
    assert_eq!(with(&jar, "/"), "Cookie: consent=yes; sid=mine; v=b\r\n");
    for value in ["sid=theirs; Path=/app", "v=a; Path=/", "t=1; Path=/"] {
        jar.store(value, "h", "/");
    }
    assert_eq!(
        with(&jar, "/"),
        "Cookie: consent=yes; sid=mine; v=b; t=1\r\n"
    );
    assert_eq!(
        with(&jar, "/app"),
        "Cookie: sid=theirs; consent=yes; v=b; t=1\r\n"
    );
    let mut out = String::new();
    write_to_other(&own, &mut out);
    assert_eq!(out, "Cookie: v=b\r\n");
    write_to_other(&own[..2], &mut out);
    assert_eq!(out, "Cookie: v=b\r\n");
}

#[test]
fn removal_by_age_and_by_date() {
    for gone in [
        "s=; Max-Age=0; Path=/",
        "s=x; max-age=-1; path=/; Expires=Fri, 01 Jan 2100 00:00:00 GMT",
        "s=x; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "s=x; path=/; expires=Thursday, 01-Jan-70 00:00:01 GMT",
        "s=x; path=/; expires=Thu Jan  1 00:00:01 1970",
    ] {
        let jar = Jar::default();
        jar.store("s=1; Path=/; Max-Age=1000", "h", "/");
        assert_eq!(sent(&jar, false, "/"), "Cookie: s=1\r\n");
        jar.store(gone, "h", "/");
        assert_eq!(kept(&jar), [""; 0], "{gone}");
    }
}

#[test]
fn secure_and_foreign_cookies_stay_at_home() {
    let jar = Jar::default();
    jar.store("a=1; Secure; Path=/", "h", "/");
    assert_eq!(sent(&jar, false, "/"), "");
    assert_eq!(sent(&jar, true, "/"), "Cookie: a=1\r\n");
    assert_eq!(
        set(&jar, "b=1; Domain=other.org", "h.org", "/"),
        Some(("b", "1"))
    );
    jar.store("c=1; Domain=.h.org; Path=/", "www.h.org", "/");
    assert_eq!(sent(&jar, true, "/"), "Cookie: a=1; c=1\r\n");
}

#[test]
fn nonsense_is_ignored_and_the_number_limited() {
    let jar = Jar::default();
    for value in ["", "=x", "novalue", "a\n=b", "; Path=/"] {
        assert_eq!(jar.store(value, "h", "/"), None, "{value:?}");
    }
    for i in 0..MAX_COOKIES {
        let path = ["/", "/deep"][i % 2];
        let value = format!("c{i}=1; Path={path}");
        assert_eq!(
            jar.store(&value, "h", "/").map(|set| set.has_evicted),
            Some(false)
        );
    }
    assert!(jar.store("more=1; Path=/", "h", "/").unwrap().has_evicted);
    let kept = kept(&jar);
    assert_eq!(kept.len(), MAX_COOKIES);
    assert_eq!(kept[MAX_COOKIES - 1], "more");
    // The oldest cookie was evicted, whatever its place.
    assert!(!kept.contains(&"c0".to_owned()) && kept.contains(&"c1".to_owned()));
}

#[test]
fn who_shares_a_jar_has_what_either_is_given() {
    let first = Jar::default();
    let other = first.share();
    first.store("a=1; Path=/", "h", "/");
    other.store("b=2; Path=/", "h", "/");
    for jar in [&first, &other] {
        assert_eq!(sent(jar, false, "/"), "Cookie: a=1; b=2\r\n");
    }
}

#[test]
fn dates_are_read_as_the_rfc_says() {
    for (text, seconds) in [
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
        ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
        ("Sun, 31 Feb 1994 08:49:37 GMT", None),
        ("yesterday", None),
    ] {
        assert_eq!(date(text), seconds, "{text}");
    }
}
