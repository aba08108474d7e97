//! Threads that only take note of what happens step behind those that make it happen.
//!
//! A worker that is woken waits for what runs on its core, whatever its priority: the kernel lets that
//! end its turn, up to the next tick (4 ms at 250 a second). Windows are merged and `/proc` is read for
//! a millisecond and more at a time. Only what runs as `SCHED_IDLE` makes way at once.

use rustix::process::{getpriority_process, setpriority_process};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// The calling thread runs where and when nobody else wants to, until this is dropped. Nothing must be
/// started from it meanwhile: it would begin so as well.
#[derive(Debug)]
pub struct Background {
    nice: i32,
}

impl Background {
    /// `None` where the way back is refused, as it is to who is not root.
    pub fn step_back() -> Option<Self> {
        let nice = getpriority_process(None).ok()?;
        setpriority_process(None, nice - 1).ok()?;
        let background = Self { nice };
        schedule(NormalThreadSchedulePolicy::Idle).then_some(background)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        schedule(NormalThreadSchedulePolicy::Other);
        // Allowed a moment ago.
        let _ = setpriority_process(None, self.nice);
    }
}

/// The calling thread steps back for good, which everybody may.
pub fn step_back_for_good() {
    // Refused where the kernel forbids even this: then it stays where it is.
    let _stays = schedule(NormalThreadSchedulePolicy::Idle);
}

fn schedule(policy: NormalThreadSchedulePolicy) -> bool {
    let policy = ThreadSchedulePolicy::Normal(policy);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
}

#[cfg(test)]
mod tests {
    use procfs::process::Process;

    use super::*;

    /// Scheduling policy and nice value of the calling thread.
    fn scheduled() -> (Option<u32>, i64) {
        let own = Process::myself().unwrap();
        let thread = own.task_from_tid(nix::unistd::gettid().as_raw()).unwrap();
        let stat = thread.stat().unwrap();
        (stat.policy, stat.nice)
    }

    #[test]
    fn a_thread_steps_back_and_returns() {
        let thread = std::thread::spawn(|| {
            let before = scheduled();
            let background = Background::step_back();
            let between = scheduled();
            let stepped = background.is_some();
            drop(background);
            (stepped, before, between, scheduled())
        });
        let (stepped, before, between, after) = thread.join().unwrap();
        assert_eq!(before, after);
        let idle = 5;
        assert_eq!(stepped, between.0 == Some(idle), "{between:?}");
    }
}
