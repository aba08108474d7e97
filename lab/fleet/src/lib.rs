//! Load generators on other machines, and systems. An agent dials in to a hub and waits; a run takes agents by leases
//! that they grant, tells each its part of the load and when to begin in its own time, and merges what
//! they report once. A part of the load is no load: an agent that is lost makes its trial no measurement.
//!
//! # Invariants
//! - Nothing that must not be lost lies in the hub: what is said is numbered, kept until it is
//!   acknowledged, and taken in once.
//! - At most one run has an agent. An agent that does not hear its run for twelve seconds stops its users, or ends
//!   the system that the run has there.
//! - No response time crosses from one clock to another. Offsets of clocks serve the start alone, and
//!   are known with a bound.
//! - Every connection has TLS to the one certificate that its token names; each owner of a token may
//!   speak for itself alone.

mod agent;
mod carry;
mod clock;
mod conductor;
mod connection;
mod crew;
mod driving;
mod ends;
mod epoch;
mod error;
mod hub;
mod lease;
mod machine;
mod member;
mod message;
mod name;
mod offset;
mod random;
mod rights;
mod runner;
mod server;
mod subject;
mod token;
mod weight;

pub use agent::{AgentEvent, AgentOptions, run_agent};
pub use conductor::{Conductor, Wanted};
pub use crew::Crew;
pub use driving::Systems;
pub use error::FleetError;
pub use hub::Hub;
pub use machine::own_cores;
pub use message::{Hello, Unreadable, VERSION, check};
pub use name::{Name, NoName};
pub use server::{HubEvent, Server, has_server, run_hub, server_program};
pub use token::{NoToken, Role, Token};
