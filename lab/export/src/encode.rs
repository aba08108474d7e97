//! Encodes frames for receivers.

pub(crate) mod influx;
pub(crate) mod openmetrics;
pub(crate) mod otlp;
pub(crate) mod prometheus;
