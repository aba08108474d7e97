//! The clients that there are, each with a server that knows as much of its protocol as the tests need.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use lab_workload::{Request, Said, SignIn, Speech, Template, Workload};

use super::{Act, Subject, request};
use crate::dialogue::{DialogueClient, Redis, Smtp};
use crate::http::HttpClient;
use crate::server::Server;
use crate::time::tokios::TokioTime;

/// Reads until `end` comes; false where the connection ends before anything.
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

/// Redis, with somebody who signs in.
pub(super) struct RedisLike;

impl Subject for RedisLike {
    type Client = DialogueClient<Redis, TokioTime>;

    fn request() -> (Request, Speech) {
        let words = ["GET", "k"].map(Template::literal);
        let get = Request {
            said: Some(Box::new(Said::Words(words.into()))),
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

/// SMTP, with somebody who signs in.
pub(super) struct MailServer;

impl Subject for MailServer {
    type Client = DialogueClient<Smtp, TokioTime>;

    fn request() -> (Request, Speech) {
        let [from, to, text] = ["a@example.org", "b@example.org", "Hi"].map(Template::literal);
        let mail = Said::Mail {
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
