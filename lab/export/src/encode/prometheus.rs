//! Encodes frames for Prometheus remote write, version 1: messages of protobuf, compressed by snappy
//! (<https://prometheus.io/docs/specs/prw/remote_write_spec/>).
//!
//! A stale marker (a special NaN) ends a series, so that a gauge doesn't stay for five minutes after its trial.

use std::collections::HashMap;

use lab_stats::exponential::{Exponential, SCALE};
use prost::Message;

use crate::figure::{Figure, Frame, METRICS, Metric, Shape, VALID, Value};

/// Prometheus's stale marker (`value.StaleNaN`).
const STALE: u64 = 0x7ff0_0000_0000_0002;
/// An empty bucket is smaller than another span.
const GAP: i32 = 2;

/// The form of histograms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Histograms {
    /// As series of buckets, which every version accepts.
    Classic,
    /// Native, one series each.
    Native,
}

/// A write request.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) timeseries: Vec<TimeSeries>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) metadata: Vec<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) histograms: Vec<Histogram>,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(crate) struct Label {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sample {
    #[prost(double, tag = "1")]
    pub(crate) value: f64,
    #[prost(int64, tag = "2")]
    pub(crate) at_ms: i64,
}

/// A native histogram; fields of negative values and of floats are omitted.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Histogram {
    #[prost(uint64, tag = "1")]
    pub(crate) count: u64,
    #[prost(double, tag = "3")]
    pub(crate) sum: f64,
    #[prost(sint32, tag = "4")]
    pub(crate) schema: i32,
    #[prost(double, tag = "5")]
    pub(crate) zero_threshold: f64,
    #[prost(uint64, tag = "6")]
    pub(crate) zero_count: u64,
    #[prost(message, repeated, tag = "11")]
    pub(crate) spans: Vec<Span>,
    #[prost(sint64, repeated, tag = "12")]
    pub(crate) deltas: Vec<i64>,
    #[prost(int64, tag = "15")]
    pub(crate) at_ms: i64,
}

/// Adjacent buckets: the distance from the end of the last span, and their number.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Span {
    #[prost(sint32, tag = "1")]
    pub(crate) offset: i32,
    #[prost(uint32, tag = "2")]
    pub(crate) length: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Metadata {
    /// 1 counter, 2 gauge, 3 histogram.
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "4")]
    help: String,
    #[prost(string, tag = "5")]
    unit: String,
}

/// The body of a request.
pub(crate) fn body(frames: &[Frame], histograms: Histograms) -> Vec<u8> {
    let request = WriteRequest {
        timeseries: series(frames, histograms),
        metadata: METRICS.iter().map(|metric| metadata(metric)).collect(),
    };
    let mut encoder = snap::raw::Encoder::new();
    // Only input above 4 GB is refused; frames are sent by the thousand.
    encoder
        .compress_vec(&request.encode_to_vec())
        .unwrap_or_default()
}

/// Frames as series, each with its samples in the order of time.
pub(crate) fn series(frames: &[Frame], histograms: Histograms) -> Vec<TimeSeries> {
    let mut sink = Sink::default();
    for frame in frames {
        for figure in &frame.figures {
            sink.figure(frame, figure, histograms);
        }
    }
    sink.series
}

#[derive(Default)]
struct Sink {
    series: Vec<TimeSeries>,
    places: HashMap<Vec<Label>, usize>,
}

impl Sink {
    fn of(&mut self, labels: Vec<Label>) -> &mut TimeSeries {
        let next = self.series.len();
        let at = *self.places.entry(labels).or_insert_with_key(|labels| {
            self.series.push(TimeSeries {
                labels: labels.clone(),
                ..TimeSeries::default()
            });
            next
        });
        &mut self.series[at]
    }

