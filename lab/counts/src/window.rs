//! Counts of one window of a drive that belong to no step.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::step::is_zero;

/// Counts of one window, over all steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowCounts {
    /// Users in a session at the window's end; for arrivals, sessions in progress.
    pub users: u32,
    /// Cycles started; for arrivals, sessions that got their connection.
    pub cycles: u64,
    /// Sessions that arrived.
    #[serde(skip_serializing_if = "is_zero")]
    pub arrived: u64,
    /// Arrived sessions that wait for a connection at the window's end.
    #[serde(skip_serializing_if = "is_zero")]
    pub waiting: u64,
    /// Arrived sessions that were turned away because too many waited already.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Requests in flight at the window's end.
    #[serde(skip_serializing_if = "is_zero")]
    pub under_way: u64,
    /// Cycles that exceeded their pace.
    pub overruns: u64,
    /// Connections opened.
    #[serde(skip_serializing_if = "is_zero")]
    pub connects: u64,
    /// Connections opened that speak HTTP/2.
    #[serde(skip_serializing_if = "is_zero")]
    pub http2_connects: u64,
    /// Requests sent a second time because the server had closed the idle connection, or reported that it had not
    /// processed them.
    #[serde(skip_serializing_if = "is_zero")]
    pub stale_retries: u64,
    /// Cookies that users lost because a server set more than they keep.
    #[serde(skip_serializing_if = "is_zero")]
    pub evicted_cookies: u64,
}

impl AddAssign for WindowCounts {
    /// Adds the counts of another worker in the same window.
    fn add_assign(&mut self, other: Self) {
        let Self {
            users,
            cycles,
            arrived,
            waiting,
            dropped,
            under_way,
            overruns,
            connects,
            http2_connects,
            stale_retries,
            evicted_cookies,
        } = other;
        self.users += users;
        self.cycles += cycles;
        self.arrived += arrived;
        self.waiting += waiting;
        self.dropped += dropped;
        self.under_way += under_way;
        self.overruns += overruns;
        self.connects += connects;
        self.http2_connects += http2_connects;
        self.stale_retries += stale_retries;
        self.evicted_cookies += evicted_cookies;
    }
}
