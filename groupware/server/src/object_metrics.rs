//! The counters of an object store, as metrics.

use std::fmt;
use std::sync::Arc;

use groupware_objects::{OPERATIONS, ObjectStorage};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Reads the counters of an object store on each scrape.
pub(crate) struct ObjectMetrics(pub(crate) Arc<ObjectStorage>);

impl fmt::Debug for ObjectMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectMetrics").finish_non_exhaustive()
    }
}

impl Collector for ObjectMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stats = self.0.stats();
        for (name, help, counts) in [
            (
                "object_store_requests",
                "What was asked of the object store",
                stats.asked,
            ),
            (
                "object_store_failures",
                "What of that failed, tried again or not",
                stats.failed,
            ),
        ] {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (operation, count) in OPERATIONS.iter().zip(counts) {
                let labels = [("operation", *operation)];
                ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
            }
        }
        let (name, help) = ("object_store_seconds", "Time that the object store took");
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (operation, took_us) in OPERATIONS.iter().zip(stats.took_us) {
            let labels = [("operation", *operation)];
            let seconds = ConstCounter::new(took_us as f64 / 1e6);
            seconds.encode(metric.encode_family(&labels)?)?;
        }
        let (name, help) = ("object_store_bytes", "Bytes of content that were moved");
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (way, bytes) in [("in", stats.bytes_in), ("out", stats.bytes_out)] {
            let labels = [("way", way)];
            ConstCounter::new(bytes).encode(metric.encode_family(&labels)?)?;
        }
        let (name, help) = (
            "object_store_away",
            "Whether the object store was away when it was last asked",
        );
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::from(stats.is_away)).encode(metric)
    }
}
