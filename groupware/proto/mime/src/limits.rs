//! The stated bounds of a message.

/// Largest message, in bytes as it is stored.
pub const MESSAGE_BYTES: usize = 16 << 20;
/// Largest head of a message; Postfix allows 100 KiB.
pub const HEAD_BYTES: usize = 256 << 10;
/// Most header fields in the head of a message.
pub const HEAD_FIELDS: usize = 2000;
/// Longest subject in a list, in bytes; the message has the full one.
pub const SUBJECT_BYTES: usize = 512;
/// Longest name of a person in a list, in bytes.
pub const NAME_BYTES: usize = 128;
/// Longest address. RFC 5321 §4.5.3.1 allows 64 + 1 + 255.
pub const ADDRESS_BYTES: usize = 320;
/// Most levels of multiparts that are split; deeper content is shown as it is.
pub const PART_LEVELS: usize = 16;
/// Most parts of a message; the rest is not shown, but stored.
pub const PARTS: usize = 1000;
/// Longest boundary of a multipart. RFC 2046, 5.1.1 allows 70.
pub const BOUNDARY_BYTES: usize = 512;
/// Longest address of a part by which HTML refers to it.
pub const LOCATION_BYTES: usize = 2048;
/// Longest name of an attachment, in bytes.
pub const FILE_NAME_BYTES: usize = 200;
