//! Lowers the priority of threads that only observe, below the threads that they observe.
//!
//! A woken worker waits for the thread that runs on its core, whatever its priority: the kernel lets that thread run up
//! to the next tick (4 ms at 250 a second). Merging windows and reading `/proc` take a millisecond and more at a time.
//! Only a `SCHED_IDLE` thread yields at once.

use rustix::process::{getpriority_process, setpriority_process};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Runs the calling thread only on idle cores (`SCHED_IDLE`), until this is dropped. Don't start threads from it
/// meanwhile: they would inherit the policy.
#[derive(Debug)]
pub struct Background {
    nice: i32,
}

impl Background {
    /// Lowers the priority. Returns `None` if the kernel would refuse to restore it, as it does without root.
    pub fn lower_priority() -> Option<Self> {
        let nice = getpriority_process(None).ok()?;
        setpriority_process(None, nice - 1).ok()?;
        let background = Self { nice };
        schedule(NormalThreadSchedulePolicy::Idle).then_some(background)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        schedule(NormalThreadSchedulePolicy::Other);
        // The constructor has checked the permission.
        let _ = setpriority_process(None, self.nice);
    }
}

/// Lowers the priority of the calling thread for good, which needs no permission.
pub fn lower_priority_for_good() {
    // If the kernel forbids even this, the priority stays.
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

    /// Returns the scheduling policy and nice value of the calling thread.
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
            let background = Background::lower_priority();
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
