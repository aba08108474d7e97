//! The layer below every protocol: listeners, admission of connections, the pace that peers must
//! keep, TLS, and lines of text.
//!
//! This crate knows neither clients nor their purpose.

mod accept;
mod admission;
mod arrival;
mod line;
mod listen;
mod network;
mod pace;
mod share;
mod stand_in;
mod tls;
mod trusted;

pub use accept::{ACCEPT_PAUSE, Accepting, Connection, Serve, run};
pub use admission::{Admission, AdmissionStats, ConnectionIdentity, ConnectionPermit, Refused};
pub use arrival::{NotLetIn, Origin, arrive};
pub use line::{LineConnection, LineError, Stream};
pub use listen::{Listener, descriptors, listen};
pub use network::{Network, Networks, NoNetwork, client_of};
pub use pace::{ConnectionActivity, IdleTimeout, Pace, PacedStream, Phase};
pub use share::{FairSemaphore, Gauge, Permit, PoolStats, Principal};
pub use stand_in::stand_in;
pub use tls::{Certificate, TlsError, TlsFiles, acceptor};
pub use tokio_rustls::TlsAcceptor;
pub use trusted::TrustedNetworks;
