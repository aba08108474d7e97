//! The generator's side: workers that report to another process and follow its orders.

use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::channel::{FrameSink, FrameSource};
use super::content;
use super::error::MessageError;
use super::message::{FromGenerator, ToGenerator, receive_message, send_message};
use crate::client::Client;
use crate::clock::Clock;
use crate::control::{Control, Order};
use crate::crew::{self, Crew, Make, Speaking, spawn, validate};
use crate::error::DriverError;
use crate::mix::Mix;
use lab_recorder::event::Window;
use lab_recorder::report::{QUEUE, Queue, Report, queue};

/// Why a generator failed.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The conductor is gone, or sent an unreadable message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The conductor did not begin with the load spec.
    #[error("the first message is not what to drive")]
    NoStart,
    /// The load spec is unusable, or the load failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// Runs a generator: takes the load spec and orders from `orders`, sends reports to `reports`, and returns when its
/// workers have ended. The end of `orders` ends them.
///
/// # Errors
/// The failure, which is also reported to the conductor if possible.
pub fn generate(
    orders: impl FrameSource + Send + 'static,
    reports: impl FrameSink + Send + 'static,
) -> Result<(), GenerateError> {
    let reports = Reports(Arc::new(Mutex::new(reports)));
    let result = work(orders, &reports);
    if let Err(error) = &result {
        let detail = chain(error);
        // The conductor may be gone.
        let _told = reports.send(&FromGenerator::Failed { detail });
    }
    result
}

/// The sender of the workers' reports and of the responses to orders.
struct Reports<S>(Arc<Mutex<S>>);

impl<S> Clone for Reports<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: FrameSink> Reports<S> {
    fn send(&self, message: &FromGenerator) -> Result<(), MessageError> {
        let mut to: MutexGuard<'_, S> = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        send_message(&mut *to, message)
    }
}

fn work(
    mut orders: impl FrameSource + Send + 'static,
    reports: &Reports<impl FrameSink + Send + 'static>,
) -> Result<(), GenerateError> {
    let Some(ToGenerator::Start(start)) = receive_message(&mut orders)? else {
        return Err(GenerateError::NoStart);
    };
    let mut mix = start.mix()?;
    content::receive(&mut mix, &mut orders)?;
    validate(&mix)?;
    let clock = Clock::start();
    let control = Arc::new(Control::new());
    let (queue, told) = queue(QUEUE);
    let hiring = Hiring {
        mix: &mix,
        clock,
        control: &control,
        queue,
    };
    let crew = hire(hiring)?;
    let stop = StopAtEnd(Arc::clone(&control));
    let (obeyed, answers) = (Arc::clone(&control), reports.clone());
    spawn("orders".to_owned(), move || {
        obey(orders, &obeyed, clock, &answers);
    })?;
    let threads = crew.threads()?;
    reports.send(&FromGenerator::Ready { threads })?;
    forward(&told, &crew.emptied, reports)?;
    drop(stop);
    let ended: Vec<_> = crew
        .workers
        .into_iter()
        .map(|worker| worker.join())
        .collect();
    if ended.iter().any(Result::is_err) {
        return Err(DriverError::Panicked.into());
    }
    Ok(())
}

/// Starts the workers. Callers of [`generate`] compile its generic code again; from here on, all the load code, for
/// each protocol, is compiled with this crate alone.
fn hire(hiring: Hiring<'_>) -> Result<Crew, DriverError> {
    crew::speaking(hiring.mix, hiring)?
}

/// Workers about to start, for any protocol.
struct Hiring<'a> {
    mix: &'a Mix,
    clock: Clock,
    control: &'a Control,
    queue: Queue,
}

impl Speaking for Hiring<'_> {
    type Output = Result<Crew, DriverError>;

    fn with<C: Client>(self, make: impl Make<C>) -> Self::Output {
        let Self {
            mix,
            clock,
            control,
            queue,
        } = self;
        Crew::start(mix, clock, control, &queue, make)
    }
}

/// Ends the workers on every exit.
struct StopAtEnd(Arc<Control>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Follows orders until they end. A lost or unreadable conductor ends the load.
fn obey(
    mut orders: impl FrameSource,
    control: &Control,
    clock: Clock,
    answers: &Reports<impl FrameSink>,
) {
    while let Ok(Some(ToGenerator::Order(order))) = receive_message(&mut orders) {
        let armed = control.zero().is_some();
        control.adopt(Order {
            setup_step: order.setup_step,
            zero: order.zero_ns.map(|zero| clock.at_shared(zero)),
            stop: order.stop,
        });
        if !armed && order.zero_ns.is_some() && answers.send(&FromGenerator::Armed).is_err() {
            break;
        }
    }
    control.stop();
}

/// Forwards the workers' reports until the last has ended.
fn forward(
    told: &Receiver<(usize, Report)>,
    emptied: &[SyncSender<Box<Window>>],
    reports: &Reports<impl FrameSink>,
) -> Result<(), MessageError> {
    for (worker, report) in told {
        let message = FromGenerator::Report { worker, report };
        reports.send(&message)?;
        if let FromGenerator::Report {
            report: Report::Window { mut window, .. },
            ..
        } = message
        {
            window.reset();
            // A worker with enough of them, or an ended one, needs none.
            let _not_needed = emptied[worker].try_send(window);
        }
    }
    Ok(())
}

/// Returns an error and its sources, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
