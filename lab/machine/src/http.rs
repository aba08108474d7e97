//! A blocking HTTP/1.1 client for the few requests that a trial makes beside its load: readiness,
//! accounts and filling, a node_exporter. It knows no schedule. The bytes of an answer are read by the
//! users' reader, so that chunks, lengths, and kept connections mean here what they mean there.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_client::http::{Complete, KeptBody, ResponseReader, Terms};
use lab_client::{BaseUrl, Tls, tls};
use lab_host::clock::Stopwatch;
use rustls::{ClientConnection, StreamOwned};

/// Longest wait for a whole answer of one who is at work.
pub const ANSWER: Duration = Duration::from_secs(60);
/// Between two looks at the interrupt.
const LOOK: Duration = Duration::from_millis(100);
/// Largest head.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Largest answer; a thousand users take some 100 KB.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// What is read at once.
const PIECE_BYTES: usize = 64 << 10;

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body, without the coding that it came in.
    pub body: Vec<u8>,
}

/// A request with a body, or none.
#[derive(Debug)]
pub struct Ask<'a> {
    /// Such as `GET`.
    pub method: &'a str,
    /// With its query.
    pub path: &'a str,
    /// Beside `Host` and `Content-Length`.
    pub headers: &'a [(String, String)],
    /// Empty = none.
    pub body: &'a [u8],
    /// Longest wait for a connection, and for a whole answer.
    pub within: Duration,
}

impl<'a> Ask<'a> {
    /// A GET without anything else to say.
    #[must_use]
    pub fn get(path: &'a str, within: Duration) -> Self {
        Self {
            method: "GET",
            path,
            headers: &[],
            body: &[],
            within,
        }
    }
}

/// One server, and the connection to it while it is kept.
#[derive(Debug)]
pub struct Client {
    server: BaseUrl,
    address: SocketAddr,
    tls: Tls,
    connection: Option<Connection>,
}

#[derive(Debug)]
enum Connection {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Client {
    /// Connects to nothing yet.
    #[must_use]
    pub fn new(server: BaseUrl, address: SocketAddr, tls: Tls) -> Self {
        Self {
            server,
            address,
            tls,
            connection: None,
        }
    }

    /// Sends and awaits the whole answer; gives up when `interrupt` becomes true. The connection is
    /// kept for the next request where the server keeps it.
    ///
    /// # Errors
    /// When there is no whole answer in time, or none that is HTTP.
    pub fn exchange(&mut self, ask: &Ask<'_>, interrupt: &AtomicBool) -> io::Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect(ask.within)?,
        };
        connection.socket().set_write_timeout(Some(ask.within))?;
        connection.write_all(&self.message(ask))?;
        connection.flush()?;
        let (answer, reusable) = read(&mut connection, ask, interrupt)?;
        if reusable {
            self.connection = Some(connection);
        }
        Ok(answer)
    }

    fn connect(&self, within: Duration) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&self.address, within)?;
        stream.set_nodelay(true)?;
        if !self.server.secure {
            stream.set_read_timeout(Some(LOOK))?;
            return Ok(Connection::Plain(stream));
        }
        let config = self.tls.config().map_err(io::Error::other)?;
        let name = self.tls.name_of(&self.server).map_err(io::Error::other)?;
        let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(session, stream);
        // A handshake can't be taken up again after a look at the interrupt.
        stream.sock.set_read_timeout(Some(within))?;
        while stream.conn.is_handshaking() {
            let done = stream.conn.complete_io(&mut stream.sock);
            done.map_err(|error| io::Error::new(error.kind(), tls::in_words(&error)))?;
        }
        stream.sock.set_read_timeout(Some(LOOK))?;
        Ok(Connection::Tls(Box::new(stream)))
    }

    fn message(&self, ask: &Ask<'_>) -> Vec<u8> {
        let host = self.server.authority();
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {host}\r\n", ask.method, ask.path);
        for (name, value) in ask.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !ask.body.is_empty() || !matches!(ask.method, "GET" | "HEAD" | "DELETE") {
            head.push_str(&format!("Content-Length: {}\r\n", ask.body.len()));
        }
        head.push_str("\r\n");
        [head.as_bytes(), ask.body].concat()
    }
}

