//! A blocking HTTP/1.1 client for the few requests that a trial sends besides its load: readiness, accounts and
//! filling, a node_exporter. It knows no schedule. The users' reader parses the responses, so that chunks, lengths, and
//! kept connections mean here what they mean there.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_client::http::{Complete, Fault, ResponseReader, StoredBody, Terms, is_idempotent};
use lab_client::{BaseUrl, Tls, tls};
use lab_host::clock::Stopwatch;
use rustls::ClientConnection;

/// Longest wait for a whole response of a busy server.
pub const ANSWER: Duration = Duration::from_secs(60);
/// Interval between two checks of the interrupt.
const LOOK: Duration = Duration::from_millis(100);
/// Interval between two attempts to write to a full socket.
const WRITE_AGAIN: Duration = Duration::from_millis(1);
/// Largest response head.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Largest response; a thousand users take some 100 KB.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Bytes per read.
const PIECE_BYTES: usize = 64 << 10;

/// A response.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body, decoded.
    pub body: Vec<u8>,
}

/// A request with a body, or none.
#[derive(Debug)]
pub struct Ask<'a> {
    /// The method, such as `GET`.
    pub method: &'a str,
    /// The path with its query.
    pub path: &'a str,
    /// Headers besides `Host` and `Content-Length`.
    pub headers: &'a [(String, String)],
    /// Empty = none.
    pub body: &'a [u8],
    /// Longest wait for a connection, and for a whole response.
    pub within: Duration,
}

impl<'a> Ask<'a> {
    /// A GET request without headers or body.
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

/// A client of one server, with its kept connection.
#[derive(Debug)]
pub struct Client {
    server: BaseUrl,
    address: SocketAddr,
    tls: Tls,
    connection: Option<Connection>,
}

/// A connection whose writes never block. A read waits up to a given time.
#[derive(Debug)]
struct Connection {
    socket: TcpStream,
    session: Option<Box<ClientConnection>>,
}

/// Why a request has no response.
#[derive(Debug)]
struct Broken {
    error: io::Error,
    /// True if the connection ended before the first byte of a response.
    is_unanswered: bool,
}

impl Client {
    /// Makes a client that is not connected yet.
    #[must_use]
    pub fn new(server: BaseUrl, address: SocketAddr, tls: Tls) -> Self {
        Self {
            server,
            address,
            tls,
            connection: None,
        }
    }

    /// Sends a request and waits for the whole response; gives up when `interrupt` becomes true. The connection is kept
    /// if the server keeps it. A request of an idempotent method is sent once more if the server closed the kept
    /// connection before it responded.
    ///
    /// # Errors
    /// When there is no whole response in time, or none that is HTTP.
    pub fn exchange(&mut self, ask: &Ask<'_>, interrupt: &AtomicBool) -> io::Result<Answer> {
        let message = self.message(ask);
        if let Some(mut connection) = self.connection.take()
            && !connection.is_stale()
        {
            match converse(&mut connection, (&message, ask), interrupt) {
                Ok((answer, reusable)) => {
                    self.connection = Some(connection).filter(|_| reusable);
                    return Ok(answer);
                }
                Err(broken) if broken.is_unanswered && is_idempotent(ask.method) => {}
                Err(broken) => return Err(broken.error),
            }
        }
        let mut connection = self.connect(ask.within)?;
        let conversed = converse(&mut connection, (&message, ask), interrupt);
        let (answer, reusable) = conversed.map_err(|broken| broken.error)?;
        self.connection = Some(connection).filter(|_| reusable);
        Ok(answer)
    }

