//! A name server with a few names, over UDP on loopback: enough for lookups of texts and addresses.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// A record's type and class in a question, and the type of an answer (RFC 1035, 3.2.2).
const A: u16 = 1;
const MX: u16 = 15;
const TXT: u16 = 16;
/// Flags of an answer: response, recursion desired, recursion available.
const ANSWER: [u8; 2] = [0x81, 0x80];
/// NXDOMAIN: there is no such name.
const NO_NAME: u8 = 3;

/// A record of a name.
#[derive(Debug, Clone)]
pub enum Record {
    /// A text.
    Text(String),
    /// An address.
    Address(Ipv4Addr),
    /// The name of the host that receives its mail.
    Mail(String),
    /// Questions are never answered.
    Silence,
}

type Zone = Arc<Mutex<HashMap<String, Vec<Record>>>>;

/// The server. It lives as long as the process.
#[derive(Debug, Clone)]
pub struct NameServer {
    address: SocketAddr,
    zone: Zone,
    asked: Arc<AtomicUsize>,
}

impl NameServer {
    /// Starts a server without names.
    ///
    /// # Panics
    /// When the system has no free socket.
    pub fn start() -> Self {
        let socket = UdpSocket::bind((IpAddr::from(Ipv4Addr::LOCALHOST), 0)).expect("a free port");
        let server = Self {
            address: socket.local_addr().expect("a bound socket has an address"),
            zone: Zone::default(),
            asked: Arc::default(),
        };
        let here = server.clone();
        std::thread::spawn(move || here.serve(&socket));
        server
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of questions so far.
    pub fn asked(&self) -> usize {
        self.asked.load(Relaxed)
    }

    /// Adds a record to a name.
    pub fn add(&self, name: &str, record: Record) {
        let mut zone = self.zone.lock().unwrap_or_else(PoisonError::into_inner);
        zone.entry(name.to_owned()).or_default().push(record);
    }

    fn serve(&self, socket: &UdpSocket) {
        let mut bytes = [0; 2048];
        while let Ok((count, from)) = socket.recv_from(&mut bytes) {
            self.asked.fetch_add(1, Relaxed);
            if let Some(answer) = self.answer(&bytes[..count]) {
                // The client may be gone.
                let _ = socket.send_to(&answer, from);
            }
        }
    }

    /// Returns the answer to a question; `None` if there is none, or for [`Record::Silence`].
    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let (name, end) = name(question)?;
        let kind = u16::from_be_bytes(question.get(end..end + 2)?.try_into().ok()?);
        let zone = self.zone.lock().unwrap_or_else(PoisonError::into_inner);
        let known = zone.get(&name);
        let mut answers = Vec::new();
        for record in known.into_iter().flatten() {
            match record {
                Record::Silence => return None,
                Record::Text(text) if kind == TXT => answers.push(text_data(text)),
                Record::Address(address) if kind == A => answers.push(address.octets().to_vec()),
                Record::Mail(host) if kind == MX => answers.push(mail_data(host)),
                _ => {}
            }
        }
        let mut out = question.get(..2)?.to_vec();
        out.push(ANSWER[0]);
        out.push(ANSWER[1] | if known.is_none() { NO_NAME } else { 0 });
        let count = u16::try_from(answers.len()).ok()?.to_be_bytes();
        out.extend([0, 1, count[0], count[1], 0, 0, 0, 0]);
        out.extend(question.get(12..end + 4)?);
        for data in answers {
            // The name of the question, the type, the class, a TTL of a minute.
            out.extend([0xc0, 12]);
            out.extend(kind.to_be_bytes());
            out.extend([0, 1, 0, 0, 0, 60]);
            out.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
            out.extend(data);
        }
        Some(out)
    }
}

/// Parses the name in a question: in lower case, and where it ends.
fn name(question: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), 12);
    loop {
        let length = usize::from(*question.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        let label = question.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += length;
    }
}

/// A text in pieces of 255 bytes, each behind its length.
fn text_data(text: &str) -> Vec<u8> {
    let pieces = text.as_bytes().chunks(255);
    let pieces = pieces.map(|piece| [&[piece.len() as u8], piece].concat());
    pieces.collect::<Vec<_>>().concat()
}

/// The data of a mail host: a preference, and its name in labels behind their lengths.
fn mail_data(host: &str) -> Vec<u8> {
    let mut data = vec![0, 10];
    for label in host.split('.') {
        data.push(label.len() as u8);
        data.extend(label.bytes());
    }
    data.push(0);
    data
}
