//! What lies below every protocol: listening, admission of connections, the pace that their other
//! ends must keep, TLS, and lines of text.
//!
//! It knows neither who asks nor what for.

mod accept;
mod clients;
mod line;
mod listen;
mod pace;
mod tls;

pub use accept::{ACCEPT_PAUSE, Accepting, Connection, Serve, run};
pub use clients::{ClientSlot, Clients};
pub use line::{Line, NoLine, Stream};
pub use listen::{descriptors, listen};
pub use pace::{Pace, Patience, Phase, Pulse, Watched};
pub use tls::{Certificate, TlsError, TlsFiles, acceptor};
