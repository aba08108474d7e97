//! Names of the histogram series in `steps.hlog`. It knows no histograms.

use std::fmt;
use std::str::FromStr;

/// One series of interval histograms; its text form is the tag in `steps.hlog`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Series {
    /// Times of one step: `NN/ok/response`.
    Step {
        /// Index into [`crate::Manifest::steps`].
        step: u16,
        /// Whether the requests met their `expect`.
        outcome: Outcome,
        /// Where the time counts from.
        kind: Kind,
    },
    /// Numbers in the answers of a step, in thousandths: `NN/measure/0`.
    Measure {
        /// Index into [`crate::Manifest::steps`].
        step: u16,
        /// The index among the step's measures, from 0; see [`crate::Manifest::measures`].
        place: u16,
    },
    /// Times of one transaction: `t00/ok/time`.
    Transaction {
        /// Index into [`crate::Manifest::transactions`].
        transaction: u16,
        /// Whether it was completed. A failed one has no time; the time of an unanswered one is the time so far.
        outcome: Outcome,
        /// Whether it includes think times.
        elapsed: bool,
    },
    /// Lateness of sends against their planned times: `lateness`.
    Lateness,
    /// Delay of a read after its data became readable: `loop`. Absent in archives of
    /// generators that didn't sample it.
    Loop,
    /// Durations of the sessions of a sequence, without sessions with a failed request: `session`.
    Session,
}

/// Whether a request met its `expect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It did.
    Ok,
    /// It failed, for any reason.
    Error,
    /// It had no response when the drive ended; its times are ages then.
    Unanswered,
}

impl Outcome {
    /// All of them.
    const ALL: [Self; 3] = [Self::Ok, Self::Error, Self::Unanswered];

    /// The name in tags.
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Unanswered => "unanswered",
        }
    }
}

/// Which time of a request it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// From the planned send where there is a plan, else from the actual send.
    Response,
    /// From the actual send; separate only where there is a plan.
    Service,
    /// The part of the whole for resolving the server's addresses.
    Dns,
    /// Likewise opening the connection.
    Connect,
    /// Likewise the handshake of TLS.
    Tls,
    /// Likewise waiting for a shared connection.
    Blocked,
    /// Likewise from the first byte sent to the first byte of the answer.
    Wait,
    /// Likewise from there to the last byte.
    Receive,
    /// For a stream of events: the time to the first one, from the start of the response time.
    FirstEvent,
    /// The time from one event to the next.
    BetweenEvents,
    /// The time that a user waited for an entry of a queue: not part of a request.
    QueueWait,
    /// The time that a user waited for a row of a pool before a session that begins with a step.
    LeaseWait,
}

/// The text in the place of an outcome in tags of measures.
const MEASURE: &str = "measure";

impl Kind {
    /// The phases of a request, in their order. Archives of earlier versions have none.
    pub const PHASES: [Self; 6] = [
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Blocked,
        Self::Wait,
        Self::Receive,
    ];

    /// The waits for shared state.
    pub const SHARED: [Self; 2] = [Self::QueueWait, Self::LeaseWait];

    /// The times of events, of requests that listen for them.
    pub const EVENTS: [Self; 2] = [Self::FirstEvent, Self::BetweenEvents];

    /// Returns the name in tags and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Service => "service",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Blocked => "blocked",
            Self::Wait => "wait",
            Self::Receive => "receive",
            Self::FirstEvent => "first_event",
            Self::BetweenEvents => "between_events",
            Self::QueueWait => "queue_wait",
            Self::LeaseWait => "lease_wait",
        }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, outcome, kind) = match self {
            Self::Lateness => return f.write_str("lateness"),
            Self::Loop => return f.write_str("loop"),
            Self::Session => return f.write_str("session"),
            Self::Transaction {
                transaction,
                outcome,
                elapsed,
            } => {
                let (outcome, kind) = (outcome.name(), transaction_kind(*elapsed));
                return write!(f, "t{transaction:02}/{outcome}/{kind}");
            }
            Self::Measure { step, place } => return write!(f, "{step:02}/{MEASURE}/{place}"),
            Self::Step {
                step,
                outcome,
                kind,
            } => (step, outcome, kind),
        };
        write!(f, "{step:02}/{}/{}", outcome.name(), kind.name())
    }
}

