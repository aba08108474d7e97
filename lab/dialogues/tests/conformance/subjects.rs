//! The clients, each with a server that implements as much of its protocol as the tests need.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::TcpStream;

use lab_workload::{
    Call, Capture, CaptureSource, Descriptors, JsonPath, ProtocolRequest, Request, SignIn, Speech,
    Template, Way, Workload,
};
use protox::Compiler;
use protox::file::{File, FileResolver};

use super::{Act, Subject, request};
use crate::time::tokios::TokioTime;
use lab_client::dialogue::DialogueClient;
use lab_client::http::HttpClient;
use lab_client::{Protocol, Server};
use lab_dialogues::{Grpc, Imap, Postgres, Redis, Smtp};

/// Reads up to `end`; false if the connection ends before any data.
fn hear_until(stream: &mut TcpStream, end: &[u8]) -> io::Result<bool> {
    let mut heard = Vec::new();
    let mut byte = [0];
    while !heard.ends_with(end) {
        if stream.read(&mut byte)? == 0 {
            return Ok(false);
        }
        heard.push(byte[0]);
    }
    Ok(true)
}

/// HTTP/1.1.
pub(super) struct Web;

impl Subject for Web {
    type Client = HttpClient<TokioTime>;

    fn request() -> (Request, Speech) {
        let get = Request {
            target: Template::literal("/"),
            ..request()
        };
        (get, Speech::Http)
    }

    fn client(workload: &Workload, server: Server, time: TokioTime) -> Self::Client {
        HttpClient::new(workload, server, time)
    }

    fn greet(_: &mut TcpStream) -> io::Result<()> {
        Ok(())
    }

    fn hear(stream: &mut TcpStream) -> io::Result<bool> {
        hear_until(stream, b"\r\n\r\n")
    }

    fn act(stream: &mut TcpStream, act: Act) -> io::Result<()> {
        stream.write_all(match act {
            Act::Answer => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            Act::Refuse => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            Act::Garbage => b"SSH-2.0\r\n\r\n",
            Act::Half => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe",
            Act::Silence => b"",
        })
    }
}

/// Redis, with a signed-in user.
pub(super) struct RedisLike;

impl Subject for RedisLike {
    type Client = DialogueClient<Redis, TokioTime>;

    fn request() -> (Request, Speech) {
        let words = ["GET", "k"].map(Template::literal);
        let get = Request {
            said: Some(Box::new(ProtocolRequest::Words(words.into()))),
            ..request()
        };
        let sign_in = SignIn {
            username: None,
            password: Some(Template::literal("secret")),
            database: Some(Template::literal("3")),
        };
        (get, Speech::Redis(sign_in))
    }

    fn client(workload: &Workload, server: Server, time: TokioTime) -> Self::Client {
        DialogueClient::new(workload, Redis::new(workload), server, time)
    }

    fn greet(stream: &mut TcpStream) -> io::Result<()> {
        hear_until(
            stream,
            b"AUTH\r\n$6\r\nsecret\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n",
        )?;
        stream.write_all(b"+OK\r\n+OK\r\n")
    }

    fn hear(stream: &mut TcpStream) -> io::Result<bool> {
        hear_until(stream, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
    }

    fn act(stream: &mut TcpStream, act: Act) -> io::Result<()> {
        stream.write_all(match act {
            Act::Answer => b"$5\r\nhello\r\n",
            Act::Refuse => b"-ERR no\r\n",
            Act::Garbage => b"SSH-2.0\r\n",
            Act::Half => b"$5\r\nhe",
            Act::Silence => b"",
        })
    }
}

/// SMTP, with a signed-in user.
pub(super) struct MailServer;

impl Subject for MailServer {
    type Client = DialogueClient<Smtp, TokioTime>;

