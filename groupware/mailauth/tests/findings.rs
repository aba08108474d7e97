//! Checks of messages with a name server on this machine.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use groupware_mailauth::{MailAuth, QUESTIONS, Transport, body_hashes};
use groupware_proto_mime::{Finding, Findings, Origin, Outcome};
use mail_auth::common::crypto::Ed25519Key;
use mail_auth::common::headers::HeaderWriter;
use mail_auth::dkim::DkimSigner;
use plimsoll_tests::dns::{NameServer, Record};

/// Addresses from which example.org sends and doesn't send.
const THEIRS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const ANOTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 66);

const MESSAGE: &str = "From: Ann <ann@example.org>\r\nTo: bob@here.example\r\nSubject: Hello\r\n\
    \r\nThe text.\r\n";

/// Starts a name server with example.org and a key of it.
fn world() -> (NameServer, Ed25519Key) {
    let server = NameServer::start();
    let key = Ed25519Key::from_pkcs8_der(&Ed25519Key::generate_pkcs8().unwrap()).unwrap();
    let text = |name: &str, text: String| server.add(name, Record::Text(text));
    text("example.org", format!("v=spf1 ip4:{THEIRS} -all"));
    text("_dmarc.example.org", "v=DMARC1; p=reject".to_owned());
    let public = STANDARD.encode(key.public_key());
    text(
        "key._domainkey.example.org",
        format!("v=DKIM1; k=ed25519; p={public}"),
    );
    text("quiet.example", "v=spf1 ?all".to_owned());
    server.add("slow.example", Record::Silence);
    server.add("_dmarc.slow.example", Record::Silence);
    (server, key)
}

fn signed(key: Ed25519Key, message: &str) -> String {
    signed_by("example.org", key, message)
}

fn signed_by(domain: &str, key: Ed25519Key, message: &str) -> String {
    let signer = DkimSigner::from_key(key).domain(domain).selector("key");
    let signature = signer
        .headers(["From", "To", "Subject"])
        .sign(message.as_bytes());
    signature.unwrap().to_header() + message
}

/// Checks a message with this sender and from this address.
fn found(server: &NameServer, client: Ipv4Addr, sender: &str, message: &str) -> Findings {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let auth = MailAuth::new("here.example", &[server.address()]).unwrap();
        let came = Transport {
            client: IpAddr::from(client),
            helo: "mail.example.org",
            sender,
        };
        let hashes = body_hashes(message.as_bytes());
        let auth = auth.within(Duration::from_secs(60));
        auth.findings(came, message.as_bytes(), &hashes).await
    })
}

#[test]
fn a_signature_confirms_a_message_wherever_it_comes_from() {
    let (server, key) = world();
    let message = signed(key, MESSAGE);
    let findings = found(&server, ANOTHER, "list@quiet.example", &message);
    assert_eq!(
        findings,
        Findings {
            spf: Finding::new(Outcome::Neutral, "quiet.example"),
            dkim: vec![Finding::new(Outcome::Pass, "example.org")],
            dmarc: Finding::new(Outcome::Pass, "example.org"),
        }
    );
    assert_eq!(
        findings.origin(),
        Some(Origin::Signed("example.org".into()))
    );
}

#[test]
fn a_text_that_was_changed_is_not_what_was_signed() {
    let (server, key) = world();
    let message = signed(key, MESSAGE).replace("The text", "Another text");
    let findings = found(&server, ANOTHER, "ann@example.org", &message);
    assert_eq!(findings.spf.outcome, Outcome::Fail);
    assert_eq!(
        findings.dkim,
        [Finding::new(Outcome::Neutral, "example.org")]
    );
    assert_eq!(
        findings.origin(),
        Some(Origin::Contradicted("example.org".into()))
    );
}

#[test]
fn the_address_that_a_message_comes_from_confirms_it() {
    let (server, _) = world();
    let findings = found(&server, THEIRS, "ann@example.org", MESSAGE);
    assert_eq!(findings.origin(), Some(Origin::Sent("example.org".into())));
    let elsewhere = found(&server, ANOTHER, "ann@example.org", MESSAGE);
    assert_eq!(
        elsewhere.origin(),
        Some(Origin::Contradicted("example.org".into()))
    );
    // The client's address confirms the domain of the envelope's sender, and no other.
    let other = MESSAGE.replace("ann@example.org", "ann@quiet.example");
    let other = found(&server, THEIRS, "ann@example.org", &other);
    assert_eq!(
        other.origin(),
        Some(Origin::Unconfirmed("quiet.example".into()))
    );
}

