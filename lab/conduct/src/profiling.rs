//! Takes the CPU profile of a trial's system, on its own thread, with the lowest scheduling priority.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_archive::{Frames, Profiled, TrialWriter, Warning};
use lab_driver::{Clock, lower_priority_for_good};
use lab_host::cores::Pinned;
use lab_sampling::{Recorded, Refused, Sampler, Spec};
use lab_study::plan::{FramesWanted, Profiling};
use lab_workload::seed_of;

use crate::course::{Conductor, TrialFacts};
use crate::event::Event;
use crate::measuring::Spans;
use crate::profiles::{Decided, lock};
use crate::remote_host;
use crate::start::System;
use crate::stop::Stop;

/// Duration of the comparison of stack unwinding methods, before the hold.
const TRIAL_OF_FRAMES: Duration = Duration::from_secs(5);

/// The choice is made this long before the hold, since new events take a moment.
const CHOICE: Duration = Duration::from_millis(300);

/// A profile that is being taken.
#[derive(Debug)]
pub(crate) struct Profiler {
    end: SyncSender<()>,
    thread: JoinHandle<Result<Option<Sampler>, Refused>>,
}

impl Profiler {
    /// Ends it. `None` if the hold never began.
    pub(crate) fn end(self) -> Result<Option<Sampler>, Refused> {
        // Fails if the thread has already ended.
        let _ = self.end.send(());
        self.thread.join().unwrap_or(Err(Refused::Panicked))
    }
}

