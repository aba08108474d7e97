//! A generator's side: workers that report to another process and take its orders.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::error::MessageError;
use super::message::{FromGenerator, ToGenerator, WireDrive, read, write};
use super::wire::WireReport;
use crate::clock::Clock;
use crate::control::{Control, Order};
use crate::crew::{self, Crew, spawn, validate};
use crate::drive::Drive;
use crate::error::DriverError;
use crate::report::{QUEUE, Report, WorkerWindow};
use crate::script::Script;

/// More users than any machine has ports for.
const MAX_USERS: u32 = 10_000_000;

/// Why a generator could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The conductor is gone, or says what can't be understood.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The conductor did not begin with what to drive.
    #[error("the first message is not what to drive")]
    NoStart,
    /// The drive is unusable, or did not end well.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// A generator's whole life: takes what to drive and its orders from `orders`, tells what happens
/// to `reports`, and returns when its workers have ended. When `orders` ends, they end.
///
/// # Errors
/// Whatever it could not do; the other side has been told where it can be.
pub fn generate(
    orders: impl Read + Send + 'static,
    mut reports: impl Write,
) -> Result<(), GenerateError> {
    let result = work(orders, &mut reports);
    if let Err(error) = &result {
        let detail = chain(error);
        // Whoever would read it may be gone.
        let _told = write(&mut reports, &FromGenerator::Failed { detail });
    }
    result
}

fn work(
    mut orders: impl Read + Send + 'static,
    reports: &mut impl Write,
) -> Result<(), GenerateError> {
    let Some(ToGenerator::Start(start)) = read(&mut orders)? else {
        return Err(GenerateError::NoStart);
    };
    let drive = start.drive()?.into_drive()?;
    validate(&drive)?;
    let make = crew::http(&drive)?;
    let drive = Arc::new(drive);
    let script = Arc::new(Script::new(&drive.workload));
    let clock = Clock::start();
    let control = Arc::new(Control::new());
    let (queue, told) = sync_channel(QUEUE);
    let crew = Crew::start(&drive, &script, clock, &control, &queue, make)?;
    drop(queue);
    let stop = StopAtEnd(Arc::clone(&control));
    let obeyed = Arc::clone(&control);
    spawn("orders".to_owned(), move || obey(orders, &obeyed, clock))?;
    let threads = crew.threads()?;
    write(reports, &FromGenerator::Ready { threads })?;
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

/// Ends the workers however the work ends.
struct StopAtEnd(Arc<Control>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Takes orders until they end; a conductor that is gone, or not understood, wants no load.
fn obey(mut orders: impl Read, control: &Control, clock: Clock) {
    while let Ok(Some(ToGenerator::Order(order))) = read(&mut orders) {
        control.adopt(Order {
            setup_step: order.setup_step,
            zero: order.zero_ns.map(|zero| clock.at_shared(zero)),
            stop: order.stop,
        });
    }
    control.stop();
}

/// Sends on what the workers report until the last has ended.
fn forward(
    told: &Receiver<(usize, Report)>,
    emptied: &[SyncSender<Box<WorkerWindow>>],
    reports: &mut impl Write,
) -> Result<(), MessageError> {
    for (worker, report) in told {
        let wire = WireReport::new(&report);
        let message = FromGenerator::Report {
            worker,
            report: wire,
        };
        write(reports, &message)?;
        if let Report::Window { mut window, .. } = report {
            window.reset();
            // A worker that has enough of them, or has ended, needs none.
            let _not_needed = emptied[worker].try_send(window);
        }
    }
    Ok(())
}

impl WireDrive {
    /// The drive, with the variables of its own users alone.
    pub(crate) fn into_drive(self) -> Result<Drive, MessageError> {
        let nonsense = |text: String| Err(MessageError::Nonsense(text));
        if self.part.index >= self.part.of || self.users > MAX_USERS {
            return nonsense(format!("{} users, {:?}", self.users, self.part));
        }
        let mine = (self.part.index..self.users).step_by(self.part.of as usize);
        let mut user_extra = Vec::new();
        if !self.user_extra.is_empty() {
            if self.user_extra.len() != mine.len() {
                return nonsense("variables for another number of users".to_owned());
            }
            user_extra.resize(self.users as usize, Vec::new());
            for (user, extra) in mine.zip(self.user_extra) {
                user_extra[user as usize] = extra;
            }
        }
        Ok(Drive {
            workload: Arc::new(self.workload.workload()?),
            base: match self.base.parse() {
                Ok(base) => base,
                Err(error) => return nonsense(format!("{error}")),
            },
            tls: self.tls,
            resolve: self.resolve,
            kind: self.kind,
            users: self.users,
            part: self.part,
            user_extra,
            seed: self.seed,
            block: self.block,
            base_date: self.base_date,
            cores: self.cores,
            own_cores: self.own_cores,
            ramp: self.ramp,
            hold: self.hold,
            window: self.window,
            limits: self.limits,
        })
    }
}

/// An error and its sources, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
