//! The XML protocol, in each layout: the messages of original clients, and malicious ones.

use crate::support::Service;
use groupware_lookup::xml::{self, Message, ScanBudget, XmlError};
use groupware_lookup::{Layout, Reason, Registrant, limits};
use groupware_proto_lookup::limits::TRIGGERS;

const NAMESPACES: &str = r#"xmlns:perfsonar="http://ggf.org/ns/nmwg/tools/org/perfsonar/1.0/"
    xmlns:nmwg="http://ggf.org/ns/nmwg/base/2.0/"
    xmlns:psservice="http://ggf.org/ns/nmwg/tools/org/perfsonar/service/1.0/"
    xmlns:nmwgt="http://ggf.org/ns/nmwg/topology/2.0/"
    xmlns:netutil="http://ggf.org/ns/nmwg/characteristic/utilization/2.0/"
    xmlns:xquery="http://ggf.org/ns/nmwg/tools/org/perfsonar/service/lookup/xquery/1.0/""#;

fn each(check: impl Fn(&mut Service)) {
    for layout in Layout::ALL {
        check(&mut Service::new(layout));
    }
}

fn message(kind: &str, content: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
        <SOAP-ENV:Envelope xmlns:SOAP-ENV="http://schemas.xmlsoap.org/soap/envelope/">
        <SOAP-ENV:Header/><SOAP-ENV:Body>
        <nmwg:message type="LS{kind}Request" id="msg1" {NAMESPACES}>{content}</nmwg:message>
        </SOAP-ENV:Body></SOAP-ENV:Envelope>"#
    )
}

fn subject(point: &str) -> String {
    format!(
        r#"<perfsonar:subject id="s"><psservice:service id="p">
        <psservice:serviceName>My_test_MA</psservice:serviceName>
        <psservice:accessPoint>{point}</psservice:accessPoint>
        <psservice:serviceType>MA</psservice:serviceType>
        <psservice:serviceDescription>This &amp; that</psservice:serviceDescription>
        </psservice:service></perfsonar:subject>"#
    )
}

fn key_of(key: &str) -> String {
    format!(
        r#"<nmwg:key><nmwg:parameters id="k"><nmwg:parameter name="lsKey">{key}</nmwg:parameter>
        </nmwg:parameters></nmwg:key>"#
    )
}

fn block(number: usize) -> String {
    format!(
        r#"<nmwg:metadata id="meta{number}"><netutil:subject id="subj"><nmwgt:interface>
        <nmwgt:hostName>localhost</nmwgt:hostName><nmwgt:ifName>eth{number}</nmwgt:ifName>
        <nmwgt:ifAddress type="ipv4">10.0.{}.{}</nmwgt:ifAddress>
        <nmwgt:direction>in</nmwgt:direction><nmwgt:capacity>10000000000</nmwgt:capacity>
        </nmwgt:interface></netutil:subject></nmwg:metadata>"#,
        number >> 8,
        number & 255
    )
}

fn blocks(numbers: std::ops::Range<usize>) -> String {
    numbers.map(block).collect()
}

fn with(metadata: &str, data: &str) -> String {
    format!(
        r#"<nmwg:metadata id="m">{metadata}</nmwg:metadata>
        <nmwg:data id="d" metadataIdRef="m">{data}</nmwg:data>"#
    )
}

fn register(service: &mut Service, point: &str, numbers: std::ops::Range<usize>) -> String {
    let reply = service.message(&message(
        "Register",
        &with(&subject(point), &blocks(numbers)),
    ));
    assert!(reply.contains("success.ls.register"), "{reply}");
    let key = reply.split("name=\"lsKey\">").nth(1).unwrap();
    key.split('<').next().unwrap().to_owned()
}

fn asked(xquery: &str) -> String {
    format!(
        r#"<xquery:subject id="s">{}</xquery:subject>
        <nmwg:eventType>http://ggf.org/ns/nmwg/tools/org/perfsonar/service/lookup/xquery/1.0</nmwg:eventType>
        <xquery:parameters id="p"><nmwg:parameter name="lsOutput">native</nmwg:parameter></xquery:parameters>"#,
        xquery.replace('"', "&quot;")
    )
}

fn query(service: &mut Service, xquery: &str) -> String {
    service.message(&message("Query", &with(&asked(xquery), "")))
}

fn data(service: &mut Service, key: &str) -> String {
    let path = r#"/nmwg:store[@type="LSStore"]/nmwg:data[@metadataIdRef="KEY"]"#;
    query(service, &path.replace("KEY", key))
}

fn addresses(service: &Service, address: &str) -> usize {
    service.query(&[("interface-addresses", address)]).len()
}

