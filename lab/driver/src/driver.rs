//! Starts the workers, orders them to begin and to stop, and collects the summary.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::background::lower_priority_for_good;
use crate::client::Client;
use crate::clock::Clock;
use crate::control::Control;
use crate::crew::{self, Crew, Make, Speaking, WorkerThread, spawn, validate};
use crate::error::DriverError;
use crate::merger::Merger;
use crate::mix::Mix;
use crate::outline::Outline;
use crate::remote::{Common, GeneratorHandles, Generators, Peer};
use lab_recorder::event::{DriverEvent, DriverSummary};
use lab_recorder::report::{QUEUE, Queue, Report, queue};

/// A running load: setup at once, ramp and hold after [`Driver::begin`].
///
/// The caller must receive events until [`DriverEvent::Done`], or drop their receiver: a full event queue eventually
/// blocks the workers. Dropping the driver stops the load without waiting for its end.
#[derive(Debug)]
pub struct Driver {
    clock: Clock,
    control: Arc<Control>,
    threads: Vec<WorkerThread>,
    workers: Vec<JoinHandle<()>>,
    merger: Option<JoinHandle<DriverSummary>>,
    /// The connections to generators in other processes.
    generators: Option<GeneratorHandles>,
}

impl Driver {
    /// Starts the workers and, at once, setup: step by step, each after all users have finished the one before,
    /// [`crate::Limits::setup_concurrency`] users at a time, without waits.
    ///
    /// # Errors
    /// When the load spec is unusable, or a worker can't be started.
    pub fn start(
        mix: impl Into<Mix>,
        events: SyncSender<DriverEvent>,
    ) -> Result<Self, DriverError> {
        start(&mix.into(), events)
    }

    /// As [`Driver::start`], with the users spread over generators in processes of their own. These use the load spec's
    /// cores.
    ///
    /// A generator that ends early ends the load, and [`Driver::join`] reports the end of its stderr.
    ///
    /// # Errors
    /// As for [`Driver::start`]; or when a generator can't be started.
    pub fn start_generators(
        mix: impl Into<Mix>,
        generators: &Generators,
        events: SyncSender<DriverEvent>,
    ) -> Result<Self, DriverError> {
        let mix = mix.into();
        validate(&mix)?;
        if generators.count == 0 {
            return Err(DriverError::Load("it has no generators"));
        }
        let peers = generators.start(mix.first())?;
        Self::start_peers(mix, peers, events)
    }

    /// As [`Driver::start_generators`], with generators that already wait, local or remote.
    ///
    /// # Errors
    /// As for [`Driver::start`]; or when a generator is lost or refuses.
    pub fn start_peers(
        mix: impl Into<Mix>,
        peers: Vec<Peer>,
        events: SyncSender<DriverEvent>,
    ) -> Result<Self, DriverError> {
        let mix = mix.into();
        validate(&mix)?;
        let outline = Arc::new(Outline::of(&mix));
        let clock = Clock::start();
        let control = Arc::new(Control::new());
        let (queue, reports) = queue(QUEUE);
        let mut driver = Self::new(clock, &control);
        let common = Common {
            mix: &mix,
            outline: &outline,
            clock,
            control: &control,
            queue: &queue,
        };
        let generators = GeneratorHandles::open(&common, peers)?;
        // Each window from the wire is a new allocation: none is returned.
        let emptied = (0..generators.workers())
            .map(|_| sync_channel(1).0)
            .collect();
        let generators = driver.generators.insert(generators);
        let merger = Merger::new(outline, clock, control, events, emptied);
        driver.merger = Some(start_merger(merger, (queue, reports), &mix)?);
        driver.threads = generators.threads()?;
        Ok(driver)
    }

    /// As `start`, with another protocol.
    pub(crate) fn start_with<C: Client>(
        mix: impl Into<Mix>,
        events: SyncSender<DriverEvent>,
        make: impl Make<C>,
    ) -> Result<Self, DriverError> {
        let mix = mix.into();
        validate(&mix)?;
        let outline = Arc::new(Outline::of(&mix));
        let clock = Clock::start();
        let control = Arc::new(Control::new());
        let (queue, reports) = queue(QUEUE);
        let mut driver = Self::new(clock, &control);
        let mut crew = Crew::start(&mix, clock, &control, &queue, make)?;
        let emptied = std::mem::take(&mut crew.emptied);
        let merger = Merger::new(outline, clock, control, events, emptied);
        driver.merger = Some(start_merger(merger, (queue, reports), &mix)?);
        let pid = std::process::id();
        let threads = crew.threads();
        driver.workers = crew.workers;
        let threads = threads?.into_iter();
        driver.threads = threads.map(|tid| WorkerThread { pid, tid }).collect();
        Ok(driver)
    }

    fn new(clock: Clock, control: &Arc<Control>) -> Self {
        Self {
            clock,
            control: Arc::clone(control),
            threads: Vec::new(),
            workers: Vec::new(),
            merger: None,
            generators: None,
        }
    }

