//! A minimum of HTTP, IMAP, and LMTP for the comparison, on blocking sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::common::Error;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A connection.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
}

/// An answer over HTTP.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self {
            stream: BufReader::with_capacity(64 << 10, stream),
            line: Vec::new(),
        })
    }

    pub(crate) fn write(&mut self, text: &str) -> Result<(), Error> {
        Ok(self.stream.get_mut().write_all(text.as_bytes())?)
    }

    /// Reads the next line, its end included.
    fn read_line(&mut self) -> Result<&str, Error> {
        self.line.clear();
        if self.stream.read_until(b'\n', &mut self.line)? == 0 {
            return Err(Error::Peer("the server hung up".to_owned()));
        }
        std::str::from_utf8(&self.line).map_err(|error| Error::Peer(error.to_string()))
    }

    /// Sends a request and reads its answer; `head` is its first line and its own headers.
    pub(crate) fn http(&mut self, head: &str, body: &str) -> Result<Answer, Error> {
        let request = format!(
            "{head}host: localhost\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.write(&request)?;
        let status = self
            .read_line()?
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| Error::Peer("no answer in HTTP".to_owned()))?;
        let mut length = 0;
        loop {
            let line = self.read_line()?.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().map_err(|_| Error::Peer(line.to_owned()))?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, body })
    }

    /// Reads lines until the one that begins with `tag`, literals between them included; calls `visit` with the lines
    /// before it.
    pub(crate) fn imap(&mut self, tag: &str, mut visit: impl FnMut(&str)) -> Result<(), Error> {
        loop {
            let line = self.read_line()?;
            if let Some(rest) = line.strip_prefix(tag) {
                return match rest.starts_with(" OK") {
                    true => Ok(()),
                    false => Err(Error::Peer(line.trim().to_owned())),
                };
            }
            visit(line);
            let literal = line
                .trim_end()
                .strip_suffix('}')
                .and_then(|it| it.rsplit_once('{'));
            if let Some(length) = literal.and_then(|(_, number)| number.parse::<u64>().ok()) {
                std::io::copy(&mut (&mut self.stream).take(length), &mut std::io::sink())?;
            }
        }
    }

    /// Reads a reply of SMTP or LMTP that must begin with this digit.
    pub(crate) fn smtp(&mut self, digit: char) -> Result<(), Error> {
        loop {
            let line = self.read_line()?;
            if !line.starts_with(digit) {
                return Err(Error::Peer(line.trim().to_owned()));
            }
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(());
            }
        }
    }
}