#[test]
fn a_service_is_registered_queried_and_removed() {
    each(|service| {
        let key = register(service, "http://a", 0..3);
        assert_eq!(key.len(), 32);
        let found = data(service, &key);
        assert!(
            found.contains("success.ls.query") && found.contains("10.0.0.2"),
            "{found}"
        );
        // Results stand alone: their prefixes are declared.
        Message::parse(found.replace("Response", "Request").as_bytes()).unwrap();
        let path = r#"declare namespace nmwg="http://ggf.org/ns/nmwg/base/2.0/";
            /nmwg:store[@type="LSStore"]/nmwg:metadata[@id="KEY"]"#;
        let found = query(service, &path.replace("KEY", &key));
        assert!(found.contains("This &amp; that"), "{found}");
        let path = r#"/nmwg:store[@type="LSStore"]/nmwg:data[.//nmwgt:ifAddress="10.0.0.1"]"#;
        assert!(query(service, path).contains("eth1"));

        // A record has the same information.
        let records = service.query(&[("interface-addresses", "10.0.0.1")]);
        assert_eq!(records[0]["service-locator"][0], "http://a");
        assert_eq!(records[0]["service-description"][0], "This & that");
        assert_eq!(records[0]["interface-name"].as_array().unwrap().len(), 3);

        // The first version of the protocol used the access point as key.
        let reply = service.message(&message("Deregister", &with(&key_of("http://a"), "")));
        assert!(reply.contains("success.ls.deregister"), "{reply}");
        assert!(
            reply.contains("Removed [3] data elements and service info"),
            "{reply}"
        );
        assert_eq!(addresses(service, "10.0.0.1"), 0);
        assert!(data(service, &key).contains("error.ls.query.empty_results"));
        let reply = service.message(&message("Deregister", &with(&key_of(&key), "")));
        assert!(
            reply.contains("error.ls.deregister.key_not_found"),
            "{reply}"
        );
    });
}

#[test]
fn a_key_adds_and_a_key_with_a_subject_replaces() {
    each(|service| {
        let key = register(service, "http://a", 0..2);
        let add = with(&key_of(&key), &blocks(1..4));
        let reply = service.message(&message("Register", &add));
        assert!(
            reply.contains("[3] Data elements have been updated"),
            "{reply}"
        );
        assert_eq!(data(service, &key).matches("<nmwgt:ifName>").count(), 4);
        // Without a key, the same service is identified by its access point.
        assert_eq!(register(service, "http://a", 0..5), key);
        assert_eq!(data(service, &key).matches("<nmwgt:ifName>").count(), 5);

        let replace = with(
            &format!("{}{}", key_of(&key), subject("http://b")),
            &blocks(7..8),
        );
        let reply = service.message(&message("Register", &replace));
        assert!(reply.contains(&key), "{reply}");
        assert_eq!(data(service, &key).matches("<nmwgt:ifName>").count(), 1);
        assert_eq!(
            (
                addresses(service, "10.0.0.0"),
                addresses(service, "10.0.0.7")
            ),
            (0, 1)
        );

        let some = blocks(7..8)
            .replace("id=\"meta7\"", "id='other'")
            .replace("><", ">\n <");
        let reply = service.message(&message("Deregister", &with(&key_of(&key), &some)));
        assert!(
            reply.contains("Removed [1] data elements for key"),
            "{reply}"
        );
        assert_eq!(addresses(service, "10.0.0.7"), 0);
        assert_eq!(service.query(&[("service-locator", "http://b")]).len(), 1);
        service.sweep();
        assert_eq!(service.query(&[("service-locator", "http://b")]).len(), 1);

        for (kind, metadata) in [("Register", "none"), ("Keepalive", &"0".repeat(32))] {
            let reply = service.message(&message(kind, &with(&key_of(metadata), &block(1))));
            assert!(reply.contains("key_not_found"), "{reply}");
        }
    });
}

#[test]
fn keys_are_given_and_kept_alive() {
    each(|service| {
        let ask = message("Key", &with(&subject("http://a"), ""));
        assert!(
            service
                .message(&ask)
                .contains("error.ls.key.not_registered")
        );
        let key = register(service, "http://a", 0..1);
        assert!(service.message(&ask).contains(&key));
        service.now += limits::DEFAULT_LEASE_S - 1;
        let other = register(service, "http://b", 0..1);
        let keepalive = message(
            "Keepalive",
            &format!(
                r#"<nmwg:metadata id="a">{}</nmwg:metadata><nmwg:data id="1" metadataIdRef="a"/>
                <nmwg:metadata id="b">{}</nmwg:metadata><nmwg:data id="2" metadataIdRef="b"/>"#,
                key_of(&key),
                key_of(&other)
            ),
        );
        let reply = service.message(&keepalive);
        assert_eq!(reply.matches("success.ls.keepalive").count(), 2, "{reply}");
        service.now += 1;
        assert!(data(service, &key).contains("10.0.0.0"));
        service.now += limits::DEFAULT_LEASE_S + limits::RENEWABLE_S;
        let reply = service.message(&message("Keepalive", &with(&key_of(&key), "")));
        assert!(reply.contains("error.ls."), "{reply}");
        assert!(data(service, &key).contains("empty_results"));
        service.sweep();
        assert!(service.rows() <= 1);
    });
}

