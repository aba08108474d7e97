//! The end of everything at Ctrl-C or SIGTERM.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

/// The exit code of a program that a signal has ended.
pub(crate) const INTERRUPTED: u8 = 130;

static OVER: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Returns true after a signal. Runs under way are abandoned and don't count.
pub(crate) fn is_over() -> bool {
    OVER.get().is_some_and(|over| over.load(Relaxed))
}

/// The first signal ends all child processes; a second one ends this program alone, at once.
pub(crate) fn hear_signals() {
    let over = OVER.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(over))
            .and_then(|_| register(signal, Arc::clone(over)))
            .expect("these signals can be heard");
    }
}
