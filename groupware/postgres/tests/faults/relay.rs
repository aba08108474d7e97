//! What stands between a store and its server, and cuts the way at the worst moment.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use groupware_postgres::Database;

/// Stands between a store and its server, and cuts the way when a transaction is to be committed.
pub(crate) struct Relay {
    address: SocketAddr,
    pub(crate) cuts: Arc<AtomicU32>,
}

/// The message that asks to commit, and its answer's beginning.
const ASKS: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
const ANSWERS: &[u8] = b"C\0\0\0\x0bCOMMIT\0";

/// Cuts one commit in so many, by turns before it and before its answer.
const EVERY: u32 = 7;

impl Relay {
    /// `after_cut` is done when the server has committed and the store hasn't heard of it.
    pub(crate) fn start(server: u16, after_cut: impl Fn() + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::new(AtomicU32::new(0));
        let (seen, after_cut) = (Arc::new(AtomicU32::new(0)), Arc::new(after_cut));
        let counted = Arc::clone(&cuts);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                let way = Way {
                    client,
                    server,
                    cuts: Arc::clone(&counted),
                    seen: Arc::clone(&seen),
                };
                let after_cut = Arc::clone(&after_cut);
                std::thread::spawn(move || way.relay(&*after_cut));
            }
        });
        Self { address, cuts }
    }

    pub(crate) fn database(&self) -> Database {
        Database::parse(&format!("postgres://postgres@{}/postgres", self.address)).unwrap()
    }
}

struct Way {
    client: TcpStream,
    server: TcpStream,
    cuts: Arc<AtomicU32>,
    seen: Arc<AtomicU32>,
}

impl Way {
    fn relay(self, after_cut: &dyn Fn()) {
        let is_cut = Arc::new(AtomicBool::new(false));
        let back = {
            let (mut from, mut to) = (
                self.server.try_clone().unwrap(),
                self.client.try_clone().unwrap(),
            );
            let is_cut = Arc::clone(&is_cut);
            std::thread::spawn(move || {
                let (mut buffer, mut kept) = ([0; 65536], Vec::new());
                while let Ok(count @ 1..) = from.read(&mut buffer) {
                    match is_cut.load(Ordering::SeqCst) {
                        true => {
                            kept.extend_from_slice(&buffer[..count]);
                            if kept.windows(ANSWERS.len()).any(|part| part == ANSWERS) {
                                return true;
                            }
                        }
                        false if to.write_all(&buffer[..count]).is_err() => break,
                        false => {}
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
                false
            })
        };
        let cut_after = self.forward(&is_cut);
        if cut_after && back.join().unwrap() {
            after_cut();
        }
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    /// Hands on what the client says; true if its commit was handed on and the answer is to be lost.
    fn forward(&self, is_cut: &AtomicBool) -> bool {
        let (mut from, mut to) = (&self.client, &self.server);
        let mut buffer = [0; 65536];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let asks = buffer[..count].windows(ASKS.len()).any(|part| part == ASKS);
            let turn = match asks {
                true => self.seen.fetch_add(1, Ordering::SeqCst) + 1,
                false => 0,
            };
            if asks && turn.is_multiple_of(EVERY) {
                self.cuts.fetch_add(1, Ordering::SeqCst);
                if (turn / EVERY).is_multiple_of(2) {
                    return false;
                }
                is_cut.store(true, Ordering::SeqCst);
                return to.write_all(&buffer[..count]).is_ok();
            }
            if to.write_all(&buffer[..count]).is_err() {
                return false;
            }
        }
        false
    }
}