    /// Starts ramp and hold; call it after [`DriverEvent::SetupDone`]. The trial's clock reads 0 now, or shortly after
    /// with generators in other processes. With generators on other machines, the call waits until 0. A second call
    /// changes nothing.
    ///
    /// # Errors
    /// [`DriverError::Lost`] for a generator that does not confirm the start time in time.
    pub fn begin(&self) -> Result<Clock, DriverError> {
        let notice = self
            .generators
            .as_ref()
            .map_or(Duration::ZERO, GeneratorHandles::notice);
        let zero = self.clock.nanos() + lab_client::time::nanos(notice);
        let zero = Duration::from_nanos(self.control.begin(zero));
        if let Some(generators) = &self.generators {
            generators.arm(self.clock, zero)?;
        }
        Ok(self.clock.shifted(zero))
    }

    /// Returns the trial's clock; before [`Driver::begin`] it counts from the start of the driver.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let zero = self.control.zero().unwrap_or(0);
        self.clock.shifted(Duration::from_nanos(zero))
    }

    /// Returns the workers, by process and kernel thread id.
    #[must_use]
    pub fn worker_threads(&self) -> Vec<WorkerThread> {
        self.threads.clone()
    }

    /// Stops the load at once. The current window is still reported.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Waits for the end of all workers.
    ///
    /// # Errors
    /// When a thread of the driver panicked, or a generator process failed.
    pub fn join(mut self) -> Result<DriverSummary, DriverError> {
        let merger = self.merger.take().ok_or(DriverError::Panicked)?;
        let summary = merger.join().map_err(|_| DriverError::Panicked);
        self.control.stop();
        let workers: Vec<_> = self.workers.drain(..).map(JoinHandle::join).collect();
        if let Some(generators) = self.generators.take() {
            generators.close()?;
        }
        if workers.iter().any(Result::is_err) {
            return Err(DriverError::Panicked);
        }
        summary
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.control.stop();
    }
}

/// As [`Driver::start`]. Separate, because callers compile generic code again: all the load code, for each protocol.
fn start(mix: &Mix, events: SyncSender<DriverEvent>) -> Result<Driver, DriverError> {
    validate(mix)?;
    crew::speaking(mix, Starting { mix, events })?
}

/// A driver about to start, for any protocol.
struct Starting<'a> {
    mix: &'a Mix,
    events: SyncSender<DriverEvent>,
}

impl Speaking for Starting<'_> {
    type Output = Result<Driver, DriverError>;

    fn with<C: Client>(self, make: impl Make<C>) -> Self::Output {
        Driver::start_with(self.mix, self.events, make)
    }
}

/// Starts the thread that merges all reports in this queue. If the workers own their cores, a low-priority thread
/// merges until they have ended, so that it delays none of them. Then a thread of normal priority takes over, so that
/// other programs on those cores don't delay the end.
fn start_merger(
    mut merger: Merger,
    (queue, reports): (Queue, Receiver<(usize, Report)>),
    mix: &Mix,
) -> Result<JoinHandle<DriverSummary>, DriverError> {
    let workers = queue.senders();
    drop(queue);
    let name = "merger".to_owned();
    if !mix.first().own_cores {
        return spawn(name, move || merger.run(&reports));
    }
    let behind = spawn("merger-behind".to_owned(), move || {
        lower_priority_for_good();
        merger.begin();
        merger.follow(&reports, || workers.strong_count() > 0);
        (merger, reports)
    })?;
    spawn(name, move || {
        let (mut merger, reports) = behind.join().unwrap_or_else(|panic| resume_unwind(panic));
        merger.follow(&reports, || true);
        merger.end()
    })
}

#[cfg(test)]
mod tests {
    //! Tests of worker threads and their ends; the rules of time are tested in [`crate::simulation`].

    use super::*;
    use crate::simulation::{drive, step};
    use crate::timers::{Timer, Timers};
    use lab_client::{ClientCounts, Exchange, RequestId};
    use lab_workload::UserScope;
    use lab_workload::Wait;

    /// A client that always panics.
    struct Defective;

    impl lab_client::Client for Defective {
        type Time = Timers;
        type Session = ();

        fn session(&self) {}

        fn sibling(&self, (): &()) {}

        async fn exchange(
            &self,
            (): &mut (),
            _: RequestId,
            _: &mut UserScope,
            _: &Timer,
        ) -> Exchange {
            panic!("a defect");
        }

        fn forget(&self, _: RequestId, _: &mut UserScope) {}

        fn take_counts(&self) -> ClientCounts {
            ClientCounts::default()
        }
    }

    #[test]
    fn a_defect_in_a_user_is_not_swallowed() {
        for setup in [vec![], vec![step(Wait::None, 1)]] {
            let mut drive = drive(vec![step(Wait::None, 1)]);
            crate::simulation::workload(&mut drive).setup = setup;
            let (sender, events) = sync_channel(8);
            let driver = Driver::start_with(drive, sender, |_, _, _| Ok(Defective)).unwrap();
            driver.begin().unwrap();
            assert!(events.iter().count() > 0);
            assert!(matches!(driver.join(), Err(DriverError::Panicked)));
        }
    }
}
