//! Broken or malicious mail: it is kept byte for byte, listed, and opened as JSON and as a page, or it is refused with
//! a reason. It never makes the server fail.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_tests::server::{Client, RawAnswer, ServerProcess};
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse battery";

/// Messages with what is wrong with each; their lines end in CR LF.
fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let mut corpus: Vec<(&str, Vec<u8>)> = structures()
        .into_iter()
        .map(|(what, text)| (what, text.into_bytes()))
        .collect();
    corpus.push((
        "8-bit head",
        b"Subject: \xff\xfe gr\xfc\xdfe\r\nFrom: \"\xe9\x80\" <\xe9@x>\r\n\r\n\xe9\r\n".to_vec(),
    ));
    corpus.push((
        "NUL bytes",
        b"Subject: a\0b\r\nX-\0: \0\r\nContent-Type: text/html\r\n\r\n<p>\0</p>\0\r\n".to_vec(),
    ));
    corpus.push((
        "UTF-16 with half a letter",
        b"Content-Type: text/plain; charset=utf-16\r\n\r\n\xff\xfea\0\xd8\r\n".to_vec(),
    ));
    corpus
}

fn structures() -> Vec<(&'static str, String)> {
    let nested: String = (0..2000)
        .map(|level| {
            format!("Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n")
        })
        .collect();
    let wrapped = "Content-Type: message/rfc822\r\n\r\n".repeat(2000);
    let folded = format!(
        "X: {}\r\n",
        "y ".repeat(400).repeat(250).replace("y y y y y ", "y\r\n ")
    );
    let people: String = (0..3000)
        .map(|number| format!("u{number}@x,\r\n "))
        .collect();
    let file = "Content-Type: application/octet-stream; name=\"x\"\r\n\
                Content-Disposition: attachment; filename";
    vec![
        ("2000 multiparts in one another", format!("Subject: deep\r\n{nested}x\r\n")),
        ("2000 messages in one another", format!("Subject: deep\r\n{wrapped}x\r\n")),
        ("no boundary", "Content-Type: multipart/mixed\r\n\r\n--x\r\n\r\ny\r\n".into()),
        ("a boundary that never comes",
         "Content-Type: multipart/mixed; boundary=\"never\"\r\n\r\nbody\r\n".into()),
        ("a boundary of 70 and more",
         format!("Content-Type: multipart/mixed; boundary={0}\r\n\r\n--{0}\r\n\r\nx\r\n", "b".repeat(900))),
        ("wrong base64",
         format!("{file}=\"a.bin\"\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!=A=\u{0}\r\nQUJD*\r\n")),
        ("wrong quoted-printable",
         "Content-Transfer-Encoding: quoted-printable\r\n\r\n=ZZ=\r\n=4=\r\n=\r\n".into()),
        ("a long head", format!("Subject: long\r\n{folded}\r\nx\r\n")),
        ("a head alone", "Subject: alone\r\n".into()),
        ("a body alone", "\r\nbody\r\n".into()),
        ("no head at all", "no colon, no head\r\n".into()),
        ("two content types",
         "Content-Type: multipart/mixed; boundary=a\r\nContent-Type: text/html\r\n\
          Content-Type: ;;;=\r\n\r\n--a\r\nContent-Type: a/b/c; =; x=\"\r\n\r\n<b>\r\n--a--\r\n".into()),
        ("charsets that there are not",
         "Content-Type: multipart/alternative; boundary=a\r\n\r\n--a\r\nContent-Type: text/plain; \
          charset=\"x-klingon\"\r\n\r\nnuqneH\r\n--a\r\nContent-Type: text/html; charset=utf-7\r\n\r\n\
          +ADw-script+AD4-\r\n--a--\r\n".into()),
        ("encoded words gone wrong",
         "Subject: =?utf-8?b?!!!?= =?utf-8?q?=zz=C3?= =?nope?q?x?= =?utf-8?x?y?= =?utf-8?b?\r\n \
          =?=?utf-8?q?=?==?=\r\nFrom: =?utf-8?q?=22=3Cevil=40x=3E?= <a@x>\r\n\r\nx\r\n".into()),
        ("parameters gone wrong",
         format!("{file}*0*=utf-8''%E2%82; filename*1*=%AC.txt;\r\n filename*9=z; filename*=no'x'%FF%;\r\n \
                  name*=''; boundary*0=a\r\n\r\nx\r\n")),
        ("names of files that lead elsewhere",
         format!("Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n{file}=\"../../etc/passwd\"\r\n\r\n1\r\n\
                  --a\r\n{file}*=utf-8''%0D%0AX%3A%20y%00\r\n\r\n2\r\n--a\r\n{file}=\"../../etc/passwd\"\r\n\r\n3\r\n--a--\r\n")),
        ("HTML without end",
         format!("Content-Type: text/html\r\n\r\n{}<script>x\r\n", "<div><table><b>\r\n".repeat(2000))),
        ("3000 recipients", format!("To: {people}x@x\r\nDate: 99 Xyz 99999 99:99:99 +9999\r\n\r\nx\r\n")),
        ("fields without names", ": x\r\n:\r\n : y\r\nSubject\r\nSubject : z\r\n\r\nx\r\n".into()),
    ]
}

