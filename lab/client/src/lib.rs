//! Protocol clients of virtual users. A [`Client`] knows its protocol and no schedule: the engine calls it when a
//! request is due, and passes it the [`Time`]. [`http`] is one. [`dialogue`] is another, for all protocols in which a
//! user sends one message after the other on one connection.
//!
//! # A client of another protocol
//!
//! [`Client`] documents the contract, and `docs/clients.md` is the guide. Most protocols are best written as a
//! [`dialogue::Dialogue`], which does no I/O: that of Redis, in `lab-dialogues`, is a small one.

mod clock;
mod connection;
mod datagrams;
pub mod dialogue;
mod exchange;
pub mod http;
mod parts;
mod reading;
mod resolve;
mod server;
mod silence;
mod streams;
mod tap;
pub mod time;
pub mod tls;

pub use exchange::{
    Client, ClientCounts, ErrorClass, EventTimes, Exchange, FailedRequest, Made, Phase, Phases,
    RequestId, Sizes, Unmade,
};
pub use lab_units::{BaseUrl, BaseUrlError, Offer, Protocol, Sources, Version};
pub use parts::{Parts, WholeAnswer};
pub use resolve::Resolve;
pub use server::{Limits, Server};
pub use tap::{Side, Tap};
pub use time::{Nanos, Time, Timer};
pub use tls::{Identity, PemFile, Tls, TlsError, TlsOptions};
