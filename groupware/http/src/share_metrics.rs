//! The use of shared resources, in Prometheus' text format: connections, turns, memory.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use groupware_net::{Admission, Gauge};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The shared resources that a scrape reads. Clones are handles of the same set.
#[derive(Debug, Clone, Default)]
pub struct ShareMetrics(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    admissions: Vec<(&'static str, Arc<Admission>)>,
    pools: Vec<(&'static str, Gauge)>,
}

impl ShareMetrics {
    /// Adds the connections of a protocol.
    pub fn admission(&self, protocol: &'static str, admission: Arc<Admission>) {
        self.lock().admissions.push((protocol, admission));
    }

    /// Adds a pool.
    pub fn pool(&self, name: &'static str, gauge: Gauge) {
        self.lock().pools.push((name, gauge));
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names and values of labels.
type Labels<'a> = Vec<(&'static str, &'a str)>;

impl Collector for ShareMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let shared = self.lock();
        encode_connections(&mut encoder, &shared.admissions)?;
        encode_pools(&mut encoder, &shared.pools)
    }
}

fn encode_connections(
    encoder: &mut DescriptorEncoder<'_>,
    admissions: &[(&'static str, Arc<Admission>)],
) -> fmt::Result {
    let (mut open, mut most, mut refused, mut displaced) = (vec![], vec![], vec![], vec![]);
    for (protocol, admission) in admissions {
        let (stats, name) = (admission.stats(), ("protocol", *protocol));
        most.push((vec![name], stats.most as u64));
        displaced.push((vec![name], stats.displaced));
        for (of, count) in [
            ("strangers", stats.strangers),
            ("users", stats.users),
            ("trusted", stats.trusted),
        ] {
            open.push((vec![name, ("of", of)], count as u64));
        }
        for (reason, count) in [
            ("full", stats.refused.full),
            ("share", stats.refused.share),
            ("header", stats.refused.header),
        ] {
            refused.push((vec![name, ("reason", reason)], count));
        }
    }
    let help = "Open connections by whose they are";
    gauges(encoder, ("admission_connections", help), &open)?;
    gauges(
        encoder,
        ("admission_connections_most", "Most open connections"),
        &most,
    )?;
    let help = "Connections that were not let in";
    counters(encoder, ("admission_refused", help), &refused)?;
    let help = "Strangers' connections that were ended to make room for others";
    counters(encoder, ("admission_displaced", help), &displaced)
}

fn encode_pools(
    encoder: &mut DescriptorEncoder<'_>,
    pools: &[(&'static str, Gauge)],
) -> fmt::Result {
    let (mut taken, mut units, mut short) = (vec![], vec![], vec![]);
    for (name, gauge) in pools {
        let (stats, name) = (gauge.read(), ("pool", *name));
        let users = stats.taken.saturating_sub(stats.strangers);
        units.push((vec![name, ("of", "all")], stats.units as u64));
        taken.push((vec![name, ("of", "strangers")], stats.strangers as u64));
        taken.push((vec![name, ("of", "users")], users as u64));
        if let Some((apart, apart_taken)) = stats.trusted {
            units.push((vec![name, ("of", "trusted")], apart as u64));
            taken.push((vec![name, ("of", "trusted")], apart_taken as u64));
        }
        short.push((vec![name, ("outcome", "waited")], stats.waits));
        short.push((vec![name, ("outcome", "refused")], stats.refusals));
    }
    let help = "Units of what is shared that are taken: turns, or KiB of memory";
    gauges(encoder, ("share_taken", help), &taken)?;
    gauges(
        encoder,
        ("share_units", "Units that there are to share"),
        &units,
    )?;
    let help = "How often a share, or the whole pool, was used up";
    counters(encoder, ("share_used_up", help), &short)
}

fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    values: &[(Labels<'_>, u64)],
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        let gauge = ConstGauge::new(i64::try_from(*value).unwrap_or(i64::MAX));
        gauge.encode(metric.encode_family(labels)?)?;
    }
    Ok(())
}

fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    values: &[(Labels<'_>, u64)],
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in values {
        ConstCounter::new(*value).encode(metric.encode_family(labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use groupware_net::{FairSemaphore, Networks, Principal, TrustedNetworks};
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn what_is_taken_and_refused_is_told() {
        let metrics = ShareMetrics::default();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(metrics.clone()));
        let known = TrustedNetworks::new(Networks::loopback(), Networks::default());
        let admission = Arc::new(Admission::new(2, known).with_most_of_client(1));
        metrics.admission("http", Arc::clone(&admission));
        let pool = FairSemaphore::new(8).with_trusted(4);
        metrics.pool("turns", pool.gauge());
        let stranger = [192, 0, 2, 1].into();
        let _slots = [stranger, stranger, [127, 0, 0, 1].into()]
            .map(|address| admission.enter(address, false));
        let _taken = pool.try_take(&Principal::Client(stranger), 2);
        assert!(pool.try_take(&Principal::Client(stranger), 1).is_none());
        let mut told = String::new();
        text::encode(&mut told, &registry).unwrap();
        for line in [
            r#"admission_connections{protocol="http",of="strangers"} 1"#,
            r#"admission_connections{protocol="http",of="trusted"} 1"#,
            r#"admission_connections_most{protocol="http"} 2"#,
            r#"admission_refused_total{protocol="http",reason="share"} 1"#,
            r#"admission_displaced_total{protocol="http"} 0"#,
            r#"share_taken{pool="turns",of="strangers"} 2"#,
            r#"share_taken{pool="turns",of="users"} 0"#,
            r#"share_units{pool="turns",of="trusted"} 4"#,
            r#"share_used_up_total{pool="turns",outcome="refused"} 1"#,
        ] {
            assert!(told.lines().any(|told| told == line), "{line}\n{told}");
        }
    }
}
