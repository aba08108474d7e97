//! Responses on the wire: framing and coding. One test program, since each would be linked by itself.

mod parser;
