//! A stream of server-sent events as a whole product: from a workload file to the report. The server is a
//! small program in Python.

use std::fs;
use std::process::{Command, Stdio};

use plimsoll_tests::program;
use serde_json::Value;

const STUDY: &str = "\
study: events
title: Words, one after the other
workload: events.workload.yaml
system:
  command:
    start: [python3, server.py, \"{{ port }}\"]
    files:
      server.py: |
        import http.server, sys, time
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'
            disable_nagle_algorithm = True
            def do_POST(self):
                self.rfile.read(int(self.headers['Content-Length']))
                time.sleep(0.02)
                self.send_response(200)
                self.send_header('Content-Type', 'text/event-stream')
                self.send_header('Transfer-Encoding', 'chunked')
                self.end_headers()
                for word in ['{\"w\": 1}', '{\"w\": 2}', '{\"w\": 3}', '[DONE]']:
                    event = b'data: ' + word.encode() + b'\\n\\n'
                    self.wfile.write(b'%x\\r\\n%s\\r\\n' % (len(event), event))
                    self.wfile.flush()
                    time.sleep(0.01)
                self.wfile.write(b'0\\r\\n\\r\\n')
            def log_message(self, *words):
                pass
        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 128
        Server(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
    ready: { within: 30s }
load: { users: 3, ramp: 0s, hold: 3s }
thresholds:
  first_event{step:Ask}: [\"min > 19ms\"]
  between_events{step:Ask}: [\"max < 0.001ms\"]
trials: 1
repeats: 0
";

const WORKLOAD: &str = "\
workload: events
user: { question: \"why {{ index }}\", last: DONE }
session:
  steps:
    - step: Ask
      wait: 20ms
      request: POST /v1/completions
      json: { prompt: \"{{ question }}\", stream: true }
      events: { until: \"[{{ last }}]\" }
      expect: { status: 200, contains: '\"w\": 2' }
";

#[test]
fn events_are_counted_and_timed_from_the_file_to_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("events.study.yaml"), STUDY).expect("written");
    fs::write(at("events.workload.yaml"), WORKLOAD).expect("written");
    let plimsoll = |arguments: &[&str]| {
        Command::new(program())
            .args(arguments)
            .current_dir(folder.path())
            .env("PLIMSOLL_STATE", at("state"))
            .env("PLIMSOLL_PATIENCE", "0")
            .stdin(Stdio::null())
            .output()
            .expect("it runs")
    };
    let output = plimsoll(&["run", "events.study.yaml", "--out", "run"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = fs::read_to_string(at("run/result.json")).unwrap_or_else(|e| panic!("{e}: {said}"));
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let trial = &result["trials"][0];
    assert_eq!(trial["errors"], 0, "{trial:#}");
    let holds = |text: &str| {
        let all = trial["thresholds"].as_array().expect("thresholds");
        all.iter().find(|one| one["text"] == text).expect(text)["holds"].clone()
    };
    assert_eq!(holds("min > 19ms"), true, "{trial:#}");
    assert_eq!(holds("max < 0.001ms"), false, "{trial:#}");
    let step = &trial["steps"][0];
    let (first, between) = (
        &step["phases_ms"]["first_event"],
        &step["phases_ms"]["between_events"],
    );
    let answered = step["response_ms"]["count"].as_u64().expect("a count");
    assert!(answered > 0, "{step:#}");
    assert_eq!(first["count"], answered, "{step:#}");
    assert_eq!(between["count"], 3 * answered, "{step:#}");
    let ms = |times: &Value| times["min"].as_f64().expect("a time");
    assert!(ms(first) >= 19.0 && ms(between) > 0.0, "{step:#}");
    assert!(ms(&step["response_ms"]) >= 45.0, "{step:#}");
    let report = fs::read_to_string(at("run/report.html")).expect("a report");
    // The figures of a trial that other programs disturbed are not shown.
    let valid = trial["verdict"] == "valid";
    assert_eq!(report.contains("between them, ms"), valid);

    let wrong = WORKLOAD.replace("until:", "til:");
    fs::write(at("events.workload.yaml"), wrong).expect("written");
    let output = plimsoll(&["check", "events.study.yaml"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("events") && said.contains("until"), "{said}");
}
