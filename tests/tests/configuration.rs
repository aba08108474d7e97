//! A server with a configuration file, under a service manager: its notifications, and the effects of SIGHUP.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use plimsoll_tests::server::{Client, ServerProcess};
use plimsoll_tests::{program, repository, wait_until};
use serde_json::{Value, json};

/// Returns the next notification to the manager.
fn heard(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 500];
    let length = manager.recv(&mut bytes).expect("the server says something");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

fn mail_status(client: &mut Client) -> u16 {
    let mail = json!({
        "subject": "hello", "to": ["ada"],
        "content": [{ "contentType": "text/plain", "data": "hello" }],
    });
    let sent = client.request("POST", "/mail/ada/api/mail/outbox", &mail);
    sent.expect("an answer").status
}

#[test]
fn the_packaged_settings_of_several_servers_are_understood() {
    let file = repository().join("packaging/cluster/plimsoll.toml");
    let mut command = Command::new(program());
    command.args(["serve", "--print-config", "--config"]);
    let printed = command.arg(&file).output().expect("the program runs");
    assert!(printed.status.success(), "{printed:?}");
    let text = String::from_utf8_lossy(&printed.stdout);
    for setting in [
        "store = \"postgres://plimsoll@10.0.0.1,10.0.0.2,10.0.0.3/plimsoll",
        "proxy-protocol = [\"smtp\"]",
    ] {
        assert!(text.contains(setting), "{text}");
    }
}

/// A file of `packaging/`.
fn packaged(name: &str) -> String {
    let file = repository().join("packaging").join(name);
    std::fs::read_to_string(file).expect("it is there")
}

/// The services of the compose file, as parsed by Python's YAML; prints a message if that is missing.
fn services() -> Option<Value> {
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let read = Command::new("python3")
        .args(["-c", script])
        .arg(repository().join("packaging/cluster/compose.yml"))
        .output();
    match read {
        Ok(read) if read.status.success() => {
            let mut file: Value = serde_json::from_slice(&read.stdout).expect("it is JSON");
            Some(file["services"].take())
        }
        _ => {
            println!("SKIPPED: there is no python3 with yaml here");
            None
        }
    }
}

#[test]
fn what_the_compose_file_tells_servers_is_understood() {
    let Some(services) = services() else { return };
    let container = packaged("Containerfile");
    let set = container.lines().find_map(|line| line.strip_prefix("ENV "));
    let set = set.expect("the container has an environment").split(' ');
    let set: Vec<_> = set.filter_map(|one| one.split_once('=')).collect();
    for name in ["one", "two"] {
        let mut command = Command::new(program());
        command.args(["serve", "--print-config"]).envs(set.clone());
        let given = services[name]["environment"].as_object();
        for (name, value) in given.expect("a service has an environment") {
            let value = value.as_str().expect("a text");
            // Compose substitutes variables itself.
            let value = match value.starts_with("${PLIMSOLL_DB_PASSWORD:?") {
                true => "pa55word",
                false => value,
            };
            command.env(name, value);
        }
        let printed = command.output().expect("the program runs");
        let text = String::from_utf8_lossy(&printed.stdout);
        assert!(printed.status.success(), "{printed:?}");
        assert!(!text.contains("pa55word"), "{text}");
        for setting in [
            "listen = \"0.0.0.0:8340\"",
            "store = \"postgres://plimsoll@database/plimsoll",
            "172.16.0.0/12",
            "expose-without-tls = true",
        ] {
            assert!(text.contains(setting), "{setting}: {text}");
        }
    }
}

#[test]
fn haproxy_understands_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let pem = folder.path().join("plimsoll.pem");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let both = made.cert.pem() + &made.signing_key.serialize_pem();
    std::fs::write(&pem, both).expect("it can be written");
    for name in ["cluster/haproxy.cfg", "cluster/compose.haproxy.cfg"] {
        let text = packaged(name).replace("/etc/haproxy/plimsoll.pem", &pem.display().to_string());
        let file = folder.path().join("haproxy.cfg");
        std::fs::write(&file, text).expect("it can be written");
        // Debian puts it where only root's path has it.
        let path = format!(
            "{}:/usr/sbin",
            std::env::var("PATH").expect("there is a path")
        );
        let mut command = Command::new("haproxy");
        let checked = command.env("PATH", path).args(["-c", "-f"]).arg(&file);
        match checked.output() {
            Ok(said) => assert!(said.status.success(), "{name}: {said:?}"),
            Err(_) => println!("SKIPPED: there is no HAProxy here"),
        }
    }
}

