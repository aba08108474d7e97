//! A stack for reading trees: what is nested in a text is nested on the stack.

use std::thread;

/// The stack in bytes. Memory is taken as it is used.
const STACK: usize = 512 << 20;
/// The deepest nesting of brackets.
pub(super) const NESTING: usize = 5_000;

/// Runs work on a large stack.
pub(super) fn deep<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK);
        let started = thread.spawn_scoped(scope, work);
        let joined = started.map(thread::ScopedJoinHandle::join);
        match joined {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(problem) => panic!("a thread can't be started: {problem}"),
        }
    })
}

/// The offset at which brackets are nested too deeply. Brackets in texts and comments count.
pub(super) fn too_deep(text: &str) -> Option<u32> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > NESTING {
            return Some(at as u32);
        }
    }
    None
}
