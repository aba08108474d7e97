//! The generator's memory per user: 15,000 users, each with an open connection and a long wait.

use std::process::Command;

use crate::common::Error;
use crate::driver::{CHILD, number_after};
use crate::nginx::Nginx;

const USERS: u32 = 15_000;
const SECONDS: u64 = 30;

/// Prints the figure.
pub(crate) fn measure() -> Result<(), Error> {
    let nginx = Nginx::start(1)?;
    let output = Command::new(std::env::current_exe()?)
        .args([
            CHILD,
            &nginx.url(),
            &USERS.to_string(),
            &SECONDS.to_string(),
            "5s..10s",
        ])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(Error::Peer(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ));
    }
    let (peak, errors) = (
        number_after(&text, "peak_kb ")?,
        number_after(&text, "errors ")?,
    );
    let requests = number_after(&text, "requests ")?;
    println!("memory: {USERS} users with open connections, waits of 5 to 10 s");
    let open = number_after(&text, "open_files ")?;
    println!(
        "  requests {requests:.0}, errors {errors:.0}, open files {open:.0}, peak memory {:.0} MB",
        peak / 1024.0
    );
    println!(
        "  per user                         {:>9.1} KB   (target <= 20)",
        peak / f64::from(USERS)
    );
    Ok(())
}
