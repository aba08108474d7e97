//! Load generators and systems on other machines. An agent connects to a hub and waits. A run leases agents, assigns
//! each its part of the load and a start in the agent's own time, and merges each report once. A partial load is no
//! load: a lost agent makes its trial invalid.
//!
//! # Invariants
//! - The hub stores nothing that must not be lost: messages are numbered, stored until acknowledged, and processed
//!   once.
//! - At most one run has an agent. An agent without a message from its run for twelve seconds stops its users, or ends
//!   the run's system there.
//! - No response time is converted between clocks. Clock offsets serve the start only, and have a known bound.
//! - Every connection has TLS to the one certificate in its token; each token owner can send under its own name only.

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