/// Line ends that SMTP refuses, and that HTTP accepts all the same.
const LINE_ENDS: [&[u8]; 4] = [
    b"Subject: a\nX: b\n\nc\nd\n",
    b"Subject: a\rX: b\r\rc\r",
    b"Subject: a\n\rX: b\r\n\nc\r\r\n.\r\n",
    b"Content-Type: multipart/mixed; boundary=a\n\n--a\r\n\nx\r--a\r--a--",
];

/// The fields that the server prepends: trace fields, and required fields that are missing.
const ADDED: [&[u8]; 6] = [
    b"Return-Path: ",
    b"Received: ",
    b"\t",
    b"Message-ID: ",
    b"Date: ",
    b"From: ",
];

struct World {
    server: ServerProcess,
    smtp: SocketAddr,
    _folder: tempfile::TempDir,
    client: Client,
    cookie: String,
}

impl World {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = ServerProcess::start_with(folder.path(), &["--smtp-listen", "127.0.0.1:0"]);
        let smtp = server.smtp();
        let mut admin = Client::admin(server.address()).unwrap();
        let body = json!({ "password": PASSWORD });
        let made = admin.request("PUT", "/admin/users/ada", &body).unwrap();
        assert!(matches!(made.status, 200 | 201), "{made:?}");
        let mut client = Client::user(server.address(), "ada", PASSWORD).unwrap();
        let form = format!("username=ada&password={}", PASSWORD.replace(' ', "+"));
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let answer = client
            .send("POST", "/login", &[kind], form.as_bytes())
            .unwrap();
        let cookie = answer.header("set-cookie").unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        Self {
            server,
            smtp,
            _folder: folder,
            client,
            cookie,
        }
    }

    fn post(&mut self, folder: &str, message: &[u8]) -> (u16, Option<String>) {
        let kind = ("content-type", "message/rfc822");
        let path = format!("/mail/ada/api/mail/{folder}");
        let answer = self.client.send("POST", &path, &[kind], message).unwrap();
        (answer.status, answer.header("location").map(str::to_owned))
    }

    /// Gets a path, which must be answered with 200.
    fn get(&mut self, what: &str, path: &str) -> Vec<u8> {
        self.ask(what, path).body
    }

    fn ask(&mut self, what: &str, path: &str) -> RawAnswer {
        let cookie = [("cookie", self.cookie.as_str())];
        let answer = self.client.send("GET", path, &cookie, b"").unwrap();
        assert_eq!(answer.status, 200, "{what}: {path}");
        answer
    }

    /// The stored message at this path: the same over REST and as a download from its page, and never shown as a page
    /// of this server.
    fn original(&mut self, what: &str, path: &str) -> Vec<u8> {
        let unid = name(path);
        let rest = self.ask(what, &format!("{path}?format=mime&markread=false"));
        let page = self.ask(what, &format!("/message/{unid}/source"));
        for answer in [&rest, &page] {
            let header = |name| answer.header(name).unwrap_or_default();
            assert_eq!(header("content-type"), "message/rfc822", "{what}");
            assert_eq!(header("x-content-type-options"), "nosniff", "{what}");
            let saved = header("content-disposition");
            let begin = format!("attachment; filename=\"{unid}.eml\"");
            assert!(saved.starts_with(&begin), "{what}: {saved}");
        }
        assert!(
            rest.body == page.body,
            "{what} is not the same from its page"
        );
        rest.body
    }

    fn get_json(&mut self, what: &str, path: &str) -> Value {
        serde_json::from_slice(&self.get(what, path)).unwrap_or_else(|_| panic!("{what}: {path}"))
    }

    /// Asserts that the message at this path is `message` with nothing but fields in front, and can be opened in every
    /// way; `pages` are those that show it.
    fn check(&mut self, what: &str, path: &str, message: &[u8], pages: &[String]) {
        let kept = self.original(what, path);
        assert!(kept.ends_with(message), "{what} is not kept as it was");
        let front = kept[..kept.len() - message.len()].split_inclusive(|byte| *byte == b'\n');
        for line in front {
            let is_ours = ADDED.iter().any(|begin| line.starts_with(begin));
            assert!(is_ours, "{what}: {}", line.escape_ascii());
        }
        let json = self.get_json(what, &format!("{path}?attachmentlinks=true"));
        assert_eq!(json["size"], kept.len(), "{what}");
        self.get_json(what, path);
        for part in json["content"].as_array().unwrap() {
            if let Some(file) = part["contentLocation"].as_str() {
                self.get(what, file);
            }
        }
        for page in pages {
            self.get(what, page);
        }
    }

    fn smtp(&self, message: &[u8]) -> String {
        let stream = TcpStream::connect(self.smtp).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        let mut stream = BufReader::new(stream);
        let mut say = |bytes: &[u8]| {
            stream.get_mut().write_all(bytes).unwrap();
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                if line.as_bytes().get(3) != Some(&b'-') {
                    return line;
                }
            }
        };
        say(b"");
        say(b"EHLO test\r\n");
        say(b"MAIL FROM:<x@example.com>\r\n");
        say(b"RCPT TO:<ada@localhost>\r\n");
        assert!(say(b"DATA\r\n").starts_with("354"));
        say(&[&stuffed(message), &b".\r\n"[..]].concat())
    }
}

