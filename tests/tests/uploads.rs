//! File uploads with the whole product: from a workload file to a server that parses forms by itself, a small program
//! in Python, and to the groupware's resumable uploads.

use std::fs;
use std::process::{Command, Output, Stdio};

use plimsoll_tests::program;

const STUDY: &str = "\
study: uploads
title: Photos
workload: uploads.workload.yaml
system:
  command:
    start: [python3, server.py, \"{{ port }}\"]
    files:
      server.py: |
        import http.server, sys, hashlib, email.parser, email.policy
        def told(content):
            return hashlib.sha256(content).hexdigest()
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'
            def answer(self, words):
                self.send_response(200)
                self.send_header('Content-Length', str(len(words)))
                self.end_headers()
                self.wfile.write(words.encode())
            def body(self):
                return self.rfile.read(int(self.headers['Content-Length']))
            def do_POST(self):
                head = b'Content-Type: ' + self.headers['Content-Type'].encode() + b'\\r\\n\\r\\n'
                parser = email.parser.BytesParser(policy=email.policy.HTTP)
                words = ''
                for part in parser.parsebytes(head + self.body()).iter_parts():
                    content = part.get_payload(decode=True)
                    words += part.get_param('name', header='content-disposition') + '='
                    if part.get_filename():
                        words += part.get_filename() + ',' + part.get_content_type() + ',' + told(content) + ';'
                    else:
                        words += content.decode() + ';'
                self.answer(words)
            def do_PUT(self):
                self.answer(told(self.body()))
            def log_message(self, *words):
                pass
        http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
    ready: { within: 30s }
load: { users: 9, ramp: 0s, hold: 3s }
trials: 1
repeats: 0
";

const WORKLOAD: &str = "\
workload: uploads
session:
  steps:
    - step: Form
      wait: 20ms
      request: POST /form
      multipart:
        note: \"from {{ index }}\"
        photo: { file: photo.jpg, name: \"p\\\"{{ index }}.jpg\" }
      expect: { status: 200, contains: \"note=from 7;photo=p%227.jpg,image/jpeg,SUM;\" }
    - step: File
      request: PUT /file
      body: { file: photo.jpg }
      expect: { status: 200, contains: SUM }
";

const RESUMABLE: &str = "\
workload: resumable
user: { name: \"user{{ index }}\" }
setup:
  - step: Log in
    request: POST /login
    form: { username: \"{{ name }}\", password: \"{{ password }}\" }
session:
  steps:
    - step: Create the document
      request: POST /docs/{{ name }}/photos/api/data/documents?form=Photo
      json: { Subject: A photo }
      expect: 201
      capture: { unid: \"$['@unid']\" }
    - step: Begin the attachment
      request: POST /tus/{{ name }}/photos/{{ unid }}/Body
      headers: { Tus-Resumable: 1.0.0, Upload-Length: \"700000\", Upload-Metadata: filename cC5qcGc= }
      expect: 201
      capture: { upload: header.location }
    - step: Write it
      request: PATCH {{ upload }}
      headers: { Tus-Resumable: 1.0.0, Content-Type: application/offset+octet-stream, Upload-Offset: \"0\" }
      body: { file: photo.jpg }
      expect: { status: 204, header: { Upload-Offset: \"700000\" } }
";

fn went_well(output: &Output) {
    let (said, told) = (&output.stdout, &output.stderr);
    let text = [said.as_slice(), told].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("all went as expected"), "{text}");
}

#[test]
fn files_arrive_byte_for_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let photo: Vec<u8> = (0..700_000_u32).map(|n| (n ^ (n >> 7)) as u8).collect();
    fs::write(at("photo.jpg"), photo).expect("written");
    let sum = Command::new("sha256sum").arg(at("photo.jpg")).output();
    let sum = String::from_utf8(sum.expect("a sum").stdout).expect("text");
    let workload = WORKLOAD.replace("SUM", &sum[..64]);
    fs::write(at("uploads.workload.yaml"), workload).expect("written");
    fs::write(at("uploads.study.yaml"), STUDY).expect("written");
    fs::write(at("resumable.workload.yaml"), RESUMABLE).expect("written");
    let resumable = "study: resumable\ntitle: Photos\nworkload: resumable.workload.yaml\n\
                     system: { groupware: {} }\nload: { users: 9, hold: 1s }\n";
    fs::write(at("resumable.study.yaml"), resumable).expect("written");
    let tried = |study: &str| {
        Command::new(program())
            .args(["try", study, "--user", "7"])
            .current_dir(folder.path())
            .env("PLIMSOLL_STATE", at("state"))
            .stdin(Stdio::null())
            .output()
            .expect("it runs")
    };
    went_well(&tried("uploads.study.yaml"));
    went_well(&tried("resumable.study.yaml"));
}
