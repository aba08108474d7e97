//! A relay between a store and its server that cuts connections at the worst moment.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};

/// A relay between a store and its server that cuts connections at commits.
pub(crate) struct Relay {
    /// The relay's address.
    pub(crate) address: SocketAddr,
    pub(crate) cuts: Arc<AtomicU32>,
}

/// The side of a commit on which the connection is cut.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut {
    /// The server never receives the commit.
    Before,
    /// The server has committed, and the store gets no response.
    After,
}

/// Changes the bytes of requests.
type Change = dyn Fn(&mut [u8]) + Send + Sync;

/// The behaviour of a relay.
pub(crate) struct Manner {
    /// Decides whether to cut a commit, by the number of commits so far.
    pub(crate) when: Box<dyn Fn(u32) -> Option<Cut> + Send + Sync>,
    /// Changes all requests of stores.
    pub(crate) change: Box<Change>,
    /// Runs after the server has committed and before the store notices the cut.
    pub(crate) after_cut: Box<dyn Fn() + Send + Sync>,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            when: Box::new(|_| None),
            change: Box::new(|_| ()),
            after_cut: Box::new(|| ()),
        }
    }
}

/// The request to commit, and the beginning of its response.
const ASKS: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
const ANSWERS: &[u8] = b"C\0\0\0\x0bCOMMIT\0";

impl Relay {
    /// Starts a relay in front of the server on this port, which can be changed later.
    pub(crate) fn start(server: Arc<AtomicU16>, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::new(AtomicU32::new(0));
        let (seen, manner) = (Arc::new(AtomicU32::new(0)), Arc::new(manner));
        let counted = Arc::clone(&cuts);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let port = server.load(Ordering::SeqCst);
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                let way = Way {
                    client,
                    server,
                    manner: Arc::clone(&manner),
                    cuts: Arc::clone(&counted),
                    seen: Arc::clone(&seen),
                };
                std::thread::spawn(move || way.relay());
            }
        });
        Self { address, cuts }
    }
}

struct Way {
    client: TcpStream,
    server: TcpStream,
    manner: Arc<Manner>,
    cuts: Arc<AtomicU32>,
    seen: Arc<AtomicU32>,
}

impl Way {
    fn relay(self) {
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
            (self.manner.after_cut)();
        }
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    /// Forwards the client's requests; true if a commit was forwarded and its response is to be dropped.
    fn forward(&self, is_cut: &AtomicBool) -> bool {
        let (mut from, mut to) = (&self.client, &self.server);
        let mut buffer = [0; 65536];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            (self.manner.change)(&mut buffer[..count]);
            let asks = buffer[..count].windows(ASKS.len()).any(|part| part == ASKS);
            let cut = match asks {
                true => (self.manner.when)(self.seen.fetch_add(1, Ordering::SeqCst) + 1),
                false => None,
            };
            if cut.is_some() {
                self.cuts.fetch_add(1, Ordering::SeqCst);
            }
            match cut {
                Some(Cut::Before) => return false,
                Some(Cut::After) => {
                    is_cut.store(true, Ordering::SeqCst);
                    return to.write_all(&buffer[..count]).is_ok();
                }
                None if to.write_all(&buffer[..count]).is_err() => return false,
                None => {}
            }
        }
        false
    }
}