/// Adds a dot before each dot that begins a line.
fn stuffed(message: &[u8]) -> Vec<u8> {
    let mut stuffed = Vec::new();
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            stuffed.push(b'.');
        }
        stuffed.extend_from_slice(line);
    }
    stuffed
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

#[test]
fn broken_messages_are_kept_and_can_be_opened() {
    let mut world = World::start();
    for (what, message) in corpus() {
        let (status, path) = world.post("drafts", &message);
        assert_eq!(status, 201, "{what}");
        let path = path.unwrap();
        let write = format!("/write?draft={}", name(&path));
        world.check(what, &path, &message, &[write]);

        let reply = world.smtp(&message);
        assert!(reply.starts_with("250"), "{what}: {reply}");
        let list = world.get_json(what, "/mail/ada/api/mail/inbox?count=1");
        let path = list[0]["href"].as_str().unwrap().to_owned();
        let page = format!("/message/{}", name(&path));
        let pages = [
            page.clone(),
            format!("{page}?as=text"),
            format!("{page}/source"),
            "/box/inbox".to_owned(),
            format!("/write?reply={}", name(&path)),
            format!("/write?forward={}", name(&path)),
        ];
        world.check(what, &path, &message, &pages);
    }
    let all = world.get_json("all", "/mail/ada/api/mail/inbox?count=1000");
    assert_eq!(all.as_array().unwrap().len(), corpus().len());
    for query in ["sortcolumn=subject", "sortcolumn=date", "search=x"] {
        world.get_json("all", &format!("/mail/ada/api/mail/inbox?{query}"));
    }
}

#[test]
fn strange_line_ends_are_kept_over_http_and_refused_over_smtp() {
    let mut world = World::start();
    for message in LINE_ENDS {
        let what = String::from_utf8_lossy(message).escape_debug().to_string();
        let (status, path) = world.post("drafts", message);
        assert_eq!(status, 201, "{what}");
        let path = path.unwrap();
        let write = format!("/write?draft={}", name(&path));
        world.check(&what, &path, message, &[write]);
        let reply = world.smtp(&[message, b"\r\n"].concat());
        assert!(reply.starts_with('5'), "{what}: {reply}");
    }
    let inbox = world.get_json("inbox", "/mail/ada/api/mail/inbox");
    assert_eq!(inbox.as_array().unwrap().len(), 0);
}

/// Messages over a limit are refused before they are parsed.
#[test]
fn heads_without_bound_are_refused() {
    let mut world = World::start();
    let fields = format!("{}\r\nx\r\n", "X: y\r\n".repeat(100_000));
    let long = format!("X: {}\r\n\r\nx\r\n", "y\r\n ".repeat(100_000));
    for message in [fields, long] {
        let (status, _) = world.post("drafts", message.as_bytes());
        assert_eq!(status, 413);
        let reply = world.smtp(message.as_bytes());
        assert!(reply.starts_with('5'), "{reply}");
    }
    // Still there.
    assert!(world.server.pid() > 0);
    world.get("inbox", "/mail/ada/api/mail/inbox");
}
