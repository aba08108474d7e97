//! Interprets files: produces their validated types, or a [`crate::LoadError`].
//!
//! The caller provides files by [`Files`]; nothing here opens one.

mod attached;
mod auth;
mod body;
mod capture;
mod choice;
mod control;
mod data;
mod descriptors;
mod events;
mod expected;
mod files;
mod foreign;
mod grpc;
mod header;
mod keys;
mod measure;
mod method;
mod mqtt;
mod multipart;
mod names;
mod parallel;
mod protocol;
mod raw;
mod request;
mod schema;
mod script;
mod shared;
mod sign;
mod statement;
mod steps;
mod variable;
mod websocket;
mod words;
mod workload;

pub use files::{Environment, Files, decode, first_file, read_yaml};
pub use header::header_problem;
pub use method::method_problem;
pub use names::{check_short_name, level, parsed, switch, unknown_name};
pub use request::has_gap;
pub use script::{ScriptFacts, read_script};
pub use workload::{read as read_workload, workload_with};
