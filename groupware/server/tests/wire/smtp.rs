//! Dialogues over SMTP, line by line.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use groupware_server::{Config, Server};
use insta::assert_snapshot;

use crate::support::{basic, certified, config, connect, register, send};
use crate::transcript::starred;

/// The longest line of a client that is shown.
const SHOWN_BYTES: usize = 200;

struct Post {
    server: Server,
    passwords: Vec<String>,
}

impl Post {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// A server with the users `ann` and `bob`.
    fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config();
        config.smtp_listen = Some(([127, 0, 0, 1], 0).into());
        config.submission_listen = Some(([127, 0, 0, 1], 0).into());
        change(&mut config);
        let server = Server::start(config).unwrap();
        let passwords = register(&server, &["ann", "bob"]);
        Self { server, passwords }
    }

    fn receiver(&self) -> Dialogue<TcpStream> {
        Dialogue::new(self.server.smtp_address().unwrap())
    }

    fn submission(&self) -> Dialogue<TcpStream> {
        Dialogue::new(self.server.submission_address().unwrap())
    }

    /// Returns ann's credentials.
    fn proof(&self) -> String {
        STANDARD.encode(format!("\0ann\0{}", self.passwords[0]))
    }

    /// Returns the newest message of a folder as stored.
    fn newest(&self, user: usize, folder: &str) -> String {
        let name = ["ann", "bob"][user];
        let auth = basic(name, &self.passwords[user]);
        let get = |path: &str| {
            let headers = [("authorization", auth.as_str())];
            send(self.server.address(), "GET", path, &headers, b"")
        };
        let list = get(&format!("/mail/{name}/api/mail/{folder}")).json();
        let path = list[0]["href"].as_str().unwrap().to_owned();
        let kept = get(&format!("{path}?format=mime&markread=false"));
        String::from_utf8(kept.body).unwrap().replace('\r', "")
    }
}

struct Dialogue<S> {
    stream: BufReader<S>,
    said: String,
}

impl Dialogue<TcpStream> {
    fn new(address: SocketAddr) -> Self {
        let mut dialogue = Self::on(connect(address));
        dialogue.hear();
        dialogue
    }
}

impl<S: Read + Write> Dialogue<S> {
    fn on(stream: S) -> Self {
        Self {
            stream: BufReader::new(stream),
            said: String::new(),
        }
    }

