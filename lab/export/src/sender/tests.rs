//! Sends figures of a run to receivers that accept them, reject them, are absent for a while, or for ever. The received
//! messages are decoded by their definition, and every figure is counted.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};

use lab_archive::Run;
use prost::Message;

use super::*;
use crate::encode::{otlp, prometheus};
use crate::source::Finished;

/// Enough for the slowest machine.
const MINUTES: Duration = Duration::from_secs(120);

/// A received request: the head, and the body.
type Got = (String, Vec<u8>);

/// A receiver that returns these responses, one per request, and the last one for ever.
fn receiver(answers: &'static [&'static str]) -> (String, Receiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, got) = sync_channel(10_000);
    std::thread::spawn(move || {
        let mut left = answers.iter();
        let mut answer = "";
        for stream in listener.incoming() {
            answer = left.next().copied().unwrap_or(answer);
            let Some(request) = read(&mut BufReader::new(stream.as_ref().unwrap())) else {
                continue;
            };
            let head = "Content-Length: 0\r\nConnection: close\r\n\r\n";
            // A client with the response may check at once.
            if sender.send(request).is_err() {
                break;
            }
            let _ = write!(stream.unwrap(), "HTTP/1.1 {answer}\r\n{head}");
        }
    });
    (format!("http://{address}/in"), got)
}

fn read(stream: &mut impl BufRead) -> Option<Got> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        line.to_lowercase()
            .strip_prefix("content-length:")?
            .trim()
            .parse()
            .ok()
    });
    let mut body = vec![0; length?];
    stream.read_exact(&mut body).ok()?;
    Some((head.to_lowercase(), body))
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/workload")
}

fn source() -> Source {
    let run = Run::open(&golden()).unwrap();
    let trial = |trial: &lab_archive::TrialData| Finished {
        id: trial.record.id,
        label: "a \"cell\", x=1".to_owned(),
        started: trial.record.started.clone(),
        is_valid: true,
    };
    Source::finished(&golden(), run.trials.iter().map(trial).collect()).unwrap()
}

fn figures() -> u64 {
    let mut source = source();
    let frames = std::iter::from_fn(|| source.frame().unwrap());
    frames.map(|frame| frame.figures.len() as u64).sum()
}

fn sent(kind: &str, place: &str, patience: Duration) -> Sent {
    let destination = Destination::new(&format!("{kind}={place}"), &|_| None).unwrap();
    let sender = Sender::start(&destination, source(), || ()).unwrap();
    sender.finish(patience, &AtomicBool::new(false)).unwrap()
}

fn whole() -> Sent {
    Sent {
        figures: figures(),
        ..Sent::default()
    }
}

/// Series by their labels, with the samples of all batches.
fn written(got: &Receiver<Got>) -> Vec<prometheus::TimeSeries> {
    let mut all = Vec::new();
    for (head, body) in got.try_iter() {
        assert!(head.contains("content-encoding: snappy"), "{head}");
        assert!(
            head.contains("x-prometheus-remote-write-version: 0.1.0"),
            "{head}"
        );
        let body = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
        let request = prometheus::WriteRequest::decode(&body[..]).unwrap();
        assert_eq!(request.metadata.len(), crate::METRICS.len());
        all.extend(request.timeseries);
    }
    all
}

#[test]
fn prometheus_gets_each_series_in_order_with_sorted_labels_and_an_end() {
    let (url, got) = receiver(&["204 No Content"]);
    assert_eq!(sent("prometheus", &url, MINUTES), whole());
    let mut last = std::collections::BTreeMap::new();
    let mut buckets = BTreeSet::new();
    for series in written(&got) {
        let labels: Vec<(&str, &str)> = series
            .labels
            .iter()
            .map(|label| (&*label.name, &*label.value))
            .collect();
        assert!(labels.is_sorted_by(|a, b| a.0 < b.0), "{labels:?}");
        assert!(series.histograms.is_empty());
        if let [("__name__", "plimsoll_response_time_seconds_bucket"), ..] = labels[..] {
            let bound = labels.iter().find(|label| label.0 == "le").unwrap();
            buckets.insert(bound.1.to_owned());
        }
        for sample in &series.samples {
            let before = last.insert(format!("{labels:?}"), sample.clone());
            assert!(before.is_none_or(|before| before.at_ms < sample.at_ms));
        }
    }
    assert_eq!(buckets.len(), 40, "39 bounds and infinity");
    let (of_trial, ended): (Vec<_>, Vec<_>) = last
        .iter()
        .partition(|(labels, _)| labels.contains("plimsoll_trial_valid"));
    assert_eq!(of_trial.len(), 2);
    assert!(ended.iter().all(|(_, sample)| sample.value.is_nan()));
}