#[test]
fn who_is_not_answered_holds_nothing_against_a_message() {
    let (server, key) = world();
    let slow = MESSAGE.replace("ann@example.org", "ann@slow.example");
    let findings = found(&server, THEIRS, "ann@slow.example", &slow);
    assert_eq!(
        findings.origin(),
        Some(Origin::Unknown("slow.example".into()))
    );
    // A key that can't be queried may be valid.
    let message = signed(key, MESSAGE).replace("s=key", "s=gone");
    server.add("gone._domainkey.example.org", Record::Silence);
    let findings = found(&server, ANOTHER, "ann@quiet.example", &message);
    assert_eq!(
        findings.dkim,
        [Finding::new(Outcome::TempError, "example.org")]
    );
    assert_eq!(
        findings.origin(),
        Some(Origin::Unknown("example.org".into()))
    );
}

#[test]
fn several_authors_are_confirmed_by_nobody() {
    let (server, _) = world();
    let two = MESSAGE.replace("<ann@example.org>", "<ann@quiet.example>, ann@example.org");
    let findings = found(&server, THEIRS, "ann@example.org", &two);
    assert_eq!(
        findings.origin(),
        Some(Origin::Unknown("quiet.example".into()))
    );
}

#[test]
fn of_very_many_signatures_a_few_are_looked_at() {
    let (server, key) = world();
    let genuine = signed(key, MESSAGE);
    let signature = genuine.strip_suffix(MESSAGE).unwrap();
    let forged: String = (0..300)
        .map(|number| signature.replace("s=key", &format!("s=key{number}")))
        .collect();
    let findings = found(&server, THEIRS, "ann@example.org", &(forged + MESSAGE));
    assert!(findings.dkim.len() <= 5, "{}", findings.dkim.len());
    assert!(server.asked() < 40, "{}", server.asked());
}

/// Adds a domain whose mail may come from a hundred hosts without addresses.
fn add_a_hundred_hosts(server: &NameServer, domain: &str) {
    let terms: Vec<_> = (0..10).map(|term| format!("mx:{term}.{domain}")).collect();
    let policy = format!("v=spf1 {} -all", terms.join(" "));
    server.add(domain, Record::Text(policy));
    for term in 0..10 {
        for host in 0..10 {
            let host = Record::Mail(format!("{host}.{term}.{domain}"));
            server.add(&format!("{term}.{domain}"), host);
        }
    }
}

#[test]
fn who_needs_very_many_questions_is_not_confirmed_by_addresses() {
    let (server, _) = world();
    add_a_hundred_hosts(&server, "many.example");
    let message = MESSAGE.replace("ann@example.org", "ann@many.example");
    let findings = found(&server, ANOTHER, "ann@many.example", &message);
    assert_eq!(
        findings.spf,
        Finding::new(Outcome::PermError, "many.example")
    );
    let asked = server.asked();
    assert!((20..QUESTIONS as usize).contains(&asked), "{asked}");
}

/// Makes each method send as many queries as it can.
#[test]
fn a_message_has_so_many_questions_and_no_more() {
    let (server, _) = world();
    add_a_hundred_hosts(&server, "many.example");
    let deep = |name: &str| format!("a.b.c.d.e.f.{name}.example");
    let mut message = MESSAGE.replace("ann@example.org", &format!("ann@{}", deep("from")));
    for name in ["one", "two", "three", "four", "five", "six"] {
        let key = Ed25519Key::from_pkcs8_der(&Ed25519Key::generate_pkcs8().unwrap()).unwrap();
        let public = STANDARD.encode(key.public_key());
        server.add(
            &format!("key._domainkey.{}", deep(name)),
            Record::Text(format!("v=DKIM1; k=ed25519; p={public}")),
        );
        message = signed_by(&deep(name), key, &message);
    }
    let policy = "v=DMARC1; p=reject".to_owned();
    server.add(&format!("_dmarc.{}", deep("from")), Record::Text(policy));
    let findings = found(&server, ANOTHER, "ann@many.example", &message);
    let passed = findings.dkim.iter().map(|it| it.outcome);
    assert_eq!(passed.collect::<Vec<_>>(), [Outcome::Pass; 5]);
    assert_eq!(findings.spf.outcome, Outcome::PermError);
    // An unchecked domain of the signatures might have been aligned with this one.
    assert_eq!(findings.dmarc.outcome, Outcome::PermError);
    let asked = server.asked();
    assert!((50..=QUESTIONS as usize).contains(&asked), "{asked}");
}

#[test]
fn what_is_no_message_is_told_as_nothing() {
    let (server, _) = world();
    for message in [
        "",
        "no head",
        "\r\n",
        "From:\r\n\r\n",
        "From: a\r\nFrom: b@\r\n\r\n",
    ] {
        let findings = found(&server, THEIRS, "", message);
        assert_eq!(findings.dmarc.domain, "", "{message}");
        assert_eq!(findings.origin(), None);
    }
}
