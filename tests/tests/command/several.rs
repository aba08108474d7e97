//! A system of several processes: their order, their ports, and which of them failed.

use std::fs;

use plimsoll_tests::program;

use super::{Stage, read, text};

/// Two processes: the first serves, the second reports whether it is there, and serves the users.
const SEVERAL: &str = "\
study: command
title: A system of two processes
workload: hello.workload.yaml
system:
  processes:
    back:
      start: [bash, back.sh]
      files:
        back.sh: |
          echo 'back begins' >> ORDER
          sleep 0.5
          trap 'kill $server; wait $server; echo \"back ends\" >> ORDER; exit 0' TERM
          PROGRAM_PATH serve --listen 127.0.0.1:{{ port }} --data {{ scratch }}/back --engine memory &
          server=$!
          wait $server
      ready: { http: /healthz, within: 120s }
    front:
      start: [bash, front.sh]
      env: { BACK: \"{{ back_port }}\" }
      files:
        front.sh: |
          (exec 3<>/dev/tcp/127.0.0.1/$BACK) && echo 'front reaches back' >> ORDER
          echo 'this is the front'
          trap 'kill $server; wait $server; echo \"front ends\" >> ORDER; exit 0' TERM
          PROGRAM_PATH serve --listen 127.0.0.1:{{ port }} --data {{ scratch }}/front --engine memory &
          server=$!
          wait $server
      ready: { http: /healthz, within: 120s }
load: { users: 2, hold: 1s }
repeats: 0
";

fn several(from: &str, to: &str) -> Stage {
    let stage = Stage::new("1s");
    let order = stage.path("order");
    assert!(from.is_empty() || SEVERAL.contains(from), "{from}");
    let study = match from {
        "" => SEVERAL.to_owned(),
        from => SEVERAL.replacen(from, to, 1),
    };
    let study = study
        .replace("PROGRAM_PATH", program().to_str().expect("UTF-8"))
        .replace("ORDER", order.to_str().expect("UTF-8"));
    fs::write(stage.study(), study).expect("written");
    stage
}

#[test]
fn processes_start_in_their_order_and_end_in_reverse() {
    let stage = several("", "");
    let output = stage.run();
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 120)),
        "{code:?} {}",
        text(&output.stderr)
    );
    let record = stage.record("001");
    assert_eq!(record["end"]["how"], "complete", "{record}");
    assert!(!record["notes"].to_string().contains("killed"), "{record}");
    let settings = &record["system_settings"];
    assert_eq!(settings["start"], "bash front.sh");
    assert_eq!(settings["start of back"], "bash back.sh");
    let order = read(&stage.path("order"));
    let expected = "back begins\nfront reaches back\nfront ends\nback ends\n";
    assert_eq!(order, expected);
    let log = read(&stage.path("run/trials/001/system.log"));
    assert!(log.contains("this is the front"), "{log}");
}

#[test]
fn a_process_that_fails_is_named_with_its_last_lines() {
    let begins = "echo 'back begins' >> ORDER";
    let ready = "ready: { http: /healthz, within: 120s }";
    let wait = "wait $server\n      ready";
    for (from, to, says) in [
        (
            begins,
            "echo 'no disk'; exit 3",
            &[
                "back ended with exit status: 3 before all were ready",
                "no disk",
            ][..],
        ),
        (
            ready,
            "ready: { http: /never, within: 300ms }",
            &["back was not ready within 300ms"],
        ),
        (
            wait,
            "sleep 1; echo 'had enough'; kill $server; exit 4\n      ready",
            &["back ended with exit status: 4", "had enough"],
        ),
        (
            "start: [bash, back.sh]",
            "start: [./nowhere]\n      folder: /",
            &["there is no program ./nowhere"],
        ),
    ] {
        let stage = several(from, to);
        let study = read(&stage.study()).replace("hold: 1s", "hold: 20s");
        fs::write(stage.study(), study).expect("written");
        let output = stage.run();
        let said = match output.status.code() {
            Some(110) => stage.record("001")["end"]["message"].to_string(),
            _ => text(&output.stderr),
        };
        for part in says {
            assert!(said.contains(part), "{to}: no “{part}” in: {said}");
        }
    }
}