impl Connection {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &stream.sock,
        }
    }
}

impl Read for Connection {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(piece),
            Self::Tls(stream) => stream.read(piece),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// Reads one answer; whether the connection may be used again.
fn read(
    stream: &mut impl Read,
    ask: &Ask<'_>,
    interrupt: &AtomicBool,
) -> io::Result<(Answer, bool)> {
    let mut reader = ResponseReader::new(Terms {
        head_request: ask.method == "HEAD",
        max_header_bytes: MAX_HEAD_BYTES,
        max_body_bytes: MAX_ANSWER_BYTES as u64,
    });
    let began = Stopwatch::start();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let complete = match stream.read(&mut piece) {
            Ok(0) => Some(reader.end().ok_or_else(cut_off)?),
            Ok(length) => reader
                .feed(&piece[..length], |_| MAX_ANSWER_BYTES, &mut |_, _| {})
                .map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault.to_string()))?,
            Err(e) if is_timeout(&e) => None,
            // TLS without a farewell ends as TCP does.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                Some(reader.end().ok_or_else(cut_off)?)
            }
            Err(e) => return Err(e),
        };
        if let Some(complete) = complete {
            return Ok(answer(&complete, &piece, &reader));
        }
        if interrupt.load(Ordering::Relaxed) || began.elapsed() > ask.within {
            let message = format!("no whole answer within {:?}", ask.within);
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
    }
}

fn answer(complete: &Complete, piece: &[u8], reader: &ResponseReader) -> (Answer, bool) {
    let body = match &complete.body {
        KeptBody::Input(range) => &piece[range.clone()],
        KeptBody::Kept => reader.kept(),
    };
    let answer = Answer {
        status: complete.status,
        body: body.to_vec(),
    };
    (answer, complete.reusable)
}

fn cut_off() -> io::Error {
    let what = "the answer is cut off or not HTTP";
    io::Error::new(io::ErrorKind::UnexpectedEof, what)
}

/// A read that found nothing yet; which of the two depends on the system.
fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::local;

    #[track_caller]
    fn check(text: &str, expected: Option<(u16, &str, bool)>) {
        let never = AtomicBool::new(false);
        let ask = Ask::get("/", ANSWER);
        let found = read(&mut text.as_bytes(), &ask, &never).ok();
        let expected = expected.map(|(status, body, reusable)| {
            let body = body.as_bytes().to_vec();
            (Answer { status, body }, reusable)
        });
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn answers_end_where_they_say() {
        let whole = "HTTP/1.1 201 Created\r\nContent-Length: 4\r\nX: y\r\n\r\nbody";
        check(whole, Some((201, "body", true)));
        for cut in 0..whole.len() {
            check(&whole[..cut], None);
        }
        check("SSH-2.0-x\r\n\r\n", None);
        let open = "HTTP/1.0 200 OK\r\n\r\nrest";
        check(open, Some((200, "rest", false)));
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n";
        check(chunked, Some((200, "body", true)));
        let closed = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        check(closed, Some((200, "", false)));
    }

    #[test]
    fn a_connection_that_the_server_keeps_is_used_again() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // One connection is accepted, and no other.
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            drop(listener);
            let mut piece = [0; 1024];
            for _ in 0..3 {
                let length = stream.read(&mut piece).unwrap();
                assert!(piece[..length].ends_with(b"\r\n\r\n"));
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                stream.write_all(answer).unwrap();
            }
        });
        let mut client = Client::new(local(address, false), address, Tls::default());
        let never = AtomicBool::new(false);
        for _ in 0..3 {
            let answer = client.exchange(&Ask::get("/", ANSWER), &never).unwrap();
            assert_eq!(answer.body, b"ok");
        }
        server.join().unwrap();
    }
}