    fn connect(&self, within: Duration) -> io::Result<Connection> {
        let socket = TcpStream::connect_timeout(&self.address, within)?;
        socket.set_nodelay(true)?;
        let session = if self.server.secure {
            let config = self.tls.config().map_err(io::Error::other)?;
            let name = self.tls.name_of(&self.server).map_err(io::Error::other)?;
            let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
            Some(Box::new(session))
        } else {
            None
        };
        Ok(Connection { socket, session })
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

/// The operations that an exchange needs of a connection.
trait Wire {
    /// Sends a prefix of these bytes without blocking; bytes count as sent if they need no further call.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where none can be sent now.
    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns true if bytes that count as sent are still buffered.
    fn has_unsent(&self) -> bool;

    /// Reads what is available within `wait`; 0 bytes are the end.
    ///
    /// # Errors
    /// A timeout by [`is_timeout`] where there is nothing.
    fn read_some(&mut self, piece: &mut [u8], wait: Duration) -> io::Result<usize>;
}

impl Connection {
    /// Returns true if the server has closed the connection, or sent unsolicited data. TLS messages, such as a ticket,
    /// are read.
    fn is_stale(&mut self) -> bool {
        let read = (self.socket.set_nonblocking(true)).and_then(|()| self.read_ready(&mut [0]));
        !read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Reads what is available; blocks as the socket does.
    fn read_ready(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else {
            return self.socket.read(piece);
        };
        loop {
            match session.reader().read(piece) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            session.read_tls(&mut self.socket)?;
            let processed = session.process_new_packets();
            processed.map_err(|error| {
                let error = io::Error::new(io::ErrorKind::InvalidData, error);
                io::Error::new(error.kind(), tls::in_words(&error))
            })?;
            if session.wants_write() {
                // A response to what was read, in a handshake.
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    /// Writes the session's records to the socket, as far as it accepts them.
    fn push(&mut self) -> io::Result<()> {
        self.socket.set_nonblocking(true)?;
        if let Some(session) = &mut self.session {
            while session.wants_write() {
                match session.write_tls(&mut self.socket) {
                    Ok(_) => {}
                    Err(error) if is_timeout(&error) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

impl Wire for Connection {
    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push()?;
        let count = match &mut self.session {
            None => self.socket.write(bytes)?,
            // While records wait, more would only take room.
            Some(session) if session.wants_write() => 0,
            Some(session) => session.writer().write(bytes)?,
        };
        if count == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.push()?;
        Ok(count)
    }

    fn has_unsent(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.wants_write())
    }

    fn read_some(&mut self, piece: &mut [u8], wait: Duration) -> io::Result<usize> {
        self.push()?;
        self.socket.set_nonblocking(false)?;
        self.socket.set_read_timeout(Some(wait))?;
        self.read_ready(piece)
    }
}

/// Sends a request and reads its response at the same time: a server may respond before it has read all, and read no
/// further. Returns the response, and whether the connection may be used again.
fn converse(
    wire: &mut impl Wire,
    (message, ask): (&[u8], &Ask<'_>),
    interrupt: &AtomicBool,
) -> Result<(Answer, bool), Broken> {
    let mut reader = ResponseReader::new(Terms {
        head_request: ask.method == "HEAD",
        max_header_bytes: MAX_HEAD_BYTES,
        max_body_bytes: MAX_ANSWER_BYTES as u64,
    });
    let began = Stopwatch::start();
    let mut piece = vec![0; PIECE_BYTES];
    let (mut written, mut write_error) = (0, None);
    loop {
        while written < message.len() && write_error.is_none() {
            match wire.write_some(&message[written..]) {
                Ok(count) => written += count,
                Err(error) if is_timeout(&error) => break,
                // The server may have responded and closed: its response counts then.
                Err(error) => write_error = Some(error),
            }
        }
        let is_sent = (written == message.len() && !wire.has_unsent()) || write_error.is_some();
        let wait = if is_sent { LOOK } else { WRITE_AGAIN };
        let complete = match wire.read_some(&mut piece, wait) {
            Ok(0) => Ok(reader.end()),
            Ok(length) => {
                let fed = reader.feed(&piece[..length], |_| MAX_ANSWER_BYTES, &mut |_, _| {});
                let fault =
                    |fault: Fault| io::Error::new(io::ErrorKind::InvalidData, fault.to_string());
                match fed {
                    Ok(None) => continue,
                    fed => fed.map_err(fault),
                }
            }
            Err(error) if is_timeout(&error) => {
                if !interrupt.load(Ordering::Relaxed) && began.elapsed() <= ask.within {
                    continue;
                }
                let text = format!("no whole answer within {:?}", ask.within);
                return Err(Broken {
                    error: io::Error::new(io::ErrorKind::TimedOut, text),
                    is_unanswered: false,
                });
            }
            // TLS without close_notify ends as TCP does.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(reader.end()),
            Err(error) => Err(error),
        };
        let error = match complete {
            Ok(Some(complete)) => {
                let (answer, reusable) = answer(&complete, &piece, &reader);
                return Ok((answer, reusable && is_sent && write_error.is_none()));
            }
            Ok(None) => write_error.unwrap_or_else(|| cut_off(&reader)),
            Err(error) => error,
        };
        let is_unanswered = !reader.begun() && error.kind() != io::ErrorKind::InvalidData;
        return Err(Broken {
            error,
            is_unanswered,
        });
    }
}

fn answer(complete: &Complete, piece: &[u8], reader: &ResponseReader) -> (Answer, bool) {
    let body = match &complete.body {
        StoredBody::Input(range) => &piece[range.clone()],
        StoredBody::Kept => reader.kept(),
    };
    let answer = Answer {
        status: complete.status,
        body: body.to_vec(),
    };
    (answer, complete.reusable)
}

fn cut_off(reader: &ResponseReader) -> io::Error {
    let what = match reader.begun() {
        true => "the connection ended before the answer was whole",
        false => "the connection ended before any answer came",
    };
    io::Error::new(io::ErrorKind::UnexpectedEof, what)
}

/// A read without data yet; which of the two errors depends on the operating system.
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

    /// A server that sends this response and reads everything.
    struct Recorded<'a>(&'a [u8]);

    impl Wire for Recorded<'_> {
        fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn has_unsent(&self) -> bool {
            false
        }

        fn read_some(&mut self, piece: &mut [u8], _wait: Duration) -> io::Result<usize> {
            self.0.read(piece)
        }
    }

    #[track_caller]
    fn check(text: &str, expected: Option<(u16, &str, bool)>) {
        let never = AtomicBool::new(false);
        let ask = Ask::get("/", ANSWER);
        let found = converse(&mut Recorded(text.as_bytes()), (b"GET", &ask), &never).ok();
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

    fn reading_client(address: SocketAddr) -> Client {
        Client::new(local(address, false), address, Tls::default())
    }

    #[test]
    fn a_connection_that_the_server_closed_meanwhile_is_replaced() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let mut seen = Vec::new();
            for _ in 0..3 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut piece = [0; 1024];
                let length = stream.read(&mut piece).unwrap();
                seen.push(String::from_utf8_lossy(&piece[..4.min(length)]).into_owned());
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                stream.write_all(answer).unwrap();
            }
            seen
        });
        let mut client = reading_client(address);
        let never = AtomicBool::new(false);
        for method in ["GET", "POST", "PUT"] {
            let ask = Ask {
                method,
                ..Ask::get("/", ANSWER)
            };
            assert_eq!(client.exchange(&ask, &never).unwrap().body, b"ok");
            // The end of the connection is seen before the next request begins.
            let kept = client.connection.as_mut().unwrap();
            while !kept.is_stale() {
                std::thread::yield_now();
            }
        }
        assert_eq!(server.join().unwrap(), ["GET ", "POST", "PUT "]);
    }

    #[test]
    fn a_kept_connection_that_ends_unanswered_is_replaced_once_for_idempotent_methods() {
        for (method, again) in [("GET", true), ("POST", false)] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let mut piece = [0; 1024];
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                let (mut first, _) = listener.accept().unwrap();
                let _count = first.read(&mut piece).unwrap();
                first.write_all(answer).unwrap();
                // The second request is read and gets no response.
                let _count = first.read(&mut piece).unwrap();
                drop(first);
                if again {
                    let (mut second, _) = listener.accept().unwrap();
                    let _count = second.read(&mut piece).unwrap();
                    second.write_all(answer).unwrap();
                }
            });
            let mut client = reading_client(address);
            let never = AtomicBool::new(false);
            client.exchange(&Ask::get("/", ANSWER), &never).unwrap();
            let ask = Ask {
                method,
                ..Ask::get("/", ANSWER)
            };
            let answer = client.exchange(&ask, &never);
            assert_eq!(answer.is_ok(), again, "{method}: {answer:?}");
            server.join().unwrap();
        }
    }

    #[test]
    fn an_answer_before_the_body_is_read_is_taken() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (done, wait) = std::sync::mpsc::sync_channel::<()>(0);
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _count = stream.read(&mut [0; 1024]).unwrap();
            let answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";
            stream.write_all(answer).unwrap();
            // Nothing more is read while the connection is open.
            let _ended = wait.recv();
        });
        let body = vec![b'x'; 32 << 20];
        let ask = Ask {
            method: "POST",
            body: &body,
            ..Ask::get("/", ANSWER)
        };
        let mut client = reading_client(address);
        let answer = client.exchange(&ask, &AtomicBool::new(false)).unwrap();
        assert_eq!((answer.status, &*answer.body), (413, &b"no"[..]));
        assert!(client.connection.is_none());
        drop(done);
        server.join().unwrap();
    }

    #[test]
    fn an_interrupt_ends_a_request_that_cannot_be_sent() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let body = vec![b'x'; 32 << 20];
        let ask = Ask {
            method: "POST",
            body: &body,
            ..Ask::get("/", ANSWER)
        };
        let error = reading_client(address)
            .exchange(&ask, &AtomicBool::new(true))
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(listener);
    }
}
