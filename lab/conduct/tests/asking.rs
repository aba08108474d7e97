//! A whole run that asks a small server what it counts: what is in its archive.

use std::sync::atomic::AtomicBool;

use lab_archive::{Run, TrialData, TrialEnd};
use lab_asked::{Recorded, from_jsonl};
use lab_conduct::{Event, Judged, run};

mod common;

use common::request;

/// A server that counts its requests in a file, and returns the count in Prometheus' format.
const SERVER: &str = r#"
import http.server, os, sys, threading
lock = threading.Lock()
count = 0
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *a): pass
    def do_GET(self):
        global count
        body = 'ok'
        with lock:
            if self.path == '/metrics':
                body = '# TYPE requests_total counter\nrequests_total{path="/"} %d\n' % count
            else:
                count += 1
                with open('counted.new', 'w') as file:
                    file.write('requests: %d\n' % count)
                os.rename('counted.new', 'counted')
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
"#;

const WORKLOAD: &str = "\
workload: small
about: A look.
user: { name: \"user{{ index }}\" }
session:
  steps:
    - step: Look
      wait: 20ms
      request: GET /
";

const ASKS: &str = r#"
    page: { http: "http://127.0.0.1:{{ port }}/metrics", read: prometheus }
    name: { http: "http://{{ web_address }}:{{ web_port }}/metrics", read: prometheus }
    file: { command: [cat, "{{ scratch }}/counted"], read: lines }
    own: { command: [sh, -c, "echo pid: {{ pid }}"], read: lines }
    rows: { command: [printf, 'state\nbusy\nbusy\n'], read: table, count: { rows: 200ms } }
    late: { command: [sleep, "600"], read: lines }
    hidden: { command: [printf, 'text,calls\nhush,1\n'], read: table, text: false }
"#;

fn study() -> String {
    let server = SERVER.trim_start().replace('\n', "\n          ");
    format!(
        r#"study: asked
title: A server that counts
workload: small
system:
  processes:
    web:
      start: [python3, server.py, "{{{{ port }}}}"]
      files:
        server.py: |
          {server}
  ask:{}
load: {{ users: 3, ramp: 1s, hold: 4s }}
trials: 1
"#,
        ASKS.trim_end()
    )
}

/// The only trial of the run, and the messages of the run.
fn trial() -> (TrialData, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), (&study(), WORKLOAD), 1);
    let never = AtomicBool::new(false);
    let mut told = Vec::new();
    let mut events = |event| {
        if let Event::Note(note) = event {
            told.push(note);
        }
    };
    run(&request, &mut events, &mut |_, _| Judged::default(), &never).unwrap();
    let mut archive = Run::open(&request.out).unwrap();
    let trial = archive.trials.remove(0);
    assert_eq!(trial.record.end, TrialEnd::Complete);
    (trial, told)
}

/// The first and the last value of the only counter.
fn ends(of: &Recorded) -> ((f64, f64), (f64, f64)) {
    let answers = of.answers.iter().filter_map(|one| {
        let values = one.values.as_ref().ok()?;
        Some((one.t_ms, values[0]?))
    });
    let answers: Vec<(f64, f64)> = answers.collect();
    (answers[0], answers[answers.len() - 1])
}

#[test]
fn a_trial_has_what_its_system_counted() {
    let (trial, told) = trial();
    let bytes = trial.asked.as_ref().unwrap().as_ref().unwrap();
    let all = from_jsonl(bytes).unwrap();
    let of = |name: &str| all.iter().find(|one| one.name == name).unwrap();
    let windows = trial.windows.iter();
    let transactions: u64 = windows
        .flat_map(|window| window.steps.values().map(|step| step.ok))
        .sum();
    for name in ["page", "name", "file"] {
        let recorded = of(name);
        let ((from, first), (to, last)) = ends(recorded);
        assert!(from >= 1_000.0 && to > from, "{from} {to}");
        // The ramp's requests are in the first answer.
        assert!(first > 0.0 && last > first, "{name}: {first} {last}");
        assert!(
            last <= transactions as f64 + 3.0,
            "{name}: {last} {transactions}"
        );
    }
    assert_eq!(
        of("page").series[0].0.to_string(),
        "requests_total{path=\"/\"}"
    );
    let ((_, pid), _) = ends(of("own"));
    assert!(pid > 1.0);
    // Two rows for the whole time between the first and the last answer, unless answers were late.
    let rows = of("rows");
    let ((from, none), (to, time)) = ends(rows);
    assert_eq!(
        (rows.series[0].0.to_string().as_str(), none),
        ("time{state=\"busy\"}", 0.0)
    );
    assert!(
        time > 0.0 && time <= 2.0 * (to - from) + 1.0,
        "{time} {from} {to}"
    );
    let late = of("late");
    assert!(late.asked > 0 && late.asked == late.missed);
    assert!(
        told.iter()
            .any(|note| note
                == "The system did not say what it counts as `late`: no answer within 1 s."),
        "{told:?}"
    );
    let text = String::from_utf8_lossy(bytes);
    assert!(
        !text.contains("hush") && text.contains("\"text\",\"#"),
        "{text}"
    );
}
