//! Encodes frames for OpenTelemetry collectors: OTLP metrics as protobuf over HTTP
//! (<https://opentelemetry.io/docs/specs/otlp/>). Times are exponential histograms. Sums count from the start of a
//! trial's ramp.
//!
//! The messages omit fields that are never sent.

use lab_stats::exponential::{Exponential, SCALE};
use prost::{Message, Oneof};

use crate::figure::{Figure, Frame, METRICS, Metric, Shape, TrialLabels, VALID, Value};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: i32 = 2;
/// `DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK`: the end of a series.
const NO_VALUE: u32 = 1;

/// `ExportMetricsServiceRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Request {
    #[prost(message, repeated, tag = "1")]
    pub(crate) resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(crate) attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    pub(crate) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) metrics: Vec<MetricOf>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Scope {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

/// `Metric`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetricOf {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) description: String,
    #[prost(string, tag = "3")]
    pub(crate) unit: String,
    #[prost(oneof = "Data", tags = "5, 7, 10")]
    pub(crate) data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Data {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
    #[prost(message, tag = "10")]
    Times(Times),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Gauge {
    #[prost(message, repeated, tag = "1")]
    pub(crate) points: Vec<Number>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sum {
    #[prost(message, repeated, tag = "1")]
    pub(crate) points: Vec<Number>,
    #[prost(int32, tag = "2")]
    pub(crate) temporality: i32,
    #[prost(bool, tag = "3")]
    pub(crate) is_monotonic: bool,
}

/// `ExponentialHistogram`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Times {
    #[prost(message, repeated, tag = "1")]
    pub(crate) points: Vec<TimesPoint>,
    #[prost(int32, tag = "2")]
    pub(crate) temporality: i32,
}

/// `NumberDataPoint`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Number {
    #[prost(fixed64, tag = "2")]
    pub(crate) start_ns: u64,
    #[prost(fixed64, tag = "3")]
    pub(crate) at_ns: u64,
    #[prost(oneof = "NumberValue", tags = "4, 6")]
    pub(crate) value: Option<NumberValue>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) attributes: Vec<Attribute>,
    #[prost(uint32, tag = "8")]
    pub(crate) flags: u32,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum NumberValue {
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(sfixed64, tag = "6")]
    Int(i64),
}

/// `ExponentialHistogramDataPoint`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TimesPoint {
    #[prost(message, repeated, tag = "1")]
    pub(crate) attributes: Vec<Attribute>,
    #[prost(fixed64, tag = "2")]
    pub(crate) start_ns: u64,
    #[prost(fixed64, tag = "3")]
    pub(crate) at_ns: u64,
    #[prost(fixed64, tag = "4")]
    pub(crate) count: u64,
    #[prost(double, optional, tag = "5")]
    pub(crate) sum: Option<f64>,
    #[prost(sint32, tag = "6")]
    pub(crate) scale: i32,
    #[prost(fixed64, tag = "7")]
    pub(crate) zero_count: u64,
    #[prost(message, optional, tag = "8")]
    pub(crate) positive: Option<Buckets>,
    #[prost(uint32, tag = "10")]
    pub(crate) flags: u32,
}

/// Adjacent counts: the first is that of bucket `offset`, which starts at 2^(offset/2^scale).
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Buckets {
    #[prost(sint32, tag = "1")]
    pub(crate) offset: i32,
    #[prost(uint64, repeated, tag = "2")]
    pub(crate) counts: Vec<u64>,
}

/// `KeyValue`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Attribute {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct AnyValue {
    #[prost(string, optional, tag = "1")]
    pub(crate) text: Option<String>,
}

/// `ExportMetricsServiceResponse`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Response {
    #[prost(message, optional, tag = "1")]
    pub(crate) partial: Option<Partial>,
}

/// `ExportMetricsPartialSuccess`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Partial {
    #[prost(int64, tag = "1")]
    pub(crate) rejected: i64,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
}

/// The body of a request.
pub(crate) fn body(frames: &[Frame]) -> Vec<u8> {
    request(frames).encode_to_vec()
}

/// A request with the frames in their order. All of a batch belong to one run.
pub(crate) fn request(frames: &[Frame]) -> Request {
    let Some(first) = frames.first() else {
        return Request::default();
    };
    let metrics = METRICS.iter().filter_map(|metric| of(metric, frames));
    let scope = Scope {
        name: "plimsoll".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    Request {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource(&first.of)),
            scope_metrics: vec![ScopeMetrics {
                metrics: metrics.collect(),
                scope: Some(scope),
            }],
        }],
    }
}