    fn sample(&mut self, frame: &Frame, labels: Vec<Label>, value: f64) {
        let value = match frame.is_end {
            true => f64::from_bits(STALE),
            false => value,
        };
        let at_ms = frame.at_ms;
        self.of(labels).samples.push(Sample { value, at_ms });
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    fn figure(&mut self, frame: &Frame, figure: &Figure, histograms: Histograms) {
        let name = name(figure.metric);
        let labels = |suffix: &str, more| labels(&format!("{name}{suffix}"), frame, figure, more);
        match &figure.value {
            // Sent once, at the end, and true from then on.
            Value::Gauge(value) if figure.metric == &VALID => {
                let (value, at_ms) = (*value, frame.at_ms);
                self.of(labels("", None))
                    .samples
                    .push(Sample { value, at_ms });
            }
            Value::Gauge(value) => self.sample(frame, labels("", None), *value),
            Value::Count(all, _) => self.sample(frame, labels("", None), *all as f64),
            Value::Times(all, _) => match histograms {
                Histograms::Native => {
                    let mut histogram = native(all, frame.at_ms);
                    if frame.is_end {
                        histogram.sum = f64::from_bits(STALE);
                    }
                    self.of(labels("", None)).histograms.push(histogram);
                }
                Histograms::Classic => {
                    for (bound, count) in all.classic() {
                        let bound = Some(bound.to_string());
                        self.sample(frame, labels("_bucket", bound), count as f64);
                    }
                    let count = all.count() as f64;
                    let last = labels("_bucket", Some("+Inf".to_owned()));
                    self.sample(frame, last, count);
                    self.sample(frame, labels("_count", None), count);
                    self.sample(frame, labels("_sum", None), all.sum_s());
                }
            },
        }
    }
}

/// A metric's name by Prometheus conventions: with its unit, and `total` for counters.
pub(crate) fn name(metric: &Metric) -> String {
    let end = match metric.shape {
        Shape::Count => "_total",
        _ => "",
    };
    match metric.unit {
        "" => format!("{}{end}", metric.name),
        unit => format!("{}_{unit}{end}", metric.name),
    }
}

/// Labels in the order of their names, as receivers require.
fn labels(name: &str, frame: &Frame, figure: &Figure, bound: Option<String>) -> Vec<Label> {
    let own = figure
        .labels
        .iter()
        .map(|(name, value)| (*name, value.to_string()));
    let mut all: Vec<(&str, String)> = frame.of.labels().into_iter().chain(own).collect();
    all.push(("__name__", name.to_owned()));
    all.push(("job", "plimsoll".to_owned()));
    all.extend(bound.map(|bound| ("le", bound)));
    all.sort_unstable_by_key(|(name, _)| *name);
    let label = |(name, value): (&str, String)| Label {
        name: name.to_owned(),
        value,
    };
    all.into_iter().map(label).collect()
}

fn native(times: &Exponential, at_ms: i64) -> Histogram {
    let mut spans: Vec<Span> = Vec::new();
    let mut deltas = Vec::new();
    let (mut end, mut last) = (0, 0);
    for (at, count) in times.buckets() {
        let gap = at - end;
        match spans.last_mut() {
            Some(span) if gap <= GAP => {
                for _ in 0..gap {
                    deltas.push(-last);
                    last = 0;
                }
                span.length += gap.unsigned_abs() + 1;
            }
            _ => spans.push(Span {
                offset: gap,
                length: 1,
            }),
        }
        let count = count.cast_signed();
        deltas.push(count - last);
        (end, last) = (at + 1, count);
    }
    Histogram {
        count: times.count(),
        sum: times.sum_s(),
        schema: SCALE,
        // A time recorded as 0 was less than half a microsecond.
        zero_threshold: 5e-7,
        zero_count: times.zeros(),
        spans,
        deltas,
        at_ms,
    }
}

fn metadata(metric: &Metric) -> Metadata {
    Metadata {
        kind: match metric.shape {
            Shape::Count => 1,
            Shape::Gauge => 2,
            Shape::Times => 3,
        },
        name: name(metric),
        help: metric.help.to_owned(),
        unit: metric.unit.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram as Hdr;
    use proptest::prelude::*;

    use super::*;

    /// Decodes spans and deltas to buckets, by the rules of the receiver.
    fn read(histogram: &Histogram) -> Vec<(i32, u64)> {
        let mut deltas = histogram.deltas.iter();
        let (mut at, mut count, mut read) = (0, 0, Vec::new());
        for span in &histogram.spans {
            at += span.offset;
            for _ in 0..span.length {
                count += deltas.next().expect("a count for each bucket");
                if count > 0 {
                    read.push((at, count.unsigned_abs()));
                }
                at += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        read
    }

    proptest! {
        #[test]
        fn native_histograms_read_back(
            values in proptest::collection::vec(0u64..100_000_000, 0..300),
        ) {
            let mut recorded = Hdr::new(3).unwrap();
            values.iter().for_each(|us| recorded.record(*us).unwrap());
            let mut times = Exponential::default();
            times.add_us(&recorded);
            let sent = native(&times, 7);
            prop_assert_eq!(read(&sent), times.buckets().collect::<Vec<_>>());
            prop_assert_eq!(sent.count, values.len() as u64);
            // Only the first span may start before 0 or touch the one before it.
            prop_assert!(sent.spans.iter().skip(1).all(|span| span.offset > GAP));
            let bytes = sent.encode_to_vec();
            prop_assert_eq!(Histogram::decode(&bytes[..]).unwrap(), sent);
        }
    }
}
