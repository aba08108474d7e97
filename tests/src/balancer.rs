//! A balancer before several servers: it gives each connection to the next server that accepts it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// A balancer that runs until the test's process ends.
#[derive(Debug)]
pub struct Balancer {
    address: SocketAddr,
}

impl Balancer {
    /// Starts a balancer before these servers.
    ///
    /// # Panics
    /// When there is no free port.
    pub fn before(servers: &[SocketAddr]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let (servers, next) = (servers.to_vec(), Arc::new(AtomicUsize::new(0)));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (servers, next) = (servers.clone(), Arc::clone(&next));
                thread::spawn(move || {
                    let first = next.fetch_add(1, Relaxed);
                    let mut in_turn = (0..servers.len()).map(|at| first + at);
                    let server =
                        in_turn.find_map(|at| TcpStream::connect(servers[at % servers.len()]).ok());
                    // The connection is closed if no server accepts it.
                    let _ = server.map(|server| between(client, server));
                });
            }
        });
        Self { address }
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn between(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || pass_on(from_client, to_server));
    pass_on(server, client);
    Ok(())
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // The other direction ends with this one.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
