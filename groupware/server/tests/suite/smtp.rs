//! Mail over SMTP: permissions of senders, and the treatment of clients that break the protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use groupware_server::{Config, Server};
use plimsoll_tests::dns::{NameServer, Record};
use serde_json::Value;

struct World {
    server: Server,
    passwords: Vec<String>,
}

const NAMES: [&str; 2] = ["ann", "bob"];

fn world_with(change: impl FnOnce(&mut Config)) -> World {
    let mut config = config();
    config.smtp_listen = Some(([127, 0, 0, 1], 0).into());
    config.submission_listen = Some(([127, 0, 0, 1], 0).into());
    change(&mut config);
    let server = Server::start(config).unwrap();
    let passwords = register(&server, &NAMES);
    World { server, passwords }
}

fn world() -> World {
    world_with(|_| {})
}

impl World {
    fn get(&self, user: usize, rest: &str) -> Reply {
        let auth = basic(NAMES[user], &self.passwords[user]);
        let path = match rest.starts_with("/mail/") {
            true => rest.to_owned(),
            false => format!("/mail/{}/api/mail{rest}", NAMES[user]),
        };
        let headers = [("authorization", auth.as_str())];
        let reply = send(self.server.address(), "GET", &path, &headers, b"");
        assert_eq!(reply.status, 200, "{reply:?}");
        reply
    }

    fn inbox(&self, user: usize) -> Vec<Value> {
        self.get(user, "/inbox").json().as_array().unwrap().clone()
    }

    /// The bytes of the newest message of an inbox.
    fn newest(&self, user: usize) -> String {
        let path = self.inbox(user)[0]["href"].as_str().unwrap().to_owned();
        String::from_utf8(self.get(user, &format!("{path}?format=mime")).body).unwrap()
    }

    fn receiver(&self) -> Client {
        Client::new(connect(self.server.smtp_address().unwrap()))
    }

    fn submission(&self) -> Client {
        Client::new(connect(self.server.submission_address().unwrap()))
    }

    fn plain(&self, user: usize) -> String {
        let text = format!("\0{}\0{}", NAMES[user], self.passwords[user]);
        format!("AUTH PLAIN {}", STANDARD.encode(text))
    }
}

struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn new(stream: TcpStream) -> Self {
        let mut client = Self {
            stream: BufReader::new(stream),
        };
        assert!(client.reply().starts_with("220 "));
        client
    }

    fn reply(&mut self) -> String {
        let mut reply = String::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            reply += &line;
            if line.len() < 4 || line.as_bytes()[3] != b'-' {
                return reply;
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    fn say(&mut self, line: &str) -> String {
        self.write(format!("{line}\r\n").as_bytes());
        self.reply()
    }

    #[track_caller]
    fn expect(&mut self, line: &str, code: &str) -> String {
        let reply = self.say(line);
        assert!(reply.starts_with(code), "{line}: {reply}");
        reply
    }

    fn begin(&mut self, from: &str, to: &str) {
        self.expect("EHLO test", "250");
        self.expect(&format!("MAIL FROM:<{from}>"), "250");
        self.expect(&format!("RCPT TO:<{to}>"), "250");
        self.expect("DATA", "354");
    }

    fn is_over(&mut self) -> bool {
        self.stream.read(&mut [0]).map_or(true, |bytes| bytes == 0)
    }
}

const TEXT: &str = "From: x@example.com\r\nSubject: Hi\r\n\r\n..dots\r\n.";

#[test]
fn mail_for_local_users_comes_in_with_its_trace() {
    let world = world();
    let mut client = world.receiver();
    let offer = client.expect("EHLO there", "250");
    for extension in [
        "PIPELINING",
        "8BITMIME",
        "SIZE 16773120",
        "ENHANCEDSTATUSCODES",
    ] {
        assert!(offer.contains(extension), "{offer}");
    }
    assert!(
        !offer.contains("AUTH") && !offer.contains("STARTTLS"),
        "{offer}"
    );
    client.begin("x@example.com", "ann@localhost");
    client.expect(TEXT, "250");
    let message = world.newest(0);
    let lines: Vec<_> = message.lines().collect();
    assert_eq!(lines[0], "Return-Path: <x@example.com>");
    assert_eq!(lines[1], "Received: from test ([127.0.0.1])");
    assert!(
        lines[2].starts_with("\tby localhost with ESMTP id "),
        "{message}"
    );
    assert_eq!(lines[3], "\tfor <ann@localhost>;");
    assert!(
        message.ends_with("From: x@example.com\r\nSubject: Hi\r\n\r\n.dots\r\n"),
        "{message}"
    );
    // To several: no recipient sees the others, and Bcc is removed.
    client.expect("MAIL FROM:<>", "250");
    client.expect("RCPT TO:<Ann@LocalHost>", "250");
    client.expect("RCPT TO:<bob@localhost>", "250");
    client.expect("DATA", "354");
    client.expect("Bcc: bob@localhost\r\nSubject: Two\r\n\r\n.", "250");
    for user in [0, 1] {
        let message = world.newest(user);
        assert!(
            !message.contains("bob") && !message.contains("ann@"),
            "{message}"
        );
    }
    client.expect("QUIT", "221");
}

#[test]
fn commands_may_be_pipelined() {
    let world = world();
    let mut client = world.receiver();
    client.write(
        b"EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<nobody@localhost>\r\nRCPT TO:<ann@localhost>\r\n\
          DATA\r\n",
    );
    let codes: Vec<_> = (0..5).map(|_| client.reply()[..3].to_owned()).collect();
    assert_eq!(codes, ["250", "250", "550", "250", "354"]);
    client.write(b"Subject: 1\r\n\r\n.\r\nMAIL FROM:<a@b>\r\nRCPT TO:<ann@localhost>\r\nRSET\r\nNOOP\r\nQUIT\r\n");
    let codes: Vec<_> = (0..6).map(|_| client.reply()[..3].to_owned()).collect();
    assert_eq!(codes, ["250", "250", "250", "250", "250", "221"]);
    assert!(client.is_over());
    assert_eq!(world.inbox(0).len(), 1);
}

#[test]
fn it_is_no_open_relay() {
    let world = world();
    let foreign = [
        "eve@example.com",
        "ann@localhost@example.com",
        "ann%example.com@example.org",
        "ann@localhost.example.com",
        "\"ann@localhost\"@example.com",
    ];
    let mut client = world.receiver();
    client.expect("EHLO x", "250");
    client.expect("MAIL FROM:<ann@localhost>", "250");
    for to in foreign {
        let reply = client.say(&format!("RCPT TO:<{to}>"));
        assert!(reply.starts_with('5'), "{to}: {reply}");
    }
    for to in [
        "eve@localhost",
        "ann%example.com@localhost",
        "@example.com:ann",
    ] {
        let reply = client.say(&format!("RCPT TO:<{to}>"));
        assert!(reply.starts_with('5'), "{to}: {reply}");
    }
    client.expect("DATA", "554");
    // Neither do signed-in users.
    let mut client = world.submission();
    client.expect("EHLO x", "250");
    client.expect(&world.plain(0), "235");
    client.expect("MAIL FROM:<ann@localhost>", "250");
    client.expect("RCPT TO:<eve@example.com>", "550");
}

#[test]
fn addresses_of_all_forms_are_taken() {
    let world = world();
    let mut client = world.receiver();
    let offer = client.expect("EHLO x", "250");
    assert!(offer.contains("SMTPUTF8"), "{offer}");
    for from in [
        "bob@[192.0.2.1]",
        "bob@[IPv6:2001:db8::1]",
        "bj\u{f6}rn@k\u{f8}benhavn.example",
    ] {
        client.expect(&format!("MAIL FROM:<{from}> SMTPUTF8"), "250");
        client.expect("RSET", "250");
    }
    client.expect("MAIL FROM:<x@example.com>", "250");
    for (to, reply) in [
        ("ann+lists@localhost", "250"),
        ("ann+@localhost", "250"),
        ("ann@[127.0.0.1]", "250"),
        ("ann@[IPv6:::1]", "250"),
        ("eve+lists@localhost", "550 5.1.1"),
        ("+ann@localhost", "550 5.1.1"),
        ("ann@[192.0.2.1]", "550 5.7.1"),
        ("ann@[127.0.0]", "501"),
        // No such user is registered.
        ("postmaster", "550 5.1.1"),
    ] {
        client.expect(&format!("RCPT TO:<{to}>"), reply);
    }
    client.expect("DATA", "354");
    client.expect("Subject: to a tag\r\n\r\nhi\r\n.", "250");
    assert!(world.newest(0).contains("to a tag"));
    // Signed-in users may send reports, such as read receipts.
    let mut client = world.submission();
    client.expect("EHLO x", "250");
    client.expect(&world.plain(0), "235");
    client.expect("MAIL FROM:<>", "250");
}

#[test]
fn mail_to_the_postmaster_goes_to_whoever_manages_users() {
    let world = world();
    let made = admin(&world.server, "PUT", "/admin/users/bob/admin", Value::Null);
    assert!(made.status < 300, "{made:?}");
    let mut client = world.receiver();
    client.expect("EHLO x", "250");
    client.expect("MAIL FROM:<x@example.com>", "250");
    for to in [
        "postmaster",
        "Postmaster",
        "postmaster@localhost",
        "bob@localhost",
    ] {
        client.expect(&format!("RCPT TO:<{to}>"), "250");
    }
    client.expect("DATA", "354");
    client.expect("Subject: to the postmaster\r\n\r\nhi\r\n.", "250");
    assert_eq!((world.inbox(0).len(), world.inbox(1).len()), (0, 1));
    // A user of that name takes precedence.
    register(&world.server, &["postmaster"]);
    client.expect("MAIL FROM:<x@example.com>", "250");
    client.expect("RCPT TO:<postmaster>", "250");
    client.expect("DATA", "354");
    client.expect("Subject: to the user\r\n\r\nhi\r\n.", "250");
    assert_eq!((world.inbox(0).len(), world.inbox(1).len()), (0, 1));
}

#[test]
fn users_sign_in_to_hand_in_mail_and_write_in_their_own_name() {
    let world = world();
    let mut client = world.submission();
    let offer = client.expect("EHLO x", "250");
    assert!(offer.contains("AUTH PLAIN LOGIN"), "{offer}");
    client.expect("MAIL FROM:<ann@localhost>", "530");
    client.expect("AUTH PLAIN AGFubgB3cm9uZw==", "535");
    client.expect("AUTH CRAM-MD5", "504");
    client.expect("AUTH LOGIN", "334 VXNlcm5hbWU6");
    client.expect(&STANDARD.encode("ann"), "334 UGFzc3dvcmQ6");
    client.expect(&STANDARD.encode(&world.passwords[0]), "235");
    client.expect("MAIL FROM:<bob@localhost>", "553");
    client.expect("MAIL FROM:<x@example.com>", "553");
    let hand_in = |client: &mut Client, text: &str| {
        assert!(client.say("MAIL FROM:<ann@localhost>").starts_with("250"));
        assert!(client.say("RCPT TO:<bob@localhost>").starts_with("250"));
        assert!(client.say("DATA").starts_with("354"));
        client.say(text)
    };
    let forged = hand_in(&mut client, "From: bob@localhost\r\n\r\n.");
    assert!(forged.starts_with("550"), "{forged}");
    let taken = hand_in(
        &mut client,
        "Bcc: bob@localhost\r\nSubject: Hello\r\n\r\nhi\r\n.",
    );
    assert!(taken.starts_with("250"), "{taken}");
    let message = world.newest(1);
    assert!(message.contains("with ESMTPA"), "{message}");
    assert!(
        message.contains("From: <ann@localhost>") && message.contains("Date: "),
        "{message}"
    );
    assert!(!message.contains("Bcc"), "{message}");
    let sent = world.get(0, "/sent").json();
    assert_eq!(sent[0]["subject"], "Hello");
}

#[test]
fn guessing_passwords_is_slowed_down() {
    let world = world_with(|config| config.limits.sign_in_failures = 2);
    let guess = || {
        let mut client = world.submission();
        client.expect("EHLO x", "250");
        client.say("AUTH PLAIN AGFubgB3cm9uZw==")[..3].to_owned()
    };
    assert_eq!([guess(), guess(), guess()], ["535", "535", "454"]);
    // Application passwords can't be guessed, and are not throttled.
    let mut client = world.submission();
    client.expect("EHLO x", "250");
    client.expect(&world.plain(0), "235");
}

#[test]
fn bare_line_ends_smuggle_nothing_in() {
    let world = world();
    for end in [
        "\n.\n", "\n.\r\n", "\r.\r", "\r\n.\n", "\r\n.\r", "\r.\r\n", "\n.\r",
    ] {
        let mut client = world.receiver();
        client.begin("x@example.com", "ann@localhost");
        let smuggled = "MAIL FROM:<ann@localhost>\r\nRCPT TO:<bob@localhost>\r\nDATA\r\nBad\r\n";
        client.write(format!("Subject: 1\r\n\r\na{end}{smuggled}.\r\n").as_bytes());
        assert!(client.reply().starts_with("550"), "{end:?}");
        assert!(client.reply().starts_with("421"), "{end:?}");
        assert!(client.is_over(), "{end:?}");
    }
    let mut client = world.receiver();
    client.write(b"EHLO x\nMAIL FROM:<a@b>\n");
    assert!(client.reply().starts_with("500"));
    assert!(client.is_over());
    assert_eq!((world.inbox(0).len(), world.inbox(1).len()), (0, 0));
}

#[test]
fn what_is_too_much_is_refused() {
    let world = world_with(|config| {
        config.smtp_limits.connections_per_client = 3;
        config.mail_quota_bytes = Some(1 << 20);
    });
    let mut client = world.receiver();
    client.expect("EHLO x", "250");
    client.expect("MAIL FROM:<a@b> SIZE=99999999", "552");
    client.expect("MAIL FROM:<a@b> REQUIRETLS", "555");
    client.begin("a@b", "ann@localhost");
    let block = "x".repeat(998) + "\r\n";
    for _ in 0..(17 << 20) / block.len() {
        client.write(block.as_bytes());
    }
    assert!(client.say(".").starts_with("552"));
    client.begin("a@b", "ann@localhost");
    assert!(
        client
            .say(&("X: y\r\n".repeat(3000) + "\r\n."))
            .starts_with("552")
    );
    client.begin("a@b", "ann@localhost");
    assert!(
        client
            .say(&("\r\n".to_owned() + &"x".repeat(20_000) + "\r\n."))
            .starts_with("250")
    );
    client.begin("a@b", "ann@localhost");
    assert!(
        client
            .say(&("Received: x\r\n".repeat(101) + "\r\n."))
            .starts_with("554 5.4.6")
    );
    for expected in ["250", "452"] {
        client.begin("a@b", "ann@localhost");
        assert!(
            client
                .say(&("\r\n".to_owned() + &block.repeat(700) + "."))
                .starts_with(expected)
        );
    }
    client.expect("MAIL FROM:<a@b>", "250");
    for _ in 0..200 {
        client.expect("RCPT TO:<ann@localhost>", "250");
    }
    client.expect("RCPT TO:<ann@localhost>", "452");
    client.write(&vec![b'x'; 30_000]);
    assert!(client.reply().starts_with("500"));
    assert!(client.is_over());
    let others: Vec<_> = (0..3).map(|_| world.receiver()).collect();
    let mut one_more = BufReader::new(connect(world.server.smtp_address().unwrap()));
    let mut line = String::new();
    one_more.read_line(&mut line).unwrap();
    assert!(line.starts_with("421"), "{line}");
    drop(others);
    let mut client = world.receiver();
    for _ in 0..20 {
        client.expect("FROB", "502");
    }
    assert!(client.say("FROB").starts_with("502") && client.reply().starts_with("421"));
}

#[test]
fn a_full_mailbox_takes_nothing_from_the_other_recipients() {
    let world = world_with(|config| config.mail_quota_bytes = Some(1 << 20));
    let mut client = world.receiver();
    client.begin("a@b", "ann@localhost");
    let block = "x".repeat(998) + "\r\n";
    client.expect(&("\r\n".to_owned() + &block.repeat(700) + "."), "250");
    client.expect("MAIL FROM:<a@b> SIZE=500000", "250");
    client.expect("RCPT TO:<ann@localhost>", "452 4.2.2");
    client.expect("RCPT TO:<bob@localhost>", "250");
    client.expect("DATA", "354");
    client.expect("Subject: Hi\r\n\r\n.", "250");
    assert_eq!((world.inbox(0).len(), world.inbox(1).len()), (1, 1));
}

#[test]
fn senders_are_limited_by_the_minute() {
    let world = world_with(|config| {
        config.smtp_limits.messages_per_minute = 3;
        config.smtp_limits.limits_this_machine = true;
    });
    let mut client = world.receiver();
    client.expect("EHLO x", "250");
    // A new minute may begin meanwhile.
    let codes: Vec<_> = (0..8)
        .map(|_| {
            let code = client.say("MAIL FROM:<a@b>")[..3].to_owned();
            client.expect("RSET", "250");
            code
        })
        .collect();
    assert!(codes.iter().any(|code| code == "450"), "{codes:?}");
}

#[test]
fn who_tries_names_is_not_told_which_are_right() {
    let world = world_with(|config| config.smtp_limits.limits_this_machine = true);
    let mut answers = Vec::new();
    for connection in 0..20 {
        let mut client = world.receiver();
        client.expect("EHLO x", "250");
        client.expect("MAIL FROM:<a@b>", "250");
        for number in 0..15 {
            let wrong = client.say(&format!("RCPT TO:<n{connection}-{number}@localhost>"));
            let right = client.say("RCPT TO:<ann@localhost>");
            answers.push((wrong[..3].to_owned(), right[..3].to_owned()));
        }
    }
    let count = |wrong: &str, right: &str| {
        let alike = |(a, b): &&(String, String)| (&**a, &**b) == (wrong, right);
        answers.iter().filter(alike).count()
    };
    // Some are forgotten meanwhile, more on a slow machine.
    assert!(
        count("550", "250") >= 99 && count("450", "450") > 0,
        "{answers:?}"
    );
    assert_eq!(count("450", "550"), 0);
    let mut user = world.submission();
    user.expect("EHLO here", "250");
    user.expect(&world.plain(0), "235");
    user.begin("ann@localhost", "bob@localhost");
}

/// This machine's address may send for example.org, whose policy rejects all others.
fn name_server() -> NameServer {
    let server = NameServer::start();
    let zone = [
        ("example.org", "v=spf1 ip4:127.0.0.1 -all"),
        ("_dmarc.example.org", "v=DMARC1; p=reject"),
        ("example.com", "v=spf1 -all"),
        ("_dmarc.example.com", "v=DMARC1; p=reject"),
    ];
    for (name, text) in zone {
        server.add(name, Record::Text(text.to_owned()));
    }
    server
}

#[test]
fn of_mail_from_elsewhere_it_is_found_out_who_sent_it() {
    let resolver = name_server().address();
    let world = world_with(|config| {
        config.smtp_limits.limits_this_machine = true;
        config.mail_auth = Some(true);
        config.resolvers = vec![resolver];
    });
    let own_claim = "Authentication-Results: localhost; dmarc=pass header.from=bank.example";
    let their_claim = "Authentication-Results: there.example; spf=pass";
    let mut client = world.receiver();
    for (domain, spf, dmarc) in [
        ("example.org", "pass", "pass"),
        ("example.com", "fail", "fail"),
    ] {
        client.begin(&format!("x@{domain}"), "ann@localhost");
        let head = format!("{own_claim}\r\n{their_claim}\r\nFrom: x@{domain}");
        client.expect(&format!("{head}\r\n\r\ntext\r\n."), "250");
        let expected = format!(
            "Return-Path: <x@{domain}>\r\nAuthentication-Results: localhost;\r\n\
             \tspf={spf} smtp.mailfrom={domain};\r\n\tdmarc={dmarc} header.from={domain}\r\n\
             Received: "
        );
        let message = world.newest(0);
        assert!(message.starts_with(&expected), "{message}");
        assert!(!message.contains("bank.example") && message.contains(their_claim));
    }

    // Signed-in users can't claim it, either.
    let mut user = world.submission();
    user.expect("EHLO here", "250");
    user.expect(&world.plain(0), "235");
    user.begin("ann@localhost", "bob@localhost");
    let head = format!("{own_claim}\r\nFrom: ann@localhost");
    user.expect(&format!("{head}\r\n\r\ntext\r\n."), "250");
    let message = world.newest(1);
    assert!(!message.contains("Authentication-Results"), "{message}");
}

#[test]
fn strangers_do_not_write_as_local_users() {
    // As behind a proxy that forwards connections from a local address.
    let world = world_with(|config| config.trusted = Default::default());
    let mut client = world.receiver();
    for (head, expected) in [
        ("From: x@example.com", "250"),
        ("From: Bob <bob@localhost>", "550 5.7.1"),
        ("From: =?utf-8?q?bob?= <bob@LOCALHOST.>", "550 5.7.1"),
        ("From: x@example.com, bob@localhost", "550 5.7.1"),
        ("From: x@example.com\r\nSender: bob@localhost", "550 5.7.1"),
        ("From: x@example.com\r\nFrom: bob@localhost", "550 5.7.1"),
        ("From: nobody.is.there@localhost", "550 5.7.1"),
        ("From: \"bob@localhost\" <x@example.com>", "250"),
        ("From: team: bob@localhost;", "550 5.7.1"),
        ("From: bob@(there)localhost", "550 5.7.1"),
        (
            "Sender: bob@local(x)host\r\nFrom: x@example.com",
            "550 5.7.1",
        ),
        (
            "Sender: bob @ localhost (x)\r\nFrom: x@example.com",
            "550 5.7.1",
        ),
        ("From: <bob>", "550 5.7.1"),
        ("From: <CN=bob/O=Acme>", "550 5.7.1"),
        ("From: <bob.nsf>", "550 5.7.1"),
        ("From: x@example.com\r\nSender: <bob>", "550 5.7.1"),
        ("From: x@example.com, <bob>", "550 5.7.1"),
        ("Subject: from nobody", "250"),
    ] {
        client.begin("x@example.com", "ann@localhost");
        client.expect(&format!("{head}\r\n\r\ntext\r\n."), expected);
    }
    assert_eq!(world.inbox(0).len(), 3);
    client.expect("EHLO there", "250");
    client.expect("MAIL FROM:<bob@localhost>", "530");
    client.expect("MAIL FROM:<bob@localhost.>", "530");
    client.expect("MAIL FROM:<bob>", "501");
    client.expect("MAIL FROM:<>", "250");
}

#[test]
fn slow_clients_are_sent_away() {
    let world = world_with(|config| {
        config.smtp_limits.command_timeout = Duration::from_millis(300);
    });
    // A byte now and then doesn't reset the timeout.
    let mut client = world.receiver();
    let mut drip = client.stream.get_ref().try_clone().unwrap();
    let feeder = std::thread::spawn(move || {
        // The channel never receives: this is a wait.
        let (_never, timer) = std::sync::mpsc::sync_channel::<()>(1);
        while drip.write_all(b"N").is_ok() {
            let _ = timer.recv_timeout(Duration::from_millis(20));
        }
    });
    assert!(client.reply().starts_with("421"));
    assert!(client.is_over());
    drop(client);
    feeder.join().unwrap();
    let world = world_with(|config| {
        config.smtp_limits.data_timeout = Duration::from_millis(300);
    });
    let mut client = world.receiver();
    client.begin("a@b", "ann@localhost");
    client.write(b"Subject: never done\r\n");
    assert!(client.reply().starts_with("421"));
    assert!(client.is_over());
    assert_eq!(world.inbox(0).len(), 0);
}

#[test]
fn malformed_messages_are_kept_and_shown() {
    let world = world();
    let cases: Vec<Vec<u8>> = vec![
        b"\r\n".to_vec(),
        b"no head at all\r\n".to_vec(),
        b": no name\r\n\r\n".to_vec(),
        b"Subject: =?broken?X?=FF=?=\r\nFrom: <<>>@@,,\r\nDate: never\r\n\r\n\xFF\xFE\r\n".to_vec(),
        b"Content-Type: multipart/mixed; boundary=\"\r\n\r\n--\r\n".to_vec(),
        b"Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n--a\r\n--a--\r\n".to_vec(),
        b"Content-Type: text/plain; charset=\"no-such\"\r\n\r\n\xE9\r\n".to_vec(),
        b"Content-Transfer-Encoding: base64\r\n\r\n====\r\n".to_vec(),
        "Content-Type: message/rfc822\r\n\r\n"
            .repeat(20_000)
            .into_bytes(),
        (0..3000)
            .map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n"))
            .collect::<String>()
            .into_bytes(),
    ];
    for case in &cases {
        let mut client = world.receiver();
        client.begin("a@b", "ann@localhost");
        client.write(case);
        let reply = client.say(".");
        assert!(reply.starts_with("250"), "{reply}");
        let path = world.inbox(0)[0]["href"].as_str().unwrap().to_owned();
        assert!(world.get(0, &path).json()["content"].is_array());
        let kept = world.get(0, &format!("{path}?format=mime")).body;
        assert!(kept.ends_with(case));
    }
}

#[test]
fn passwords_go_over_tls_where_others_can_listen() {
    let certified = certified();
    let world_config = |config: &mut Config| {
        config.tls = Some(certified.files());
        config.submission_listen = Some(([0, 0, 0, 0], 0).into());
    };
    let mut config = config();
    world_config(&mut config);
    config.smtp_listen = Some(([127, 0, 0, 1], 0).into());
    let server = Server::start(config).unwrap();
    let port = server.submission_address().unwrap().port();
    let mut client = Client::new(connect(([127, 0, 0, 1], port).into()));
    let offer = client.expect("EHLO x", "250");
    assert!(
        offer.contains("STARTTLS") && !offer.contains("AUTH"),
        "{offer}"
    );
    client.expect("AUTH PLAIN AGFubgB3cm9uZw==", "538");
    client.expect("STARTTLS", "220");
    let mut stream = rustls::StreamOwned::new(certified.session(), client.stream.into_inner());
    stream.write_all(b"EHLO x\r\nSTARTTLS\r\nQUIT\r\n").unwrap();
    let mut said = String::new();
    let _ = stream.read_to_string(&mut said);
    assert!(
        said.contains("AUTH PLAIN LOGIN") && !said.contains("250-STARTTLS"),
        "{said}"
    );
    assert!(said.contains("502 ") && said.contains("221 "), "{said}");
    // Bytes before the handshake are not treated as part of the TLS stream.
    let mut client = Client::new(connect(([127, 0, 0, 1], port).into()));
    client.expect("EHLO x", "250");
    client.write(b"STARTTLS\r\nAUTH PLAIN AGFubgB3cm9uZw==\r\n");
    assert!(client.reply().starts_with("501") && client.reply().starts_with("421"));
    assert!(client.is_over());
}

#[test]
fn submission_beyond_this_machine_needs_tls() {
    let mut config = config();
    config.submission_listen = Some(([0, 0, 0, 0], 0).into());
    let error = Server::start(config).unwrap_err();
    assert!(error.is_configuration(), "{error}");
}
