//! The null server: a measurement against it measures the generator.

use std::io::{self, BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

/// A connection's thread holds a buffer and little else.
const STACK_BYTES: usize = 128 << 10;

/// Answers every request on this port of loopback with an empty response, until the process is killed.
///
/// # Errors
/// When it can't listen, accept, or start a thread.
pub fn serve_nothing(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    for stream in listener.incoming() {
        let stream = stream?;
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        // The client reports a broken connection.
        thread.spawn(move || drop(answer(&stream)))?;
    }
    Ok(())
}

fn answer(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(300)))?;
    let mut reader = BufReader::with_capacity(4096, stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line == b"\r\n" {
            (&*stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
    }
}