    /// Records one reply, or the end of the connection.
    fn hear(&mut self) {
        loop {
            let mut line = String::new();
            let read = self.stream.read_line(&mut line);
            if let Err(error) = &read {
                let silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                assert!(!silent, "no answer came after\n{}", self.said);
            }
            if read.unwrap_or(0) == 0 {
                self.said += "(the connection ends)\n";
                return;
            }
            assert!(line.ends_with("\r\n"), "{line:?}");
            self.said += &format!("S: {}\n", line.trim_end());
            if line.as_bytes().get(3) != Some(&b'-') {
                return;
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        // The server may close the connection before all of it is sent.
        let _ = self.stream.get_mut().write_all(bytes);
    }

    fn note(&mut self, lines: &str) {
        for line in lines.lines() {
            match line.len() > SHOWN_BYTES {
                true => self.said += &format!("C: {}… ({} bytes)\n", &line[..20], line.len()),
                false => self.said += &format!("C: {line}\n"),
            }
        }
    }

    /// Sends lines with one reply each.
    fn say(&mut self, lines: &[&str]) -> &mut Self {
        for line in lines {
            self.note(line);
            self.write(format!("{line}\r\n").as_bytes());
            self.hear();
        }
        self
    }

    /// The same for a line with a secret, which is masked.
    fn say_secretly(&mut self, before: &str, secret: &str) -> &mut Self {
        self.said += &format!("C: {before}****\n");
        self.write(format!("{before}{secret}\r\n").as_bytes());
        self.hear();
        self
    }

    /// Sends bytes with this number of replies.
    fn send(&mut self, bytes: &[u8], replies: usize) -> &mut Self {
        let text = String::from_utf8_lossy(bytes);
        self.said += &match bytes.len() > SHOWN_BYTES {
            true => format!("C: ({} bytes)\n", bytes.len()),
            false => format!("C: {text:?}\n"),
        };
        self.write(bytes);
        for _ in 0..replies {
            self.hear();
        }
        self
    }

    /// Starts a message to a recipient.
    fn begin(&mut self, to: &str) -> &mut Self {
        self.say(&[
            "MAIL FROM:<x@example.com>",
            &format!("RCPT TO:<{to}>"),
            "DATA",
        ])
    }

    fn take(&mut self) -> String {
        starred(&std::mem::take(&mut self.said))
    }
}

#[test]
fn greetings() {
    let post = Post::new();
    let lines = [
        "NOOP",
        "HELO there",
        "EHLO there",
        "EHLO [127.0.0.1]",
        "NOOP x",
        "VRFY ann",
        "EXPN all",
        "HELP",
        "TURN",
        "LHLO there",
        "EHLO",
        "HELO",
        "",
        "FROB",
        "NOOP \u{1b}[2J",
        "STARTTLS",
        "AUTH PLAIN AGEAYg==",
        "BDAT 5 LAST",
        "RSET",
        "QUIT",
    ];
    let mut receiver = post.receiver();
    receiver.say(&lines).hear();
    assert_snapshot!("greetings_to_the_receiver", receiver.take());
    let mut submission = post.submission();
    submission
        .say(&["HELO there", "EHLO there", "STARTTLS", "QUIT"])
        .hear();
    assert_snapshot!("greetings_to_the_submission", submission.take());
}

#[test]
fn a_delivery() {
    let post = Post::new();
    let mut client = post.receiver();
    client.say(&[
        "EHLO there",
        "MAIL FROM:<x@example.com> SIZE=100 BODY=8BITMIME",
        "RCPT TO:<ann@localhost>",
        "DATA",
        "From: x@example.com\r\nBcc: bob@localhost\r\nSubject: Hi\r\n\r\n..dots\r\n.",
    ]);
    let one = post.newest(0, "inbox");
    client.say(&[
        "MAIL FROM:<>",
        "RCPT TO:<Ann@LocalHost>",
        "RCPT TO:<bob@localhost>",
        "DATA",
        "Subject: Report\r\n\r\n.",
        "HELO there",
        "MAIL FROM:<x@example.com>",
        "RCPT TO:<bob@localhost>",
        "DATA",
        "Subject: Plain\r\n\r\n.",
        "QUIT",
    ]);
    let rest = [one, post.newest(0, "inbox"), post.newest(1, "inbox")];
    assert_snapshot!(format!(
        "{}\n{}",
        client.take(),
        starred(&rest.join("\n---\n"))
    ));
}

#[test]
fn recipients_that_are_refused() {
    let post = Post::new();
    let mut client = post.receiver();
    client.say(&["EHLO there", "MAIL FROM:<ann@localhost>"]);
    for to in [
        "eve@localhost",
        "eve@example.com",
        "ann",
        "",
        "ann@localhost@example.com",
        "ann%example.com@localhost",
        "@example.com:ann",
        "\"ann@localhost\"@example.com",
        "ann@localhost..",
    ] {
        client.say(&[&format!("RCPT TO:<{to}>")]);
    }
    client.say(&["RCPT TO:ann@localhost", "RCPT ann", "DATA", "QUIT"]);
    assert_snapshot!(client.take());
}

#[test]
fn several_commands_at_once() {
    let post = Post::new();
    let mut client = post.receiver();
    client.send(
        b"EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<nobody@localhost>\r\nRCPT TO:<ann@localhost>\r\nDATA\r\n",
        5,
    );
    client.send(
        b"Subject: 1\r\n\r\n.\r\nMAIL FROM:<a@b>\r\nRCPT TO:<ann@localhost>\r\nRSET\r\nNOOP\r\nQUIT\r\n",
        7,
    );
    assert_snapshot!(client.take());
}

#[test]
fn commands_out_of_their_order() {
    let post = Post::new();
    let mut client = post.receiver();
    client.say(&[
        "MAIL FROM:<a@b>",
        "RCPT TO:<ann@localhost>",
        "DATA",
        "EHLO there",
        "RCPT TO:<ann@localhost>",
        "DATA",
        "MAIL FROM:<a@b>",
        "MAIL FROM:<a@b>",
        "DATA",
        "RCPT TO:<ann@localhost>",
        "EHLO there",
        "DATA",
        "MAIL FROM:<a@b>",
        "RCPT TO:<ann@localhost>",
        "RSET",
        "DATA",
        "MAIL FROM a",
        "MAIL FROM:<a@b> FROB=1",
        "MAIL FROM:<a@b> SIZE=x",
        "MAIL FROM:<a@b> BODY=BINARYMIME",
        "MAIL FROM:<a@b> REQUIRETLS",
        "MAIL FROM:<a@b> REQUIRETLS",
    ]);
    assert_snapshot!(client.take());
}

#[test]
fn messages_that_are_refused() {
    let post = Post::with(|config| config.mail_quota_bytes = Some(1 << 20));
    let mut client = post.receiver();
    client.say(&["EHLO there", "MAIL FROM:<a@b> SIZE=99999999"]);
    let line = "x".repeat(998) + "\r\n";
    for (what, text) in [
        ("a head that is too large", "X: y\r\n".repeat(3000)),
        (
            "a long line",
            "X: y\r\n\r\n".to_owned() + &"x".repeat(20_000) + "\r\n",
        ),
        ("a circle", "Received: x\r\n".repeat(101)),
        (
            "a mailbox that has room",
            "\r\n".to_owned() + &line.repeat(700),
        ),
        (
            "a mailbox that has none",
            "\r\n".to_owned() + &line.repeat(700),
        ),
        (
            "a message that is too large",
            line.repeat((17 << 20) / line.len()),
        ),
    ] {
        client.said += &format!("# {what}\n");
        client
            .begin("ann@localhost")
            .send((text + ".\r\n").as_bytes(), 1);
    }
    client.said += "# a line that ends with LF alone\n";
    client
        .begin("ann@localhost")
        .send(b"Subject: 1\r\n\r\na\n.\r\n.\r\n", 3);
    assert_snapshot!(client.take());
}

#[test]
fn signing_in() {
    let post = Post::with(|config| config.limits.sign_in_failures = 2);
    let wrong = STANDARD.encode("\0ann\0wrong");
    let mut client = post.submission();
    client.say(&[
        "AUTH PLAIN AGEAYg==",
        "EHLO there",
        "MAIL FROM:<ann@localhost>",
        "AUTH CRAM-MD5",
        "AUTH PLAIN !!!!",
        "AUTH PLAIN",
        "*",
        "AUTH LOGIN",
        "*",
        "AUTH PLAIN =",
        "AUTH PLAIN QQ==",
        &format!("AUTH PLAIN {wrong}"),
        "AUTH LOGIN",
        &STANDARD.encode("ann"),
        &STANDARD.encode("wrong"),
        &format!("AUTH PLAIN {wrong}"),
        "AUTH LOGIN",
        &STANDARD.encode("ann"),
    ]);
    // Application passwords can't be guessed, and are not throttled.
    client.say_secretly("", &STANDARD.encode(&post.passwords[0]));
    client.say_secretly("AUTH PLAIN ", &post.proof());
    assert_snapshot!(client.take());
}

#[test]
fn mail_of_users() {
    let post = Post::new();
    let mut client = post.submission();
    client
        .say(&["EHLO there"])
        .say_secretly("AUTH PLAIN ", &post.proof());
    client.say(&[
        "MAIL FROM:<bob@localhost>",
        "MAIL FROM:<x@example.com>",
        "MAIL FROM:<>",
        "RSET",
    ]);
    for text in [
        "From: bob@localhost\r\n\r\n.",
        "From: ann@localhost\r\nSender: bob@localhost\r\n\r\n.",
        "Bcc: bob@localhost\r\nSubject: Hello\r\n\r\nhi\r\n.",
    ] {
        client.say(&[
            "MAIL FROM:<ann@localhost>",
            "RCPT TO:<bob@localhost>",
            "DATA",
            text,
        ]);
    }
    client.say(&[
        "MAIL FROM:<ann@localhost>",
        "RCPT TO:<eve@example.com>",
        "QUIT",
    ]);
    let kept = [post.newest(0, "sent"), post.newest(1, "inbox")];
    assert_snapshot!(format!(
        "{}\n{}",
        client.take(),
        starred(&kept.join("\n---\n"))
    ));
}

#[test]
fn limits() {
    let post = Post::with(|config| config.smtp_limits.connections_per_client = 2);
    let mut client = post.receiver();
    client.said += "# recipients\n";
    client.say(&["EHLO there", "MAIL FROM:<a@b>"]);
    for _ in 0..200 {
        client.write(b"RCPT TO:<ann@localhost>\r\n");
        let mut line = String::new();
        client.stream.read_line(&mut line).unwrap();
        assert!(line.starts_with("250"), "{line}");
    }
    client.say(&["RCPT TO:<ann@localhost>"]);
    client.said += "# connections\n";
    let second = post.receiver();
    let mut third = post.receiver();
    third.hear();
    client.said += &third.take();
    drop(second);
    client.said += "# a long line\n";
    client.send(&[b'x'; 30_000], 2);
    let mut text = client.take();
    drop((client, third));
    let post = Post::new();
    let mut client = post.receiver();
    client.said += "# a line that ends with LF alone\n";
    client.send(b"EHLO x\nNOOP\r\n", 2);
    text += &client.take();
    let mut client = post.receiver();
    client.said += "# errors\n";
    client.say(&["FROB"; 21]).hear();
    client.hear();
    text += &client.take();
    assert_snapshot!(text);
}

#[test]
fn what_may_work_later() {
    let post = Post::with(|config| {
        config.smtp_limits.messages_per_minute = 0;
        config.smtp_limits.limits_this_machine = true;
    });
    let mut client = post.receiver();
    client.say(&["EHLO there", "MAIL FROM:<a@b>"]);
    let mut text = format!("# messages of a minute\n{}", client.take());
    let post = Post::with(|config| config.smtp_limits.memory_bytes = 0);
    let mut client = post.receiver();
    client.say(&["EHLO there"]).begin("ann@localhost");
    client.send(b"Subject: 1\r\n\r\n.\r\n", 1);
    text += &format!("# no memory\n{}", client.take());
    let post = Post::with(|config| {
        config.smtp_limits.command_timeout = Duration::from_millis(50);
        config.smtp_limits.data_timeout = Duration::from_millis(50);
    });
    let mut client = post.receiver();
    client.hear();
    client.hear();
    text += &format!("# nothing comes\n{}", client.take());
    let post = Post::new();
    let mut client = post.receiver();
    client.say(&["EHLO there"]);
    post.server.shutdown();
    client.hear();
    client.hear();
    text += &format!("# the server stops\n{}", client.take());
    assert_snapshot!(text);
}

#[test]
fn over_tls() {
    let certified = certified();
    let mut config = config();
    config.tls = Some(certified.files());
    config.smtp_listen = Some(([127, 0, 0, 1], 0).into());
    // Passwords need TLS where others could listen.
    config.submission_listen = Some(([0, 0, 0, 0], 0).into());
    let server = Server::start(config).unwrap();
    let port = server.submission_address().unwrap().port();
    let submission = SocketAddr::from(([127, 0, 0, 1], port));
    let mut text = String::new();
    for (name, address) in [
        ("receiver", server.smtp_address().unwrap()),
        ("submission", submission),
    ] {
        let mut client = Dialogue::new(address);
        client.said = format!("# {name}\n{}", client.said);
        client.say(&["EHLO there", "AUTH PLAIN AGEAYg==", "STARTTLS"]);
        text += &client.take();
        let stream = rustls::StreamOwned::new(certified.session(), client.stream.into_inner());
        let mut client = Dialogue::on(stream);
        client.say(&["MAIL FROM:<a@b>", "EHLO there", "STARTTLS", "QUIT"]);
        text += &format!("(TLS begins)\n{}", client.take());
    }
    let mut client = Dialogue::new(submission);
    client.say(&["EHLO there"]);
    client.send(b"STARTTLS\r\nAUTH PLAIN AGFubgB3cm9uZw==\r\n", 3);
    text += &format!("# what comes before the handshake\n{}", client.take());
    assert_snapshot!(text);
}
