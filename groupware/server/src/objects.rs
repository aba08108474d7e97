//! Attachments in an object store: opened for these records, and counted.

use std::fmt;
use std::sync::Arc;

use groupware_content::ContentStore;
use groupware_documents::content_place;
use groupware_objects::{Address, Credentials, OPERATIONS, OpenError, Shelf};
use groupware_service::random;
use groupware_store::Store;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::error::ServeError;

/// An object store for the content of attachments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPlace {
    /// Where.
    pub address: Address,
    /// As whom.
    pub credentials: Credentials,
}

/// Has content go where the settings say; refuses to forget what is elsewhere.
pub(crate) fn attach(
    store: &Store,
    content: ContentStore,
    place: Option<&ObjectPlace>,
) -> Result<(ContentStore, Option<Arc<Shelf>>), ServeError> {
    let Some(place) = place else {
        let known = store.read(content_place).map_err(OpenError::from)?;
        return match known {
            Some(known) if known.is_set_up => Err(ServeError::ObjectsElsewhere(known.name)),
            _ => Ok((content, None)),
        };
    };
    if place.address.is_plain_and_far() {
        tracing::warn!(
            address = %place.address,
            "attachments go over the network unencrypted: the object store's endpoint is http"
        );
    }
    let bits = || u128::from_le_bytes(random::bytes());
    let shelf = Shelf::open(store, (&place.address, &place.credentials), bits)?;
    tracing::info!(
        address = %place.address,
        server = shelf.server(),
        "attachments are in an object store"
    );
    Ok((content.with_objects(Arc::clone(&shelf) as _), Some(shelf)))
}

/// Reads what was counted of an object store when somebody asks.
pub(crate) struct ObjectMetrics(pub(crate) Arc<Shelf>);

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
