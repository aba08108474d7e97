//! The namespaces of the XML protocol.

pub(crate) const SOAP: &str = "http://schemas.xmlsoap.org/soap/envelope/";
/// The namespace of messages, metadata, and data.
pub const NMWG: &str = "http://ggf.org/ns/nmwg/base/2.0/";
pub(crate) const NMWGR: &str = "http://ggf.org/ns/nmwg/result/2.0/";
pub(crate) const PERFSONAR: &str = "http://ggf.org/ns/nmwg/tools/org/perfsonar/1.0/";
pub(crate) const PSSERVICE: &str = "http://ggf.org/ns/nmwg/tools/org/perfsonar/service/1.0/";
pub(crate) const XQUERY: &str =
    "http://ggf.org/ns/nmwg/tools/org/perfsonar/service/lookup/xquery/1.0/";
/// The event type of a query in XQuery, without and with a final slash.
pub const XQUERY_EVENT: &str =
    "http://ggf.org/ns/nmwg/tools/org/perfsonar/service/lookup/xquery/1.0";
