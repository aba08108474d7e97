//! Checks whether a started program is ready. It starts nothing.

use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab_client::{Tls, TlsOptions};
use lab_study::Ready;
use regex::Regex;

use crate::http::{Ask, Client};
use crate::start;

/// Longest wait for one connection while it starts.
pub(crate) const CONNECT: Duration = Duration::from_secs(1);
/// Bytes of output that are searched for the readiness line.
const READY_BYTES: u64 = 4 << 20;

/// The readiness check of a program.
pub(crate) struct Readiness {
    sign: Sign,
    /// The file of its output.
    output: PathBuf,
    /// True if it speaks TLS.
    secure: bool,
}

enum Sign {
    Port,
    Http(String, std::ops::RangeInclusive<u16>),
    Log(Regex),
}

impl Readiness {
    /// # Errors
    /// In words, when the regular expression is invalid.
    pub(crate) fn new(ready: &Ready, output: PathBuf, secure: bool) -> Result<Self, String> {
        let sign = match ready {
            Ready::Port => Sign::Port,
            Ready::Http { path, status } => Sign::Http(path.clone(), status.clone()),
            Ready::Log(expression) => Sign::Log(
                Regex::new(expression).map_err(|e| format!("its readiness can't be told: {e}"))?,
            ),
        };
        Ok(Self {
            sign,
            output,
            secure,
        })
    }

    /// Returns true if the program that is to listen at `address` is ready now.
    pub(crate) fn is(&self, address: SocketAddr, interrupt: &AtomicBool) -> bool {
        match &self.sign {
            Sign::Port => TcpStream::connect_timeout(&address, CONNECT).is_ok(),
            Sign::Log(expression) => self.said(expression),
            Sign::Http(path, status) => {
                let asked = self
                    .client(address)
                    .exchange(&Ask::get(path, CONNECT), interrupt);
                asked.is_ok_and(|answer| status.contains(&answer.status))
            }
        }
    }

    /// A client for the check; it accepts any certificate, since the users' clients verify it.
    fn client(&self, address: SocketAddr) -> Client {
        let base = start::local(address, self.secure);
        let any = TlsOptions {
            insecure: true,
            ..TlsOptions::default()
        };
        Client::new(base, address, Tls::new(any))
    }

    fn said(&self, expression: &Regex) -> bool {
        let read = || {
            let mut bytes = Vec::new();
            let output = File::open(&self.output)?;
            output.take(READY_BYTES).read_to_end(&mut bytes)?;
            Ok::<_, io::Error>(bytes)
        };
        read().is_ok_and(|bytes| expression.is_match(&String::from_utf8_lossy(&bytes)))
    }
}