#[test]
fn leases_come_in_seconds() {
    let mut service = Service::new(Layout::Indexed);
    for (asked, granted) in [
        ("300", 300),
        ("-5", 7200),
        ("99999999999999999999", 7200),
        ("x", 7200),
    ] {
        let ttl = format!(
            r#"<nmwg:parameters id="p"><nmwg:parameter name="lsTTL">{asked}</nmwg:parameter></nmwg:parameters>"#
        );
        let content = format!("{ttl}{}", with(&subject(asked), &block(1)));
        service.message(&message("Register", &content));
        let found = service.query(&[("service-locator", asked)]);
        assert_eq!(found[0]["ttl"][0], format!("PT{granted}S"));
    }
}

/// In the form of perfSONAR's client, which sends nothing else if this fails.
#[test]
fn a_service_that_is_there_says_so() {
    let echo = r#"<nmwg:message type="EchoRequest" id="message.7" xmlns:nmwg="http://ggf.org/ns/nmwg/base/2.0/">
        <nmwg:metadata id="metadata.8">
        <nmwg:eventType>http://schemas.perfsonar.net/tools/admin/echo/2.0</nmwg:eventType>
        </nmwg:metadata><nmwg:data id="data.9" metadataIdRef="metadata.8"/></nmwg:message>"#;
    let reply = Service::new(Layout::Indexed).message(echo);
    assert!(reply.contains(r#"type="EchoResponse""#), "{reply}");
    assert!(
        reply.contains("success.echo") && !reply.contains("success.ls"),
        "{reply}"
    );
    let service = &mut Service::new(Layout::Indexed);
    let wrong = message("Echo", &with("", ""));
    assert!(xml::Message::parse(wrong.as_bytes()).is_err());
    let key = register(service, "http://a", 0..1);
    let asked = service.message(&message("Key", &with(&subject("http://a"), "")));
    let data = asked.split("<nmwg:data ").nth(1).unwrap();
    assert!(data.contains(&format!("name=\"lsKey\">{key}<")), "{asked}");
}

#[test]
fn what_a_message_asks_wrongly_is_told_in_the_answer() {
    each(|service| {
        let mut check = |kind: &str, content: &str, event: &str| {
            let reply = service.message(&message(kind, content));
            assert!(reply.contains(event), "{kind} {content}: {reply}");
        };
        check("Register", "", "error.ls.register.data_trigger_missing");
        check(
            "Register",
            &with("", &block(1)),
            "error.ls.register.missing_value",
        );
        let pointless = subject("").replace("psservice:accessPoint", "psservice:nothing");
        check(
            "Register",
            &with(&pointless, ""),
            "error.ls.register.missing_value",
        );
        let lost =
            with(&subject("http://a"), "").replace("metadataIdRef=\"m\"", "metadataIdRef=\"x\"");
        check("Register", &lost, "error.ls.data_trigger");
        check(
            "Deregister",
            &with("", ""),
            "error.ls.deregister.key_not_found",
        );
        check("Key", &with("", ""), "error.ls.key.service_missing");
        check("Query", &with("", ""), "error.ls.query.query_not_found");
        let twice = with(&subject("http://a"), "")
            + &with(&subject("http://a"), "").replace("\"m\"", "\"n\"");
        check("Register", &twice, "error.ls.messages");
        let reply = query(service, "for $x in collection() return $x");
        assert!(reply.contains("error.ls.query.not_supported"), "{reply}");
    });
}

#[test]
fn foreign_services_are_left_alone() {
    each(|service| {
        service.who = Registrant::User("ann".into());
        let key = register(service, "http://a", 0..1);
        service.who = Registrant::Anybody;
        for (kind, data) in [
            ("Register", blocks(1..2)),
            ("Deregister", String::new()),
            ("Keepalive", String::new()),
        ] {
            let reply = service.message(&message(kind, &with(&key_of(&key), &data)));
            assert!(reply.contains("somebody else"), "{reply}");
        }
        service.who = Registrant::User("ann".into());
        let reply = service.message(&message("Deregister", &with(&key_of(&key), "")));
        assert!(reply.contains("success.ls.deregister"), "{reply}");
    });
}

#[test]
fn ten_thousand_interfaces_in_one_message() {
    let mut service = Service::new(Layout::Indexed);
    let key = register(&mut service, "http://a", 0..10_000);
    assert_eq!(addresses(&service, "10.0.39.15"), 1);
    assert_eq!(
        data(&mut service, &key).matches("<nmwgt:ifName>").count(),
        10_000
    );
}

#[track_caller]
fn refused(body: &[u8]) -> XmlError {
    let error = Message::parse(body).expect_err("a refusal");
    let fault = String::from_utf8(xml::fault(&error)).unwrap();
    assert!(fault.contains("SOAP-ENV:Client"), "{fault}");
    error
}

#[test]
fn entity_bombs_and_foreign_entities_are_refused() {
    let whole = message("Register", &with(&subject("http://a"), &block(1)));
    let (head, rest) = whole.split_once("?>").unwrap();
    for doctype in [
        "<!DOCTYPE x [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;\">]>",
        "<!DOCTYPE x SYSTEM \"file:///etc/passwd\">",
        "<!DOCTYPE x [<!ENTITY % p SYSTEM \"http://127.0.0.1:1/\"> %p;]>",
    ] {
        let body = format!("{head}?>{doctype}{rest}");
        assert_eq!(refused(body.as_bytes()), XmlError::DocType);
    }
    let body = whole.replace("&amp;", "&lol;");
    let error = service_error(&body);
    assert!(error.contains("lol"), "{error}");
    // In an attribute, too.
    let body = whole.replace("id=\"msg1\"", "id=\"&lol;\"");
    refused(body.as_bytes());
}

fn service_error(body: &str) -> String {
    refused(body.as_bytes()).to_string()
}

#[test]
fn what_is_no_message_is_refused() {
    let whole = message("Register", &with(&subject("http://a"), &block(1)));
    for cut in 0..whole.len() - 1 {
        if whole.is_char_boundary(cut) {
            refused(&whole.as_bytes()[..cut]);
        }
    }
    assert_eq!(refused(&[0xFF, 0xFE, 0x3C]), XmlError::Encoding);
    let deep = with(
        &subject("x"),
        &format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000)),
    );
    assert_eq!(
        refused(message("Register", &deep).as_bytes()),
        XmlError::Depth
    );
    let wide: String = (0..100_000).map(|n| format!(" a{n}=''")).collect();
    let wide = with(&subject("x"), &format!("<a{wide}/>"));
    assert_eq!(
        refused(message("Register", &wide).as_bytes()),
        XmlError::Attributes
    );
    for body in [
        "",
        "{}",
        "<a/>",
        "<SOAP-ENV:Envelope/>",
        "<E:Envelope xmlns:E='http://schemas.xmlsoap.org/soap/envelope/'/>",
        "<E:Envelope xmlns:E='http://schemas.xmlsoap.org/soap/envelope/'><E:Body/></E:Envelope>",
        "<message xmlns='http://ggf.org/ns/nmwg/base/2.0/' type='Other'/>",
        "<message xmlns='http://ggf.org/ns/nmwg/base/2.0/' type='LSKeyRequest'/> <more/>",
        "<message type='LSKeyRequest'/>",
        "<a:b xmlns:a='x' a:c='1' a:c='2'/>",
    ] {
        refused(body.as_bytes());
    }
    let many = with(&subject("x"), "").repeat(TRIGGERS + 1);
    refused(message("Register", &many).as_bytes());
}

