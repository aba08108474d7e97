//! A whole run against a small server of another make: its accounts are made by requests, its state is filled by a
//! command and kept for the trials that follow. The state lists the requests that the server received.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use lab_archive::{Run, TrialEnd};
use lab_conduct::{Judged, run};

mod common;

use common::request;

/// Its accounts lie in `state/`, each with a password that it generates. Requests without a valid account are rejected.
/// Each new account is logged beside the run.
const SERVER: &str = r#"
import base64, http.server, json, os, sys
port, state, secret, told = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
os.makedirs(state, exist_ok=True)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *a): pass
    def say(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        self.wfile.write(b'%x\r\n%s\r\n0\r\n\r\n' % (len(body), body))
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        admin = 'Basic ' + base64.b64encode(('admin:' + secret).encode()).decode()
        if self.headers['Authorization'] != admin: return self.say(401, 'no admin')
        if self.headers['X-Realm'] != 'trial': return self.say(403, 'no realm')
        made = []
        for account in asked['accounts']:
            name = account['name']
            open(os.path.join(state, name), 'w').write('pass-' + name)
            open(told, 'a').write(name + '\n')
            made.append({'password': 'pass-' + name})
        self.say(201, {'accounts': made})
    def do_GET(self):
        _, name, password = self.path.split('/')
        full = os.path.exists(os.path.join(state, 'full'))
        kept = open(os.path.join(state, name)).read()
        self.say(200 if full and kept == password else 401, name)
http.server.ThreadingHTTPServer(('127.0.0.1', port), Handler).serve_forever()
"#;

const WORKLOAD: &str = "\
workload: small
about: A look at one's own account.
user: { name: \"user{{ index }}\" }
session:
  steps:
    - step: Look
      wait: 20ms
      request: GET /{{ name }}/{{ password }}
";

fn study(told: &Path) -> String {
    let told = told.display();
    let server = SERVER.trim_start().replace('\n', "\n        ");
    format!(
        r#"study: prepared
title: A server of another make
workload: small
system:
  command:
    start: [python3, server.py, "{{{{ port }}}}", "{{{{ scratch }}}}/state", "{{{{ secret }}}}", "{told}"]
    files:
      server.py: |
        {server}
    provision:
      - request: POST /accounts
        headers: {{ X-Realm: trial }}
        basic_auth: {{ username: admin, password: "{{{{ secret }}}}" }}
        json: {{ accounts: "{{{{ each }}}}" }}
        each: {{ name: "{{{{ name }}}}" }}
        users_per_request: 2
        expect: 201
        capture: {{ password: "$.accounts[*].password" }}
    fill:
      - command: [cp, "{{{{ users_file }}}}", "{{{{ scratch }}}}/state/full"]
    keep_state: {{ folder: state }}
load: {{ users: 3, ramp: 100ms, hold: 500ms }}
trials: 2
"#
    )
}

#[test]
fn another_server_is_provisioned_filled_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let told = dir.path().join("told");
    let request = request(dir.path(), (&study(&told), WORKLOAD), 1);
    let never = AtomicBool::new(false);
    let outcome = run(&request, &mut |_| {}, &mut |_, _| Judged::default(), &never).unwrap();
    assert_eq!((outcome.completed, outcome.trials), (2, 2));
    // Once for both trials.
    assert_eq!(fs::read_to_string(told).unwrap(), "user0\nuser1\nuser2\n");
    let archive = Run::open(&request.out).unwrap();
    assert_eq!(archive.trials.len(), 2);
    for trial in &archive.trials {
        assert_eq!(trial.record.end, TrialEnd::Complete);
        assert_eq!(trial.record.error_examples, []);
    }
}
