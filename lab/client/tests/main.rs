//! Answers as they come over the wire: framing and coding. One program, since each would be linked by itself.

mod coding;
mod parser;
