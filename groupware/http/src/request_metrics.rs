//! The number and duration of answered requests, by route and status.
//!
//! Each thread counts for itself without contention; a scrape adds up all counters.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::MatchedPath;
use http::{Method, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel, EncodeLabelSet, LabelSetEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;

/// Upper bounds of the buckets, in microseconds.
const BOUNDS_US: [u64; 14] = [
    100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000,
];
const BUCKETS: usize = BOUNDS_US.len() + 1;
/// More threads than this share counters, and may wait for each other.
const SHARDS: usize = 64;

/// Counters of answered requests. Clones are handles of the same counters.
#[derive(Clone)]
pub(crate) struct RequestMetrics(Arc<[Shard; SHARDS]>);

/// A thread's counters, on cache lines of their own.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<HashMap<Labels, Times>>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    buckets: [u64; BUCKETS],
    sum: Duration,
}

#[derive(Debug, Clone)]
struct Labels {
    method: &'static str,
    /// The pattern that matched, never the path itself.
    route: Option<MatchedPath>,
    status: StatusCode,
}

impl RequestMetrics {
    pub(crate) fn answered(
        &self,
        method: &Method,
        route: Option<&MatchedPath>,
        status: StatusCode,
        took: Duration,
    ) {
        let labels = Labels {
            method: method_name(method),
            route: route.cloned(),
            status,
        };
        self.0[shard()].lock().entry(labels).or_default().add(took);
    }

    /// Adds up the counters of all threads.
    fn merged(&self) -> BTreeMap<Labels, Times> {
        let mut all: BTreeMap<Labels, Times> = BTreeMap::new();
        for shard in self.0.iter() {
            for (labels, times) in &*shard.lock() {
                all.entry(labels.clone()).or_default().merge(times);
            }
        }
        all
    }
}

impl Default for RequestMetrics {
    fn default() -> Self {
        Self(Arc::new(std::array::from_fn(|_| Shard::default())))
    }
}

impl fmt::Debug for RequestMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestMetrics").finish_non_exhaustive()
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, HashMap<Labels, Times>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The index of this thread's counters.
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, Relaxed) % SHARDS;
    }
    MINE.with(|mine| *mine)
}

impl Times {
    fn add(&mut self, took: Duration) {
        let us = took.as_micros();
        let bucket = BOUNDS_US.partition_point(|bound| u128::from(*bound) < us);
        self.buckets[bucket] += 1;
        self.sum += took;
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += theirs;
        }
        self.sum += other.sum;
    }

    fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The upper bounds in seconds, and the count of each bucket.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS_US.iter().map(|us| *us as f64 / 1e6);
        bounds.chain([f64::MAX]).zip(self.buckets).collect()
    }
}

impl Collector for RequestMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Answered requests by the time from the end of the head to the response";
        let mut metric =
            encoder.encode_descriptor("http_request_seconds", help, None, MetricType::Histogram)?;
        for (labels, times) in self.merged() {
            metric
                .encode_family(&labels)?
                .encode_histogram::<NoLabelSet>(
                    times.sum.as_secs_f64(),
                    times.count(),
                    &times.buckets(),
                    None,
                )?;
        }
        Ok(())
    }
}

/// The label of a method. Methods that clients invent must not create labels.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}

impl Labels {
    fn route(&self) -> &str {
        self.route.as_ref().map_or("none", MatchedPath::as_str)
    }

    fn key(&self) -> (&str, &'static str, StatusCode) {
        (self.route(), self.method, self.status)
    }
}

impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Labels {}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Labels {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Labels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl EncodeLabelSet for Labels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), fmt::Error> {
        let labels = [
            ("method", self.method),
            ("route", self.route()),
            ("status", self.status.as_str()),
        ];
        for label in labels {
            EncodeLabel::encode(&label, encoder.encode_label())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_count_is_added_up() {
        let metrics = RequestMetrics::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for ms in [1, 3, 10_000] {
                        let took = Duration::from_millis(ms);
                        metrics.answered(&Method::GET, None, StatusCode::OK, took);
                    }
                });
            }
        });
        let merged = metrics.merged();
        assert_eq!(merged.len(), 1);
        let times = merged.into_values().next().unwrap();
        assert_eq!(
            (times.count(), times.sum),
            (12, Duration::from_millis(40_016))
        );
        // A bound belongs to the bucket below it, as Prometheus' `le` says.
        assert_eq!(
            (times.buckets[3], times.buckets[5], times.buckets[14]),
            (4, 4, 4)
        );
    }

    #[test]
    fn methods_that_clients_make_up_are_one() {
        let metrics = RequestMetrics::default();
        for method in ["FROB", "BORF"] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            metrics.answered(&method, None, StatusCode::OK, Duration::ZERO);
        }
        assert_eq!(metrics.merged().len(), 1);
    }
}
