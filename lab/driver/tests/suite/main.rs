//! The driver over real sockets and in simulated time: one program, since each would be linked by itself.

mod answers;
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod encoded;
mod events;
mod faults;
mod framing;
mod grpc;
mod grpc_shared;
mod measures;
mod messages;
mod open;
mod parallel;
mod phases;
mod redirects;
mod schedule;
mod session;
mod shared;
mod tls;
mod truth;
mod two;
mod uploads;
mod websocket;