    fn request() -> (Request, Speech) {
        let [from, to, text] = ["a@example.org", "b@example.org", "Hi"].map(Template::literal);
        let mail = ProtocolRequest::Mail {
            from,
            to: vec![to],
            text,
        };
        let mail = Request {
            said: Some(Box::new(mail)),
            ..request()
        };
        let sign_in = SignIn {
            username: Some(Template::literal("u")),
            password: Some(Template::literal("p")),
            database: None,
        };
        let speech = Speech::Smtp {
            sign_in,
            starttls: false,
        };
        (mail, speech)
    }

    fn client(workload: &Workload, server: Server, time: TokioTime) -> Self::Client {
        DialogueClient::new(workload, Smtp::new(workload), server, time)
    }

    fn greet(stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(b"220 ready\r\n")?;
        hear_until(stream, b"EHLO [127.0.0.1]\r\n")?;
        stream.write_all(b"250-mail\r\n250 AUTH PLAIN\r\n")?;
        hear_until(stream, b"AUTH PLAIN AHUAcA==\r\n")?;
        stream.write_all(b"235 welcome\r\n")
    }

    fn hear(stream: &mut TcpStream) -> io::Result<bool> {
        if !hear_until(stream, b"MAIL FROM:<a@example.org>\r\n")? {
            return Ok(false);
        }
        stream.write_all(b"250 yes\r\n")?;
        hear_until(stream, b"RCPT TO:<b@example.org>\r\n")?;
        stream.write_all(b"250 yes\r\n")?;
        hear_until(stream, b"DATA\r\n")?;
        stream.write_all(b"354 go on\r\n")?;
        hear_until(stream, b"\r\n.\r\n")
    }

    fn act(stream: &mut TcpStream, act: Act) -> io::Result<()> {
        stream.write_all(match act {
            Act::Answer => b"250 hello\r\n",
            Act::Refuse => b"550 no\r\n",
            Act::Garbage => b"SSH-2.0\r\n",
            Act::Half => b"250-he",
            Act::Silence => b"",
        })
    }
}

/// Returns a request with a JSON response, of which this is kept.
fn keeping(path: &str) -> Request {
    let kept = Capture {
        variable: "kept".to_owned(),
        slot: 0,
        source: CaptureSource::JsonPath(Box::new(JsonPath::parse(path).expect("a path"))),
    };
    Request {
        captures: vec![kept],
        ..request()
    }
}

/// Returns a sign-in with a name and a password.
fn somebody() -> SignIn {
    SignIn {
        username: Some(Template::literal("u")),
        password: Some(Template::literal("p")),
        database: None,
    }
}

/// IMAP, with a signed-in user.
pub(super) struct MailReader;

impl Subject for MailReader {
    type Client = DialogueClient<Imap, TokioTime>;

    fn request() -> (Request, Speech) {
        let line = ProtocolRequest::Line {
            line: Template::literal("FETCH 1 BODY[]"),
            text: None,
        };
        let fetch = Request {
            said: Some(Box::new(line)),
            ..keeping("$.fetch[0]['body[]']")
        };
        let speech = Speech::Imap {
            sign_in: somebody(),
            starttls: false,
        };
        (fetch, speech)
    }

    fn client(workload: &Workload, server: Server, time: TokioTime) -> Self::Client {
        DialogueClient::new(workload, Imap::new(workload), server, time)
    }

    fn greet(stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(b"* OK ready\r\n")?;
        hear_until(stream, b"a LOGIN \"u\" \"p\"\r\n")?;
        stream.write_all(b"* CAPABILITY IMAP4rev1\r\na OK welcome\r\n")
    }

    fn hear(stream: &mut TcpStream) -> io::Result<bool> {
        hear_until(stream, b"a FETCH 1 BODY[]\r\n")
    }

