//! Values of a body, found while it goes by: at paths of JSON, XML, and HTML.

pub mod html;
pub mod json;
pub mod xml;
