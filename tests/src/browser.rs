//! A real browser, by WebDriver, if there is one on this machine.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running `chromedriver`; it ends with this value.
#[derive(Debug)]
pub struct Driver {
    child: Child,
    port: u16,
    browser: PathBuf,
}

impl Driver {
    /// Starts `chromedriver` on a free port. Without driver or browser, returns `None` and prints to standard error
    /// that `test` is skipped, past the test's captured output.
    pub fn start(test: &str) -> Option<Self> {
        let found = find("chromedriver").zip(find("chromium").or_else(|| find("google-chrome")));
        let Some((driver, browser)) = found else {
            let line = format!("SKIPPED {test}: chromedriver and chromium are not installed\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            return None;
        };
        let mut child = Command::new(driver)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the driver starts");
        let output = child.stdout.take().expect("its output is piped");
        let mut lines = BufReader::new(output).lines();
        let port = lines.by_ref().find_map(|line| {
            let line = line.ok()?;
            let rest = line.split_once("started successfully on port ")?.1;
            rest.trim_end_matches('.').parse().ok()
        });
        // Later output must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self {
            child,
            port: port.expect("the driver says its port"),
            browser,
        })
    }

    /// The address that it listens on.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The path of the browser that it drives.
    pub fn browser(&self) -> &Path {
        &self.browser
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(program));
    places.find(|place| place.is_file())
}
