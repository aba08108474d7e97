//! Study and workload files: text to a validated model to a seeded plan of trials.
//!
//! Pure: it reads no clock, opens no socket, and reads files only through what it is given.
