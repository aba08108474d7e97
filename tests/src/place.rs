//! A server and a scratch folder, for tests of the operator commands.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::program;
use crate::server::{ADMIN_TOKEN, ServerProcess};

/// A server and a scratch folder.
#[derive(Debug)]
pub struct ServedFolder {
    folder: tempfile::TempDir,
    arguments: Vec<String>,
    server: Option<ServerProcess>,
}

#[expect(clippy::new_without_default, reason = "it starts a server")]
impl ServedFolder {
    /// An empty folder and a server on a data folder in it.
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// The same, the server with these arguments.
    pub fn with(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let server = ServerProcess::start_with(folder.path(), arguments);
        let arguments = arguments.iter().map(|text| (*text).to_owned()).collect();
        Self {
            folder,
            arguments,
            server: Some(server),
        }
    }

    /// Kills the server, whatever it does.
    pub fn stop(&mut self) {
        drop(self.server.take());
    }

    /// The same, and starts another on the same data.
    pub fn kill_and_start_again(&mut self) {
        self.stop();
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        self.server = Some(ServerProcess::start_with(self.folder.path(), &arguments));
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The server.
    ///
    /// # Panics
    /// After [`stop`](Self::stop).
    pub fn server(&self) -> &ServerProcess {
        self.server.as_ref().expect("the server runs")
    }

    /// Returns a command that is not started yet.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments.split(' '))
            .current_dir(self.path())
            .env("PLIMSOLL_ADMIN_TOKEN", ADMIN_TOKEN)
            .env("PLIMSOLL_DATA", "data")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(server) = &self.server {
            command.env("PLIMSOLL_SERVER", format!("http://{}", server.address()));
        }
        command
    }

    /// Runs a command with this input; returns its output.
    pub fn run(&self, arguments: &str, input: &str) -> Output {
        let mut child = self.command(arguments).spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        // The command may close its input.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("it ends")
    }

    /// Returns the output of a command that must succeed.
    #[track_caller]
    pub fn good(&self, arguments: &str, input: &str) -> String {
        let output = self.run(arguments, input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {said}");
        String::from_utf8(output.stdout).expect("it is text")
    }

    /// Returns the output of a command that must end with this code.
    #[track_caller]
    pub fn bad(&self, arguments: &str, input: &str, code: i32) -> String {
        let output = self.run(arguments, input);
        let said = String::from_utf8(output.stderr).expect("it is text");
        assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
        assert!(!said.contains(ADMIN_TOKEN), "{said}");
        said
    }
}
