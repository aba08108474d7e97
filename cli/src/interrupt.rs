//! How a run is interrupted from outside.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit::{Exit, Failure};

/// Becomes true with the first Ctrl-C, which ends the trial under way cleanly; a second one ends the
/// program at once (the server follows by itself).
pub(crate) fn interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let at_once =
            signal_hook::flag::register_conditional_shutdown(signal, 105, Arc::clone(&interrupt));
        at_once
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupt)))
            .map_err(|error| Failure::new(Exit::Internal, &error))?;
    }
    Ok(interrupt)
}
