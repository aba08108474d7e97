//! Finds values in a body as it streams: at paths in JSON, XML, and HTML.

pub mod html;
pub mod json;
pub mod xml;