    fn act(stream: &mut TcpStream, act: Act) -> io::Result<()> {
        stream.write_all(match act {
            Act::Answer => b"* 1 FETCH (BODY[] {5}\r\nhello)\r\na OK done\r\n",
            Act::Refuse => b"a NO no\r\n",
            Act::Garbage => b"SSH-2.0\r\n",
            Act::Half => b"* 1 FETCH (BODY[] {5}\r\nhe",
            Act::Silence => b"",
        })
    }
}

/// PostgreSQL, with a signed-in user.
pub(super) struct Database;

/// A message: its kind, its length, its content.
fn message(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32 + 4).to_be_bytes();
    [&[kind], &length[..], content].concat()
}

/// Reads a message, with or without a kind before its length.
fn hear_message(stream: &mut TcpStream, has_kind: bool) -> io::Result<Option<u8>> {
    let mut kind = [0];
    if has_kind && stream.read(&mut kind)? == 0 {
        return Ok(None);
    }
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut content = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut content)?;
    Ok(Some(kind[0]))
}

impl Subject for Database {
    type Client = DialogueClient<Postgres, TokioTime>;

    fn request() -> (Request, Speech) {
        let statement = ProtocolRequest::Statement {
            sql: Template::literal("SELECT $1 AS greeting"),
            values: vec![Template::literal("hello")],
            way: Way::Prepared,
        };
        let select = Request {
            said: Some(Box::new(statement)),
            ..keeping("$.rows[0].greeting")
        };
        let speech = Speech::Postgres {
            sign_in: somebody(),
            starttls: false,
        };
        (select, speech)
    }

    fn client(workload: &Workload, server: Server, time: TokioTime) -> Self::Client {
        DialogueClient::new(workload, Postgres::new(workload), server, time)
    }

    fn greet(stream: &mut TcpStream) -> io::Result<()> {
        hear_message(stream, false)?;
        stream.write_all(&message(b'R', &3_u32.to_be_bytes()))?;
        assert_eq!(hear_message(stream, true)?, Some(b'p'));
        stream.write_all(&message(b'R', &0_u32.to_be_bytes()))?;
        stream.write_all(&message(b'Z', b"I"))
    }

    fn hear(stream: &mut TcpStream) -> io::Result<bool> {
        loop {
            match hear_message(stream, true)? {
                None => return Ok(false),
                Some(b'S') => return Ok(true),
                Some(_) => {}
            }
        }
    }

    fn act(stream: &mut TcpStream, act: Act) -> io::Result<()> {
        let column = [&b"\0\x01greeting\0"[..], &[0; 9], &[25], &[0; 8]].concat();
        let row = message(b'D', b"\0\x01\0\0\0\x05hello");
        let head = [
            message(b'1', b""),
            message(b'2', b""),
            message(b'T', &column),
        ]
        .concat();
        let ready = message(b'Z', b"I");
        stream.write_all(&match act {
            Act::Answer => [head, row, message(b'C', b"SELECT 1\0"), ready].concat(),
            Act::Refuse => [message(b'E', b"SERROR\0C42601\0Mno\0\0"), ready].concat(),
            Act::Garbage => b"SSH-2.0\r\n".to_vec(),
            Act::Half => [&head[..], &row[..9]].concat(),
            Act::Silence => Vec::new(),
        })
    }
}

/// gRPC.
pub(super) struct Calls;

/// A source of one file.
struct Greeter;

impl FileResolver for Greeter {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let text = "syntax = \"proto3\"; message Note { string text = 1; }
                    service Greeter { rpc Say(Note) returns (Note); }";
        File::from_source(name, text)
    }
}

thread_local! {
    /// The stream of the call that a server received.
    static STREAM: Cell<u32> = const { Cell::new(0) };
}

/// Kinds of frames, and the flags that end a stream and a head (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    let stream = stream.to_be_bytes();
    [&length[1..], &[kind, flags], &stream, content].concat()
}

/// Reads a frame: its kind, its flags, its stream.
fn hear_frame(stream: &mut TcpStream) -> io::Result<Option<(u8, u8, u32)>> {
    let mut head = [0; 9];
    if stream.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut head[1..])?;
    let [_, a, b, kind, flags, stream_id @ ..] = head;
    let mut content = vec![0; usize::from(a) << 8 | usize::from(b)];
    stream.read_exact(&mut content)?;
    Ok(Some((kind, flags, u32::from_be_bytes(stream_id))))
}

