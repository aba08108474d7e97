//! Passes on to a server what its clients send, and back what it answers: `front LISTEN SERVER`. It is the part of a
//! system that users come to, where tests have one on several machines. It knows no protocol.

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
        // One that can't be passed on is closed.
        let Ok(server) = TcpStream::connect(server) else {
            continue;
        };
        let (back, forth) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || carry(client, forth));
        thread::spawn(move || carry(server, back));
    }
    Ok(())
}

/// Until either end has no more; then neither has.
fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _end = io::copy(&mut from, &mut to);
    let _closed = to.shutdown(Shutdown::Both);
}
