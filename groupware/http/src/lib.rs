//! HTTP for all fronts: connections, bodies within their bounds, permits, streams, authentication,
//! failures, metrics, and the request log.
//!
//! This crate knows no route. The bounds of a route, on bodies and time, are stated where the route
//! is declared, by the [`Gate`]'s layers.

mod abandoned;
mod admin;
mod answers;
mod budget;
mod client;
mod error;
mod fault;
mod gate;
mod hosts;
mod metrics;
mod origin;
mod owner;
mod panic;
mod path;
mod polled_on_wake;
mod query;
pub mod reply;
mod request_log;
mod request_metrics;
mod server;
mod share_metrics;
mod sign_in;
mod stream;

pub use admin::Admin;
pub use client::{caller_of, client};
pub use error::{ApiError, ErrorMessage, OUTCOME_UNKNOWN};
pub use fault::Fault;
pub use gate::{
    AdminOnly, Body, BodyLimits, Gate, GateLayer, Gated, Guard, Nobody, Rules, SignedIn,
};
pub use hosts::Hosts;
pub use metrics::Metrics;
pub use origin::comes_from_here;
pub use owner::{Owner, mailbox, user};
pub use query::{
    MethodOverride, NoFlag, Params, Query, Unreadable, header_text, media_type, parameter,
};
pub use request_log::{REQUEST_ID, RequestLog};
pub use server::{Dress, HeadLimits, HttpServer};
pub use sign_in::{Cookies, authenticate, session, session_token};
pub use stream::{
    Buffer, Buffers, Disk, FileBody, Flow, Inflow, Pieces, STREAMS, StreamSlot, Streamed, Streams,
    WrittenBody,
};