#[test]
fn native_histograms_hold_all_times_at_the_end() {
    let (url, got) = receiver(&["200 OK"]);
    assert_eq!(sent("prometheus-native", &url, MINUTES), whole());
    let histograms: Vec<_> = written(&got)
        .into_iter()
        .flat_map(|series| series.histograms)
        .collect();
    let most = histograms.iter().map(|one| one.count).max().unwrap();
    assert!(most > 10);
    for one in &histograms {
        let mut count = 0;
        let in_buckets: i64 = one
            .deltas
            .iter()
            .map(|delta| {
                count += delta;
                count
            })
            .sum();
        assert_eq!(in_buckets.unsigned_abs() + one.zero_count, one.count);
    }
}

#[test]
fn a_collector_gets_one_resource_and_sums_that_only_grow() {
    let (url, got) = receiver(&["200 OK"]);
    assert_eq!(sent("otlp", &url, MINUTES), whole());
    let mut points = 0;
    for (head, body) in got.try_iter() {
        assert!(
            head.contains("content-type: application/x-protobuf"),
            "{head}"
        );
        let request = otlp::Request::decode(&body[..]).unwrap();
        let [resource] = &request.resource_metrics[..] else {
            panic!("{request:?}")
        };
        for metric in &resource.scope_metrics[0].metrics {
            assert!(metric.name.starts_with("plimsoll."), "{}", metric.name);
            points += match metric.data.as_ref().unwrap() {
                otlp::Data::Gauge(gauge) => gauge.points.len(),
                otlp::Data::Sum(sum) => {
                    assert!(sum.is_monotonic && sum.temporality == 2);
                    assert!(sum.points.iter().all(|point| point.start_ns <= point.at_ns));
                    sum.points.len()
                }
                otlp::Data::Times(times) => {
                    for point in &times.points {
                        let counts = point.positive.iter().flat_map(|buckets| &buckets.counts);
                        assert_eq!(counts.sum::<u64>() + point.zero_count, point.count);
                    }
                    times.points.len()
                }
            };
        }
    }
    assert_eq!(points as u64, figures());
}

#[test]
fn influx_gets_lines_whose_counts_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figures.lp");
    assert_eq!(sent("influx", path.to_str().unwrap(), MINUTES), whole());
    let text = std::fs::read_to_string(&path).unwrap();
    let count = |measurement: &str| -> u64 {
        let lines = text.lines().filter(|line| line.starts_with(measurement));
        lines
            .filter_map(|line| {
                let (_, count) = line.split_once(" count=")?;
                count.split_once('i')?.0.parse::<u64>().ok()
            })
            .sum()
    };
    assert!(count("plimsoll_response_time,") > 10);
    assert_eq!(
        count("plimsoll_response_time,"),
        count("plimsoll_response_time_bucket,")
    );
    assert_eq!(
        count("plimsoll_response_time,"),
        count("plimsoll_requests,"),
        "no errors in it"
    );
    assert!(
        text.contains(r#",cell=a\ "cell"\,\ x\=1,"#),
        "{}",
        &text[..200]
    );
    // An existing file is not overwritten.
    let destination = Destination::new(&format!("influx={}", path.display()), &|_| None).unwrap();
    let error = Sender::start(&destination, source(), || ()).unwrap_err();
    assert!(matches!(error, SendError::File { .. }));
}

#[test]
fn a_receiver_that_was_away_misses_nothing() {
    let (url, got) = receiver(&["503 Away", "429 Slow down", "200 OK"]);
    assert_eq!(sent("otlp", &url, MINUTES), whole());
    assert!(got.try_iter().count() > 3);
}

#[test]
fn what_is_refused_is_counted_and_the_rest_goes_on() {
    let (url, _got) = receiver(&["400 No", "204 No Content"]);
    let sent = sent("prometheus", &url, MINUTES);
    assert_eq!(sent.figures + sent.missing, figures());
    assert!(sent.missing >= BATCH as u64 && sent.figures > 0, "{sent:?}");
    assert_eq!(sent.why.as_deref(), Some("it answers 400 Bad Request"));
}

#[test]
fn nobody_waits_for_a_receiver_that_is_gone() {
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let sent = sent("prometheus", &format!("http://{gone}"), Duration::ZERO);
    assert_eq!((sent.figures, sent.missing), (0, figures()));
    assert!(sent.why.is_some());
}

#[test]
fn whoever_has_enough_waits_no_longer() {
    let (url, _got) = receiver(&["503 Away"]);
    let destination = Destination::new(&format!("otlp={url}"), &|_| None).unwrap();
    let sender = Sender::start(&destination, source(), || ()).unwrap();
    let sent = sender.finish(MINUTES * 60, &AtomicBool::new(true)).unwrap();
    assert_eq!((sent.figures, sent.missing), (0, figures()));
}

#[test]
fn a_receiver_is_asked_before_there_is_anything_to_send() {
    let (url, got) = receiver(&["401 Unauthorized", "204 No Content"]);
    let ask = |kind: &str| {
        let destination = Destination::new(&format!("{kind}={url}"), &|_| None).unwrap();
        Sender::ask(&destination).unwrap()
    };
    assert_eq!(ask("otlp").as_deref(), Some("it answers 401 Unauthorized"));
    assert_eq!(ask("prometheus"), None);
    assert_eq!(got.try_iter().count(), 2);
}
