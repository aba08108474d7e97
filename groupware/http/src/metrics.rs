//! The server's metrics, in Prometheus' text format.

use std::fmt;
use std::time::Duration;

use axum::extract::MatchedPath;
use groupware_store::{COMMIT_BOUNDS_US, Store, StoreStats};
use http::{Method, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use crate::request_metrics::RequestMetrics;
use crate::share_metrics::ShareMetrics;

/// The counters of a server.
#[derive(Debug)]
pub struct Metrics {
    requests: RequestMetrics,
    /// Open connections.
    pub connections: Gauge,
    /// Connections that were rejected.
    pub connections_refused: Counter,
    /// The resources that clients and users share.
    pub shares: ShareMetrics,
    /// Failed sweeps of content.
    pub sweep_failures: Counter,
    sessions: Gauge,
    registry: Registry,
}

impl Metrics {
    /// Returns counters that start at zero.
    /// `others` are further collectors.
    pub fn new(store: Store, others: Vec<Box<dyn Collector>>) -> Self {
        let mut registry = Registry::with_prefix("plimsoll");
        let requests = RequestMetrics::default();
        let (connections, sessions) = (Gauge::default(), Gauge::default());
        let (connections_refused, sweep_failures) = (Counter::default(), Counter::default());
        let shares = ShareMetrics::default();
        registry.register_collector(Box::new(requests.clone()));
        registry.register_collector(Box::new(shares.clone()));
        registry.register("http_connections", "Open connections", connections.clone());
        let help = "Connections closed at once, since too many were open";
        registry.register(
            "http_connections_refused",
            help,
            connections_refused.clone(),
        );
        let help = "Failures to remove content, or files of uploads, that nothing refers to";
        registry.register("content_sweep_failures", help, sweep_failures.clone());
        registry.register("sessions", "Signed-in sessions", sessions.clone());
        registry.register_collector(Box::new(StoreMetrics(store)));
        for other in others {
            registry.register_collector(other);
        }
        Self {
            requests,
            connections,
            connections_refused,
            shares,
            sweep_failures,
            sessions,
            registry,
        }
    }

    /// Counts an answered request. `route` is the pattern that matched, never the path itself.
    pub fn answered(
        &self,
        method: &Method,
        route: Option<&MatchedPath>,
        status: StatusCode,
        took: Duration,
    ) {
        self.requests.answered(method, route, status, took);
    }

    /// All metrics as text.
    ///
    /// # Errors
    /// When they can't be written.
    pub fn encode(&self, sessions: usize) -> Result<String, fmt::Error> {
        self.sessions
            .set(i64::try_from(sessions).unwrap_or(i64::MAX));
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }
}

/// Reads the store's own counters at each scrape.
#[derive(Debug)]
struct StoreMetrics(Store);

impl Collector for StoreMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let stats = self.0.stats();
        for (name, help, value) in [
            ("store_commits", "Batches that took effect", stats.commits),
            (
                "store_conflicts",
                "Batches whose assert failed",
                stats.conflicts,
            ),
            (
                "store_failures",
                "Batches that could not be written",
                stats.failures,
            ),
            (
                "store_groups",
                "Transactions, one disk sync each",
                stats.groups,
            ),
            (
                "store_looks",
                "Reads of records that may be remembered",
                stats.looks,
            ),
            (
                "store_looks_remembered",
                "Those that needed nothing but what was remembered",
                stats.looks_remembered,
            ),
        ] {
            let counter = ConstCounter::new(value);
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        for (name, help, value) in [
            (
                "store_queue",
                "Batches that wait for the writer",
                stats.waiting,
            ),
            (
                "store_pending_bytes",
                "Committed changes that are still to be written where they will stay",
                stats.pending_bytes,
            ),
        ] {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric)?;
        }
        encode_times(&mut encoder, &stats)?;
        encode_sizes(&mut encoder, &stats)
    }
}

/// The number of batches that shared a transaction.
fn encode_sizes(encoder: &mut DescriptorEncoder<'_>, stats: &StoreStats) -> fmt::Result {
    let sizes = stats.group_sizes;
    let last = sizes.len() - 1;
    let upper = |i: usize| match i == last {
        true => f64::MAX,
        false => f64::from((2_u32 << i) - 1),
    };
    let sizes = sizes.iter().enumerate();
    let buckets: Vec<(f64, u64)> = sizes.map(|(i, count)| (upper(i), *count)).collect();
    let batches = stats.commits + stats.conflicts + stats.failures;
    let name = "store_group_batches";
    let help = "Batches that shared a transaction";
    encoder
        .encode_descriptor(name, help, None, MetricType::Histogram)?
        .encode_histogram::<NoLabelSet>(batches as f64, stats.groups, &buckets, None)
}

/// The duration of transactions, sync included.
fn encode_times(encoder: &mut DescriptorEncoder<'_>, stats: &StoreStats) -> fmt::Result {
    let bounds = COMMIT_BOUNDS_US.iter().map(|us| *us as f64 / 1e6);
    let buckets: Vec<(f64, u64)> = bounds.chain([f64::MAX]).zip(stats.group_times).collect();
    let count = stats.group_times.iter().sum();
    let help = "Transactions by the time that they took, sync of the disk included";
    encoder
        .encode_descriptor("store_commit_seconds", help, None, MetricType::Histogram)?
        .encode_histogram::<NoLabelSet>(stats.group_us as f64 / 1e6, count, &buckets, None)
}
