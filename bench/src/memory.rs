//! The generator's memory: of a user with an open connection, and of each additional user on shared connections.

use std::process::Command;

use crate::common::Error;
use crate::driver::{CHILD, number_after};
use crate::nginx::Nginx;

/// Users with an open connection each.
const CONNECTED: u32 = 15_000;
/// A small and a large number of users on shared connections.
const SHARING: [u32; 2] = [20_000, 220_000];
const SHARED: &str = "100";
const SECONDS: u64 = 30;

/// Prints the figures.
pub(crate) fn measure() -> Result<(), Error> {
    let nginx = Nginx::start(1)?;
    let text = drive(&nginx, CONNECTED, "5s..10s", None)?;
    let (peak, requests) = (kb(&text)?, number_after(&text, "requests ")?);
    let errors = number_after(&text, "errors ")?;
    println!("memory: {CONNECTED} users with open connections, waits of 5 to 10 s");
    let open = number_after(&text, "open_files ")?;
    println!(
        "  requests {requests:.0}, errors {errors:.0}, open files {open:.0}, peak memory {:.0} MB",
        peak / 1024.0
    );
    println!(
        "  per user                         {:>9.1} KB   (target <= 20)",
        peak / f64::from(CONNECTED)
    );
    let [few, many] = SHARING.map(|users| drive(&nginx, users, "10s..20s", Some(SHARED)));
    let (few, many) = (few?, many?);
    let more = f64::from(SHARING[1] - SHARING[0]);
    let errors = number_after(&few, "errors ")? + number_after(&many, "errors ")?;
    println!(
        "memory: {} users who share {SHARED} connections, waits of 10 to 20 s",
        SHARING[1]
    );
    println!(
        "  requests {:.0}, errors {errors:.0}, peak memory {:.0} MB",
        number_after(&many, "requests ")?,
        kb(&many)? / 1024.0
    );
    println!(
        "  one user more                    {:>9.2} KB   (target <= 1)",
        (kb(&many)? - kb(&few)?) / more
    );
    Ok(())
}

/// Parses the generator's peak memory.
fn kb(text: &str) -> Result<f64, Error> {
    number_after(text, "peak_kb ")
}

/// Returns the final output of a generator with these users, in a separate process.
fn drive(nginx: &Nginx, users: u32, wait: &str, shared: Option<&str>) -> Result<String, Error> {
    let (url, users, seconds) = (nginx.url(), users.to_string(), SECONDS.to_string());
    let mut command = Command::new(std::env::current_exe()?);
    command.args([CHILD, &url, &users, &seconds, wait]);
    let output = command
        .args(shared.map(|connections| format!("1:{connections}")))
        .output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Peer(text));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
