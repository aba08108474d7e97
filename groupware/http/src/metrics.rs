//! What the server counts, in Prometheus' text format.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use axum::extract::MatchedPath;
use groupware_store::Store;
use http::{Method, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, LabelSetEncoder, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds of the response times that are told apart, in seconds.
const SECONDS: [f64; 14] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

#[derive(Debug, Clone)]
struct NewHistogram;

impl prometheus_client::metrics::family::MetricConstructor<Histogram> for NewHistogram {
    fn new_metric(&self) -> Histogram {
        Histogram::new(SECONDS)
    }
}

/// The counters of a server.
#[derive(Debug)]
pub struct Metrics {
    requests: Family<Labels, Histogram, NewHistogram>,
    /// Open connections.
    pub connections: Gauge,
    /// Connections closed at once.
    pub connections_refused: Counter,
    /// Failures of the sweeps of content.
    pub sweep_failures: Counter,
    sessions: Gauge,
    registry: Registry,
}

impl Metrics {
    /// Counters that start at nought.
    pub fn new(store: Store) -> Self {
        let mut registry = Registry::with_prefix("plimsoll");
        let requests = Family::new_with_constructor(NewHistogram);
        let (connections, sessions) = (Gauge::default(), Gauge::default());
        let (connections_refused, sweep_failures) = (Counter::default(), Counter::default());
        let help = "Answered requests by the time from the end of the head to the response";
        registry.register("http_request_seconds", help, Family::clone(&requests));
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
        Self {
            requests,
            connections,
            connections_refused,
            sweep_failures,
            sessions,
            registry,
        }
    }

    /// Counts an answered request. `route` is the pattern that matched, never the path itself.
    pub fn answered(
        &self,
        method: &Method,
        route: Option<MatchedPath>,
        status: StatusCode,
        took: Duration,
    ) {
        let labels = Labels {
            method: method_name(method),
            route,
            status,
        };
        self.requests
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
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

/// Methods that clients make up must not make up labels.
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

#[derive(Debug, Clone)]
struct Labels {
    method: &'static str,
    route: Option<MatchedPath>,
    status: StatusCode,
}

impl Labels {
    fn route(&self) -> &str {
        self.route.as_ref().map_or("none", MatchedPath::as_str)
    }
}

impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        self.status == other.status && self.method == other.method && self.route() == other.route()
    }
}

impl Eq for Labels {}

impl Hash for Labels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.method, self.route(), self.status).hash(state);
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
            prometheus_client::encoding::EncodeLabel::encode(&label, encoder.encode_label())?;
        }
        Ok(())
    }
}

/// Reads the store's own counters when somebody asks.
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
        ] {
            let counter = ConstCounter::new(value);
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        let sizes = stats.group_sizes;
        let last = sizes.len() - 1;
        let buckets: Vec<(f64, u64)> = sizes
            .iter()
            .enumerate()
            .map(|(i, count)| {
                let upper = if i == last {
                    f64::MAX
                } else {
                    f64::from((2_u32 << i) - 1)
                };
                (upper, *count)
            })
            .collect();
        let batches = stats.commits + stats.conflicts + stats.failures;
        let name = "store_group_batches";
        let help = "Batches that shared a transaction";
        encoder
            .encode_descriptor(name, help, None, MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(batches as f64, stats.groups, &buckets, None)
    }
}