impl Conductor<'_> {
    /// Opens the sampler of the trial's system if the study asks for a profile. If that fails, the trial goes on
    /// without one.
    pub(crate) fn open_profile(
        &mut self,
        system: &System,
        warnings: &mut Vec<Warning>,
    ) -> Option<Sampler> {
        let plan = self.plan;
        let profiling = plan.question.profile.as_ref()?;
        // One at a time: the first one measures what a sample costs, and its rate is that of all.
        let mut decided = lock(&self.profiles.decided);
        let opened = match self.profile_spec(system, profiling, *decided) {
            Some(spec) => Sampler::open(spec).map_err(|refused| refused.to_string()),
            None => Err(self.unknown_process()),
        };
        if let Ok(sampler) = &opened
            && sampler.refused().is_none()
        {
            decided.rate.get_or_insert(sampler.rate());
        }
        drop(decided);
        match opened {
            Ok(sampler) => {
                if let Some(refused) = sampler.refused() {
                    self.no_profile(refused.to_string(), warnings);
                }
                Some(sampler)
            }
            Err(problem) => {
                self.no_profile(problem, warnings);
                None
            }
        }
    }

    fn unknown_process(&self) -> String {
        if remote_host::is_remote(self.trial) {
            "the system runs on another machine, and only systems on this one are profiled"
                .to_owned()
        } else {
            "the process of the system isn't known; name its `pid` under `attach`".to_owned()
        }
    }

    fn profile_spec(
        &self,
        system: &System,
        profiling: &Profiling,
        decided: Decided,
    ) -> Option<Spec> {
        let counted = system.counted()?;
        let frames = match profiling.frames {
            FramesWanted::Auto => decided.frames,
            FramesWanted::Pointers => Some(Frames::Pointers),
            FramesWanted::Copies => Some(Frames::Copies),
        };
        Some(Spec {
            pid: counted.pid,
            hold: counted.hold.cloned(),
            rate: decided.rate.or(profiling.rate),
            frames,
            // The systems of a duet may share cores, and then each is sampled for both.
            budget: match self.plan.question.duet {
                true => profiling.budget / 2.0,
                false => profiling.budget,
            },
            length: self.hold(),
            // By block, so that the seconds without sampling are the same for both systems of a duet.
            seed: seed_of(self.plan.seed, "profile") ^ u64::from(self.trial.block),
            waits: profiling.waits.level(),
            idle: profiling.idle.clone(),
        })
    }

    /// Samples the hold on a thread of its own.
    pub(crate) fn take_profile(&self, sampler: Sampler, clock: Clock, spans: Spans) -> Profiler {
        let (end, ended) = sync_channel(1);
        let decided = Arc::clone(&self.profiles.decided);
        let cores = self.beside_cores();
        let thread = std::thread::spawn(move || {
            // Fails if the cores are gone; the thread then stays on its cores.
            let _pinned = Pinned::to(&cores);
            lower_priority_for_good();
            sample(sampler, clock, spans, &ended, &decided)
        });
        Profiler { end, thread }
    }

    /// Keeps the samples for [`Conductor::write_profile`].
    pub(crate) fn end_profile(&mut self, profiler: Profiler, facts: &mut TrialFacts) {
        match profiler.end() {
            Ok(sampler) => facts.sampler = sampler,
            Err(refused) => self.no_profile(refused.to_string(), &mut facts.warnings),
        }
    }

    /// Names what was sampled, while the system still runs, and writes it.
    pub(crate) fn write_profile(
        &mut self,
        writer: &mut TrialWriter,
        facts: &mut TrialFacts,
    ) -> Result<(), Stop> {
        let Some(sampler) = facts.sampler.take() else {
            return Ok(());
        };
        // It reads files of the system, which may be anything.
        let finished = catch_unwind(AssertUnwindSafe(|| sampler.finish()));
        let Ok(Recorded { cpu, waits }) = finished else {
            let problem = "the names of its functions could not be read: a fault of this program";
            self.no_profile(problem.to_owned(), &mut facts.warnings);
            return Ok(());
        };
        if let Some((profile, profiled)) = cpu {
            let written = profile.to_pprof();
            writer.cpu_profile(&written.bytes)?;
            facts.profile = Some(Profiled {
                other_samples: profiled.other_samples + written.other_samples,
                ..profiled
            });
        }
        if let Some(waits) = waits {
            if let Some(profile) = &waits.profile {
                writer.waits_profile(&profile.to_pprof().bytes)?;
            }
            writer.threads(&waits.threads)?;
            writer.latency(waits.hold, &waits.latency)?;
            facts.waits = Some(waits.facts);
        }
        Ok(())
    }

    fn no_profile(&mut self, problem: String, noted: &mut Vec<Warning>) {
        if !self.profiles.is_reported.swap(true, Ordering::Relaxed) {
            self.tell(Event::Note(format!(
                "The system isn't profiled: {problem}."
            )));
        }
        noted.push(Warning::NotProfiled { problem });
    }
}

/// Samples the system during the hold, until the hold ends or the caller stops it. Returns `None` if the hold never
/// began.
fn sample(
    mut sampler: Sampler,
    clock: Clock,
    spans: Spans,
    ended: &Receiver<()>,
    decided: &Mutex<Decided>,
) -> Result<Option<Sampler>, Refused> {
    let (hold_at, end_at) = (spans.ramp, spans.ramp + spans.hold);
    let choose_at = hold_at.saturating_sub(CHOICE);
    let try_at = choose_at.saturating_sub(TRIAL_OF_FRAMES);
    let mut holds = false;
    let mut is_over = false;
    loop {
        let now = clock.now();
        if now >= end_at || is_over {
            sampler.end(|| clock.now());
            return Ok(holds.then_some(sampler));
        }
        let due = if holds {
            sampler.turn(|| clock.now()).min(end_at)
        } else if now >= choose_at {
            // The other trial of a duet may have chosen meanwhile.
            sampler.choose(|frames| *lock(decided).frames.get_or_insert(frames))?;
            if now >= hold_at {
                sampler.begin(|| clock.now())?;
                holds = true;
            }
            hold_at
        } else if now >= try_at {
            sampler.try_out()?;
            sampler.turn(|| clock.now()).min(choose_at)
        } else {
            try_at
        };
        match ended.recv_timeout(due.saturating_sub(clock.now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => is_over = true,
        }
    }
}
