//! Trace context (W3C Recommendation “Trace Context”): identifies a request in the traces of the system that serves it.

use std::fmt;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

/// Selects the requests that start a trace, and separates this trial's traces from others.
#[derive(Debug, Clone)]
pub struct Tracing {
    /// The share of the requests, 0 to 1.
    share: f64,
    /// The trial's start in seconds since 1970, the prefix of ids as AWS X-Ray requires.
    began_s: u32,
    /// The server: two servers under load at once receive different ids.
    server: String,
}

/// Identity of a request.
#[derive(Debug, Clone, Copy)]
pub struct Traced {
    /// The plan's seed, and the trial's block.
    pub seed: (u64, u32),
    /// The session, for arrivals, or else the user.
    pub whose: (bool, u64),
    /// Index in the workload's requests.
    pub request: u32,
    /// Number of its earlier executions.
    pub count: u64,
}

impl Tracing {
    /// Traces `share` of the requests to a server, 0 to 1, in a trial that started this many seconds after the
    /// beginning of 1970.
    #[must_use]
    pub fn new(share: f64, began_s: u32, server: String) -> Self {
        Self {
            share,
            began_s,
            server,
        }
    }

    /// Returns the trace that a request starts, if it is selected. Selected by a hash, so that no other random draw
    /// depends on it.
    pub fn draw(&self, of: Traced) -> Option<TraceContext> {
        let mut hash = Context::new(&SHA256);
        hash.update(&of.seed.0.to_be_bytes());
        hash.update(&of.seed.1.to_be_bytes());
        hash.update(&[u8::from(of.whose.0)]);
        hash.update(&of.whose.1.to_be_bytes());
        hash.update(&of.request.to_be_bytes());
        hash.update(&of.count.to_be_bytes());
        hash.update(self.server.as_bytes());
        let hash = hash.finish();
        let (drawn, rest) = hash.as_ref().split_at(8);
        let drawn = drawn.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        if drawn as f64 >= self.share * 2_f64.powi(64) {
            return None;
        }
        let mut trace = [0; 16];
        trace[..4].copy_from_slice(&self.began_s.to_be_bytes());
        trace[4..].copy_from_slice(&rest[..12]);
        let mut span = [0; 8];
        span.copy_from_slice(&rest[12..20]);
        // All zero is an invalid id.
        trace[15] |= u8::from(trace == [0; 16]);
        span[7] |= u8::from(span == [0; 8]);
        Some(TraceContext { trace, span })
    }
}

/// The trace that a request starts; displayed as the header `traceparent`, version 00, sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    trace: [u8; 16],
    span: [u8; 8],
}

impl TraceContext {
    /// Returns the id of the trace, in hex.
    #[must_use]
    pub fn id(&self) -> String {
        hex::encode(self.trace)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{}-{}-01",
            hex::encode(self.trace),
            hex::encode(self.span)
        )
    }
}

#[cfg(test)]
mod tests;
