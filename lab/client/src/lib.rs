//! How virtual users speak. A [`Client`] knows its protocol and no schedule: the engine that calls it
//! says when, and lends it the [`Time`]. [`http`] is the one that there is.
//!
//! # A client of another protocol
//!
//! One is made per worker thread, so that nothing in it is shared or locked. What it keeps of a user
//! (a connection, cookies) is its `Session`, handed to each [`Client::exchange`]; what it reads of an
//! answer goes into the user's [`lab_workload::UserScope`]. An exchange ends when its answer is whole,
//! and tells the two moments that count, as near to the wire as it can read them: just before the
//! first byte went out and just after the last one came in. It never waits for anything but the server
//! and the deadline it sets itself, and it repeats nothing that it doesn't count.

mod clock;
mod exchange;
pub mod http;
mod resolve;
mod tap;
pub mod time;
pub mod tls;
mod url;
mod version;

pub use exchange::{
    Client, ClientCounts, ErrorClass, EventTimes, Exchange, Failure, Phase, Phases, RequestId,
    Sizes,
};
pub use resolve::Resolve;
pub use tap::Tap;
pub use time::{Nanos, Time, Timer};
pub use tls::{Identity, PemFile, Tls, TlsError, TlsOptions};
pub use url::{BaseUrl, BaseUrlError};
pub use version::{Offer, Protocol, Version};
