//! The interruption of a run by signals.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit::{Exit, Failure};

/// Ends a run when it becomes true.
pub(crate) type Interrupt = Arc<AtomicBool>;

/// Becomes true with the first Ctrl-C (or SIGTERM, or the terminal's end), which ends the trial under way cleanly. A
/// second one ends the program at once (the server ends by itself).
pub(crate) fn interrupt() -> Result<Interrupt, Failure> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let signals = [SIGINT, SIGTERM, SIGHUP];
    // Signals that `nohup` ignores stay ignored.
    let heard = signals
        .into_iter()
        .filter(|signal| *signal != SIGHUP || !ignored(SIGHUP));
    for signal in heard {
        let at_once =
            signal_hook::flag::register_conditional_shutdown(signal, 105, Arc::clone(&interrupt));
        at_once
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupt)))
            .map_err(|error| Failure::new(Exit::Internal, &error))?;
    }
    Ok(interrupt)
}

/// Returns true if this program was started with a signal ignored, by the kernel's record.
fn ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}
