//! Study files from text to plan, and every possible error in one.
//! A single test program, since each would be linked separately.

mod archived;
mod ask;
mod auth;
mod book;
mod calendar;
mod control;
mod cookies;
mod data;
mod duet;
mod errors;
mod errors_answers;
mod errors_load;
mod errors_systems;
mod faults;
mod in_vain;
mod inputs;
mod keys;
mod machines;
mod measures;
mod message;
mod parallel;
mod parameters;
mod plan;
mod profile;
mod published;
mod reference;
mod schema;
mod shared;
mod shares;
mod signing;
mod template;
mod template_law;
mod transactions;
mod transfer;
mod uploads;
