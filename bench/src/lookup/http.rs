//! A kept connection with as much HTTP as the benchmark needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::common::Error;

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::with_capacity(1 << 16, stream),
        })
    }

    /// Sends a request and reads its answer, which has to be 200.
    pub(crate) fn ask(
        &mut self,
        line: &str,
        media_type: &str,
        body: &str,
    ) -> Result<Answer, Error> {
        let head = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {media_type}\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let request = [head.as_bytes(), body.as_bytes()].concat();
        self.stream.get_mut().write_all(&request)?;
        let answer = self.answer()?;
        match answer.status {
            200 => Ok(answer),
            status => Err(Error::Peer(format!("{line}: {status} {}", answer.body))),
        }
    }

    fn answer(&mut self) -> Result<Answer, Error> {
        let wrong = || Error::Peer("the server's answer can't be read".to_owned());
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().map_err(|_| wrong())?,
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer {
            status: status.ok_or_else(wrong)?,
            body: String::from_utf8(body).map_err(|_| wrong())?,
        })
    }
}