fn resource(of: &TrialLabels) -> Resource {
    Resource {
        attributes: vec![
            attribute("service.name", "plimsoll"),
            attribute("service.version", env!("CARGO_PKG_VERSION")),
            attribute("service.instance.id", &of.run),
        ],
    }
}

fn of(metric: &'static Metric, frames: &[Frame]) -> Option<MetricOf> {
    let all = || {
        let figures = |frame| Frame::of(frame, metric).map(move |figure| (frame, figure));
        frames.iter().flat_map(figures)
    };
    all().next()?;
    let numbers = || all().filter_map(|(frame, figure)| number(frame, figure));
    let data = match metric.shape {
        Shape::Gauge => Data::Gauge(Gauge {
            points: numbers().collect(),
        }),
        Shape::Count => Data::Sum(Sum {
            points: numbers().collect(),
            temporality: CUMULATIVE,
            is_monotonic: true,
        }),
        Shape::Times => Data::Times(Times {
            points: all()
                .filter_map(|(frame, figure)| times(frame, figure))
                .collect(),
            temporality: CUMULATIVE,
        }),
    };
    Some(MetricOf {
        name: metric.name.replacen('_', ".", 1),
        description: metric.help.to_owned(),
        unit: match metric.unit {
            "seconds" => "s".to_owned(),
            other => other.to_owned(),
        },
        data: Some(data),
    })
}

fn number(frame: &Frame, figure: &Figure) -> Option<Number> {
    let value = match figure.value {
        Value::Gauge(value) => NumberValue::Double(value),
        Value::Count(all, _) => NumberValue::Int(all.cast_signed()),
        Value::Times(..) => return None,
    };
    let ends = frame.is_end && figure.metric != &VALID;
    Some(Number {
        start_ns: ns(frame.of.began_ms),
        at_ns: ns(frame.at_ms),
        value: (!ends).then_some(value),
        attributes: attributes(frame, figure),
        flags: if ends { NO_VALUE } else { 0 },
    })
}

fn times(frame: &Frame, figure: &Figure) -> Option<TimesPoint> {
    let Value::Times(all, _) = &figure.value else {
        return None;
    };
    let point = TimesPoint {
        attributes: attributes(frame, figure),
        start_ns: ns(frame.of.began_ms),
        at_ns: ns(frame.at_ms),
        scale: SCALE,
        ..TimesPoint::default()
    };
    Some(match frame.is_end {
        true => TimesPoint {
            flags: NO_VALUE,
            ..point
        },
        false => TimesPoint {
            count: all.count(),
            sum: Some(all.sum_s()),
            zero_count: all.zeros(),
            positive: buckets(all),
            ..point
        },
    })
}

fn buckets(times: &Exponential) -> Option<Buckets> {
    let (first, _) = times.buckets().next()?;
    let mut counts = Vec::new();
    for (at, count) in times.buckets() {
        counts.resize((at - first).unsigned_abs() as usize, 0);
        counts.push(count);
    }
    // Our buckets are numbered by their ends, these by their starts.
    let offset = first - 1;
    Some(Buckets { offset, counts })
}

fn attributes(frame: &Frame, figure: &Figure) -> Vec<Attribute> {
    let whose = frame.of.labels();
    let whose = whose.iter().map(|(name, value)| attribute(name, value));
    let own = figure.labels.iter();
    whose
        .chain(own.map(|(name, value)| attribute(name, value)))
        .collect()
}

fn attribute(key: &str, value: &str) -> Attribute {
    Attribute {
        key: key.to_owned(),
        value: Some(AnyValue {
            text: Some(value.to_owned()),
        }),
    }
}

fn ns(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or_default() * 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_begin_where_those_before_them_end() {
        let mut recorded = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        for us in [0, 900_000, 980_000, 1_100_000, 1_100_000] {
            recorded.record(us).unwrap();
        }
        let mut times = Exponential::default();
        times.add_us(&recorded);
        let buckets = buckets(&times).unwrap();
        assert_eq!(buckets.counts.iter().sum::<u64>() + times.zeros(), 5);
        for (at, count) in (buckets.offset..).zip(&buckets.counts) {
            let begin = (f64::from(at) / 16.0).exp2();
            let end = (f64::from(at + 1) / 16.0).exp2();
            let within = |s: f64| begin < s && s <= end;
            match count {
                0 => assert!(![0.9, 1.1].into_iter().any(within), "{begin}..{end}"),
                2 => assert!(within(1.1), "{begin}..{end}"),
                _ => assert!(within(0.9) || within(0.98), "{begin}..{end}"),
            }
        }
    }
}