#[test]
fn sighup_changes_what_can_be_and_names_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("plimsoll.toml");
    let write = |text: &str| std::fs::write(&file, text).expect("it can be written");
    write("log = \"json\"\nmail-quota = 1000000\n");
    let socket = folder.path().join("notify");
    let manager = UnixDatagram::bind(&socket).expect("a socket");
    let limit = Some(Duration::from_secs(120));
    manager.set_read_timeout(limit).expect("a limit");
    let mut command = Command::new(program());
    command.env("NOTIFY_SOCKET", &socket);
    let config = file.to_str().expect("a path in UTF-8");
    let mut server = ServerProcess::start_by(folder.path(), command, &["--config", config]);
    let ready = format!("READY=1\nSTATUS=listening on http://{}\n", server.address());
    assert_eq!(heard(&manager), ready);
    let mut admin = Client::admin(server.address()).expect("it accepts connections");
    let made = admin.request(
        "PUT",
        "/admin/users/ada",
        &json!({"password": "a pass phrase"}),
    );
    assert!(made.expect("an answer").status < 300);
    let mut ada = Client::user(server.address(), "ada", "a pass phrase").expect("a connection");
    assert_eq!(mail_status(&mut ada), 201);

    let hang_up = |server: &ServerProcess, words: &[&str]| {
        server.signal(Signal::SIGHUP);
        assert!(heard(&manager).starts_with("RELOADING=1\nMONOTONIC_USEC="));
        assert_eq!(heard(&manager), ready);
        wait_until(Duration::from_secs(120), words[0], || {
            let said = server.said();
            said.lines()
                .any(|line| words.iter().all(|word| line.contains(word)))
        });
    };
    write("log = \"json\"\nmail-quota = 1\ndomain = \"example.org\"\n");
    let changed = "\"changed\":\"mail-quota\"";
    hang_up(&server, &[changed, "\"needs_restart\":\"domain\""]);
    assert_eq!(mail_status(&mut ada), 507);
    write("log = \"json\"\nmail-quotta = 1\n");
    hang_up(&server, &["plimsoll.toml:2", "mail-quotta", "as it was"]);
    write("log = \"json\"\n");
    hang_up(&server, &[changed, "\"needs_restart\":\"\""]);
    assert_eq!(mail_status(&mut ada), 201);

    server.signal(Signal::SIGTERM);
    assert_eq!(heard(&manager), "STOPPING=1\n");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn sighup_ends_a_server_that_has_nothing_to_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = ServerProcess::start(folder.path());
    server.signal(Signal::SIGHUP);
    assert_eq!(server.ended(), Some(0));
}

fn printed(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let done = Command::new(program())
        .args(["serve", "--print-config"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program starts");
    let said = [done.stdout, done.stderr].concat();
    (
        done.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn what_is_printed_can_be_read_again_and_a_wrong_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, first) = printed(folder.path(), &["--domain", "example.org"]);
    assert_eq!(code, Some(0), "{first}");
    std::fs::write(folder.path().join("a.toml"), &first).expect("it can be written");
    let (code, second) = printed(folder.path(), &["--config", "a.toml"]);
    assert_eq!(code, Some(0), "{second}");
    let settings = |text: &str| -> Vec<String> {
        let lines = text.lines();
        lines
            .map(|line| line.split("  #").next().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(settings(&first), settings(&second));
    assert!(second.contains("\ndomain = \"example.org\"\n"), "{second}");
    std::fs::write(folder.path().join("b.toml"), "quota = 1\nlisen = \"x\"\n").expect("written");
    let (code, said) = printed(folder.path(), &["--config", "b.toml"]);
    assert_eq!(code, Some(104));
    let expected = "error: b.toml:2: there is no setting `lisen`\nhint: did you mean `listen`?\n";
    assert_eq!(said, expected);
}