/// Encodes a header in HPACK without indexing (RFC 7541, section 6.2.2).
fn header(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![0];
    for text in [name, value] {
        out.push(text.len() as u8);
        out.extend_from_slice(text.as_bytes());
    }
    out
}

impl Subject for Calls {
    type Client = DialogueClient<Grpc, TokioTime>;

    fn request() -> (Request, Speech) {
        let call = Call {
            messages: vec![Template::literal(r#"{"text": "hi"}"#)],
            ..Call::of("Greeter/Say")
        };
        let say = Request {
            said: Some(Box::new(ProtocolRequest::Call(call))),
            expect: vec![0..=0],
            ..keeping("$.text")
        };
        let mut compiler = Compiler::with_file_resolver(Greeter);
        compiler.open_file("greeter.proto").expect("it compiles");
        let set = compiler.encode_file_descriptor_set();
        let speech = Speech::Grpc {
            descriptors: Descriptors::parse(&set).expect("descriptors"),
            metadata: Vec::new(),
        };
        (say, speech)
    }

    fn client(workload: &Workload, server: Server, time: TokioTime) -> Self::Client {
        let grpc = Grpc::new(workload, &server.base);
        DialogueClient::new(workload, grpc, server, time)
    }

    fn greet(stream: &mut TcpStream) -> io::Result<()> {
        hear_until(stream, b"SM\r\n\r\n")?;
        stream.write_all(&frame(SETTINGS, 0, 0, b""))?;
        // Until the client acknowledges the settings.
        while hear_frame(stream)?.is_some_and(|frame| frame != (SETTINGS, 1, 0)) {}
        Ok(())
    }

    fn hear(stream: &mut TcpStream) -> io::Result<bool> {
        loop {
            match hear_frame(stream)? {
                None => return Ok(false),
                Some((DATA, flags, call)) if flags & END_STREAM != 0 => {
                    STREAM.set(call);
                    return Ok(true);
                }
                Some(_) => {}
            }
        }
    }

    fn act(stream: &mut TcpStream, act: Act) -> io::Result<()> {
        let call = STREAM.get();
        let head = [&[0x88][..], &header("content-type", "application/grpc")].concat();
        let begun = frame(HEADERS, END_HEADERS, call, &head);
        let note = b"\0\0\0\0\x07\x0a\x05hello";
        let last = END_HEADERS | END_STREAM;
        stream.write_all(&match act {
            Act::Answer => {
                let end = frame(HEADERS, last, call, &header("grpc-status", "0"));
                [begun, frame(DATA, 0, call, note), end].concat()
            }
            Act::Refuse => {
                let refused = [head, header("grpc-status", "5")].concat();
                frame(HEADERS, last, call, &refused)
            }
            Act::Garbage => b"SSH-2.0\r\n".to_vec(),
            Act::Half => [begun, frame(DATA, 0, call, &note[..9])].concat(),
            Act::Silence => Vec::new(),
        })
    }
}

/// Calls of users who share connections.
pub(super) struct SharedCalls;

impl Subject for SharedCalls {
    type Client = DialogueClient<Grpc, TokioTime>;

    fn request() -> (Request, Speech) {
        Calls::request()
    }

    fn client(workload: &Workload, server: Server, time: TokioTime) -> Self::Client {
        let protocol = Protocol {
            shared: Some(1),
            ..server.protocol
        };
        Calls::client(workload, Server { protocol, ..server }, time)
    }

    fn greet(stream: &mut TcpStream) -> io::Result<()> {
        Calls::greet(stream)
    }

    fn hear(stream: &mut TcpStream) -> io::Result<bool> {
        Calls::hear(stream)
    }

    fn act(stream: &mut TcpStream, act: Act) -> io::Result<()> {
        Calls::act(stream, act)
    }
}