#[test]
fn the_queries_of_a_message_share_the_bounds_of_one() {
    each(|service| {
        let key = register(service, "http://large", 0..3000);
        let path = r#"/nmwg:store[@type="LSStore"]/nmwg:data[@metadataIdRef="KEY"]"#;
        let metadata = asked(&path.replace("KEY", &key));
        let metadata = format!(r#"<nmwg:metadata id="m">{metadata}</nmwg:metadata>"#);
        let trigger = r#"<nmwg:data id="d" metadataIdRef="m"></nmwg:data>"#;
        let once = message("Query", &(metadata.clone() + trigger));
        let often = message("Query", &(metadata + &trigger.repeat(TRIGGERS)));

        let (one, all) = (service.message(&once), service.message(&often));
        assert!(one.len() > limits::LARGE_BYTES);
        let found = all.matches("success.ls.query").count();
        let refused = all.matches("error.ls.query.too_large").count();
        assert_eq!(found, limits::RESULT_BYTES / one.len(), "{}", one.len());
        assert_eq!(found + refused, TRIGGERS);
        assert!(all.len() < limits::RESULT_BYTES + (1 << 20));

        // Work for the background pool doesn't start in the foreground.
        let quick = |text: &str| {
            let message = Message::parse(text.as_bytes()).unwrap();
            let decided = service.read(|context| xml::decide(context, &message, ScanBudget::QUICK));
            decided.map(drop).map_err(|error| error.reason())
        };
        assert_eq!(quick(&once), Err(Some(Reason::TooWide)));
        let none = once.replace(&key, &"0".repeat(32));
        assert_eq!(quick(&none), Ok(()));
    });
}
