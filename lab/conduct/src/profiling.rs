//! Takes the CPU profile of a trial's system, on a thread of its own that comes after all others.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_archive::{Frames, Noted, Profiled, TrialWriter};
use lab_driver::{Clock, step_back_for_good};
use lab_host::cores::Pinned;
use lab_sampling::{Refused, Sampler, Spec};
use lab_study::plan::{FramesWanted, Profiling};
use lab_workload::seed_of;

use crate::course::{Conductor, Facts};
use crate::event::Event;
use crate::far;
use crate::measuring::Spans;
use crate::profiles::{Decided, lock};
use crate::start::System;
use crate::stop::Stop;

/// The ways to find stacks are compared for so long before the hold.
const TRIAL_OF_FRAMES: Duration = Duration::from_secs(5);

/// A profile that is being taken.
#[derive(Debug)]
pub(crate) struct Profiler {
    end: SyncSender<()>,
    thread: JoinHandle<Result<Option<Sampler>, Refused>>,
}

impl Profiler {
    /// Ends it. `None` if the hold never began.
    pub(crate) fn end(self) -> Result<Option<Sampler>, Refused> {
        // One that has ended by itself hears nothing.
        let _ = self.end.send(());
        self.thread.join().unwrap_or(Ok(None))
    }
}

impl Conductor<'_> {
    /// Begins to sample the system where the study asks for it. A trial goes on without a profile that can't be taken.
    pub(crate) fn open_profile(&mut self, system: &System, facts: &mut Facts) -> Option<Sampler> {
        let profiling = self.plan.question.profile.clone()?;
        let opened = match self.profile_spec(system, &profiling) {
            Some(spec) => Sampler::open(spec).map_err(|refused| refused.to_string()),
            None => Err(self.unknown_process()),
        };
        match opened {
            Ok(sampler) => {
                lock(&self.profiles.decided)
                    .rate
                    .get_or_insert(sampler.rate());
                Some(sampler)
            }
            Err(problem) => {
                self.no_profile(problem, facts);
                None
            }
        }
    }

    fn unknown_process(&self) -> String {
        if far::is_far(self.trial) {
            "the system runs on another machine, and only systems on this one are profiled"
                .to_owned()
        } else {
            "the process of the system isn't known; name its `pid` under `attach`".to_owned()
        }
    }

    fn profile_spec(&self, system: &System, profiling: &Profiling) -> Option<Spec> {
        let counted = system.counted()?;
        let decided = *lock(&self.profiles.decided);
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
            budget: profiling.budget,
            length: self.hold(),
            seed: seed_of(self.plan.seed, "profile") ^ u64::from(self.trial.id),
        })
    }

    /// Samples the hold on a thread of its own.
    pub(crate) fn take_profile(&self, sampler: Sampler, clock: Clock, spans: Spans) -> Profiler {
        let (end, ended) = sync_channel(1);
        let decided = Arc::clone(&self.profiles.decided);
        let cores = match self.own_cores() {
            true => self.pinning.generator.clone(),
            false => Vec::new(),
        };
        let thread = std::thread::spawn(move || {
            // Refused where its cores are gone: then it stays where it is.
            let _pinned = Pinned::to(&cores);
            step_back_for_good();
            sample(sampler, clock, spans, &ended, &decided)
        });
        Profiler { end, thread }
    }

    /// Keeps what was sampled for [`Conductor::write_profile`].
    pub(crate) fn end_profile(&mut self, profiler: Profiler, facts: &mut Facts) {
        match profiler.end() {
            Ok(sampler) => facts.sampler = sampler,
            Err(refused) => self.no_profile(refused.to_string(), facts),
        }
    }

    /// Names what was sampled, while the system still runs, and writes it.
    pub(crate) fn write_profile(
        &self,
        writer: &mut TrialWriter,
        facts: &mut Facts,
    ) -> Result<(), Stop> {
        let Some(sampler) = facts.sampler.take() else {
            return Ok(());
        };
        let (profile, profiled) = sampler.finish();
        let written = profile.to_pprof();
        writer.cpu_profile(&written.bytes)?;
        facts.profile = Some(Profiled {
            other_samples: profiled.other_samples + written.other_samples,
            ..profiled
        });
        Ok(())
    }

    fn no_profile(&mut self, problem: String, facts: &mut Facts) {
        if !self.profiles.told.swap(true, Ordering::Relaxed) {
            self.tell(Event::Note(format!(
                "The system isn't profiled: {problem}."
            )));
        }
        facts.noted.push(Noted::NotProfiled { problem });
    }
}

/// Samples from the hold's start to its end, or until told to end. `None` if the hold never began.
fn sample(
    mut sampler: Sampler,
    clock: Clock,
    spans: Spans,
    ended: &Receiver<()>,
    decided: &Mutex<Decided>,
) -> Result<Option<Sampler>, Refused> {
    let (hold_at, end_at) = (spans.ramp, spans.ramp + spans.hold);
    let try_at = hold_at.saturating_sub(TRIAL_OF_FRAMES);
    let mut holds = false;
    let mut is_over = false;
    loop {
        let now = clock.now();
        if now >= end_at || is_over {
            sampler.end(now);
            return Ok(holds.then_some(sampler));
        }
        let due = if holds {
            sampler.turn(now).min(end_at)
        } else if now >= hold_at {
            // The other trial of a duet may have chosen meanwhile.
            let agree = |frames| *lock(decided).frames.get_or_insert(frames);
            sampler.begin(now, agree)?;
            holds = true;
            now
        } else if now >= try_at {
            sampler.try_out()?;
            sampler.turn(now).min(hold_at)
        } else {
            try_at
        };
        match ended.recv_timeout(due.saturating_sub(clock.now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => is_over = true,
        }
    }
}