/// A tag that names no series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown tag {0:?}")]
pub struct UnknownTag(String);

impl FromStr for Series {
    type Err = UnknownTag;

    fn from_str(tag: &str) -> Result<Self, UnknownTag> {
        parse(tag).ok_or_else(|| UnknownTag(tag.chars().take(40).collect()))
    }
}

fn parse(tag: &str) -> Option<Series> {
    match tag {
        "lateness" => return Some(Series::Lateness),
        "loop" => return Some(Series::Loop),
        "session" => return Some(Series::Session),
        _ => {}
    }
    let mut parts = tag.split('/');
    let (step, outcome, kind) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    if let Some(transaction) = step.strip_prefix('t') {
        return parse_transaction(transaction, outcome, kind);
    }
    if !step.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if outcome == MEASURE {
        let is_place = kind.bytes().all(|b| b.is_ascii_digit());
        let (step, place) = (step.parse().ok()?, kind.parse().ok()?);
        return is_place.then_some(Series::Measure { step, place });
    }
    let mut known = Outcome::ALL.into_iter();
    let outcome = known.find(|known| known.name() == outcome)?;
    let known = [Kind::Response, Kind::Service]
        .into_iter()
        .chain(Kind::PHASES)
        .chain(Kind::EVENTS)
        .chain(Kind::SHARED);
    let kind = known.into_iter().find(|known| known.name() == kind)?;
    Some(Series::Step {
        step: step.parse().ok()?,
        outcome,
        kind,
    })
}

fn parse_transaction(transaction: &str, outcome: &str, kind: &str) -> Option<Series> {
    let is_number = transaction.bytes().all(|b| b.is_ascii_digit());
    let mut known = Outcome::ALL.into_iter();
    let outcome = known.find(|known| known.name() == outcome)?;
    let elapsed = [false, true].into_iter();
    let mut elapsed = elapsed.filter(|elapsed| transaction_kind(*elapsed) == kind);
    Some(Series::Transaction {
        transaction: transaction.parse().ok().filter(|_| is_number)?,
        outcome,
        elapsed: elapsed.next()?,
    })
}

fn transaction_kind(elapsed: bool) -> &'static str {
    match elapsed {
        true => "elapsed",
        false => "time",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_read_back() {
        for step in [0, 7, 99, 100, u16::MAX] {
            for outcome in Outcome::ALL {
                for kind in [Kind::Response, Kind::Service]
                    .into_iter()
                    .chain(Kind::PHASES)
                    .chain(Kind::EVENTS)
                    .chain(Kind::SHARED)
                {
                    let series = Series::Step {
                        step,
                        outcome,
                        kind,
                    };
                    assert_eq!(series.to_string().parse(), Ok(series));
                }
            }
        }
        let measure = |step, place| Series::Measure { step, place };
        assert_eq!(measure(3, 1).to_string(), "03/measure/1");
        let numbers = [measure(0, 0), measure(120, 19)];
        let transaction = |transaction, outcome, elapsed| Series::Transaction {
            transaction,
            outcome,
            elapsed,
        };
        let one = transaction(7, Outcome::Unanswered, true);
        assert_eq!(one.to_string(), "t07/unanswered/elapsed");
        let transactions = [one, transaction(100, Outcome::Ok, false)];
        let others = [Series::Lateness, Series::Loop, Series::Session];
        for series in others.into_iter().chain(numbers).chain(transactions) {
            assert_eq!(series.to_string().parse(), Ok(series));
        }
        let first = Series::Step {
            step: 3,
            outcome: Outcome::Ok,
            kind: Kind::Response,
        };
        assert_eq!(first.to_string(), "03/ok/response");
    }

    #[test]
    fn other_tags_are_refused() {
        for tag in [
            "",
            "ok",
            "1/ok",
            "1/ok/response/x",
            "+1/ok/response",
            "70000/ok/response",
            "1/fine/response",
            "1/measure/+2",
            "1/measure/",
            "t/ok/time",
            "t+1/ok/time",
            "t1/ok/response",
            "01/ok/time",
        ] {
            assert!(tag.parse::<Series>().is_err(), "{tag}");
        }
    }
}
