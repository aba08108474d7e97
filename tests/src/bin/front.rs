//! Forwards bytes between clients and a server, both ways: `front LISTEN SERVER`. It is the front end of a system that
//! tests run on several machines. It is independent of the protocol.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [listen, server] = words.as_slice() else {
        eprintln!("usage: front LISTEN SERVER");
        return ExitCode::FAILURE;
    };
    match serve(listen, server) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("front: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(listen: &str, server: &str) -> io::Result<()> {
    let listener = TcpListener::bind(listen)?;
    println!("from {listen} to {server}");
    for client in listener.incoming() {
        let client = client?;
        // A connection that can't be forwarded is closed.
        let Ok(server) = TcpStream::connect(server) else {
            continue;
        };
        let (back, forth) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || carry(client, forth));
        thread::spawn(move || carry(server, back));
    }
    Ok(())
}

/// Copies until either end is closed, then closes both.
fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _end = io::copy(&mut from, &mut to);
    let _closed = to.shutdown(Shutdown::Both);
}
