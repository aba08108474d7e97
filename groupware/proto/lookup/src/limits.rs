//! Bounds on what one message may hold.

/// Most interfaces, or other blocks of metadata, of a message.
pub const BLOCKS: usize = 20_000;
/// Deepest nesting of elements.
pub const DEPTH: usize = 32;
/// Most attributes of an element.
pub const ATTRIBUTES: usize = 32;
/// Most bytes of a message's standalone blocks, in addition to twice the message's bytes.
pub const COPIES_BYTES: usize = 1 << 20;
/// Most triggers, which are single requests, in one message.
pub const TRIGGERS: usize = 100;
