//! A route that panics: an answer, a line in the log, and a server that continues.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use groupware_http::{BodyLimits, Gate, Hosts, Metrics, REQUEST_ID, RequestLog, Streams};
use groupware_service::{Service, Settings};
use groupware_store::{Store, StoreOptions};
use http::{Request, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use tower::ServiceExt;

#[derive(Debug)]
struct Nothing;

impl Collector for Nothing {
    fn encode(&self, _: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        Ok(())
    }
}

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn gate(metrics: &Arc<Metrics>, store: Store) -> Gate {
    let service = Service::start(store, Settings::default()).unwrap();
    let limits = BodyLimits {
        most: 1000,
        within: Duration::from_secs(60),
        work_within: Duration::from_secs(60),
    };
    let log = Arc::new(RequestLog::new(false, Duration::from_secs(3600), 7));
    let waiting = (Arc::new(Streams::new()), std::env::temp_dir());
    Gate::new(
        service,
        limits,
        1,
        waiting,
        (Arc::clone(metrics), log),
        Hosts::any(),
    )
}

#[tokio::test]
async fn a_panic_is_an_answer_and_gives_its_permit_back() {
    let said = LogBuffer::default();
    let writer = said.clone();
    let lines = tracing_subscriber::fmt().with_writer(move || writer.clone());
    let _lines = tracing::subscriber::set_default(lines.finish());
    let store = Store::memory(StoreOptions::default()).unwrap();
    let metrics = Arc::new(Metrics::new(store.clone(), vec![Box::new(Nothing)]));
    let router = Router::new()
        .route(
            "/panic",
            get(|| async { panic!("what the route says") as String }),
        )
        .route("/calm", get(|| async { "calm" }))
        .layer(gate(&metrics, store).usual());
    let ask = |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        router.clone().oneshot(request)
    };
    // One request at a time is worked on: a permit lost in a panic would block all others.
    for _ in 0..3 {
        let answer = ask("/panic").await.unwrap();
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(answer.headers().contains_key(REQUEST_ID));
    }
    assert_eq!(ask("/calm").await.unwrap().status(), StatusCode::OK);
    let said = String::from_utf8(said.0.lock().unwrap().clone()).unwrap();
    assert_eq!(
        said.matches("panicked: what the route says").count(),
        3,
        "{said}"
    );
    assert!(
        said.contains("00000007-1") && !said.contains("calm"),
        "{said}"
    );
    let counted = metrics.encode(0).unwrap();
    let line = "http_request_seconds_count{method=\"GET\",route=\"/panic\",status=\"500\"} 3";
    assert!(counted.contains(line), "{counted}");
}
