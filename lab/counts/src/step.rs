//! Counts and times of one step.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::{ErrorCounts, Hist};

/// Phases of a request that have times of their own.
pub const PHASES: usize = 6;

/// Kinds of times of events: the first one, and each further one after the one before.
pub const EVENTS: usize = 2;

/// Counts of one step.
///
/// A request counts when it ends. Redirects and failed attempts that are sent again are parts of their request:
/// they count in `hops` and `retried`, and their times belong to the request's response time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepCounts {
    /// Requests that met their `expect`.
    #[serde(skip_serializing_if = "is_zero")]
    pub ok: u64,
    /// Requests that failed, by class.
    #[serde(skip_serializing_if = "ErrorCounts::is_empty")]
    pub errors: ErrorCounts,
    /// Redirects that were followed: messages on the wire that are in neither `ok` nor `errors`.
    #[serde(skip_serializing_if = "is_zero")]
    pub hops: u64,
    /// Failed attempts of requests that were sent again, by class; in neither `ok` nor `errors`.
    #[serde(skip_serializing_if = "ErrorCounts::is_empty")]
    pub retried: ErrorCounts,
    /// Sessions that arrived and were turned away before this step, the first of their workload.
    #[serde(skip_serializing_if = "is_zero")]
    pub turned_away: u64,
    /// Requests without a response when the drive ended. Their ages are in [`StepTimes::unanswered`].
    #[serde(skip_serializing_if = "is_zero")]
    pub unanswered: u64,
    /// Redirects that `ok` contains, each beside the response that it led to. Only in archives of programs that
    /// counted every redirect as a transaction.
    #[serde(skip_serializing_if = "is_zero")]
    pub redirects: u64,
    /// Attempts that `ok` and `errors` contain beside the first one of their request. Only in archives of programs
    /// that counted every attempt as a request.
    #[serde(skip_serializing_if = "is_zero")]
    pub retries: u64,
    /// Sum of the waits before attempts that were sent again, µs.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_wait_us: u64,
    /// Pauses of users after several failures without a response in a row.
    #[serde(skip_serializing_if = "is_zero")]
    pub pauses: u64,
    /// Sum of those pauses, µs.
    #[serde(skip_serializing_if = "is_zero")]
    pub pause_us: u64,
    /// Loops starting with this step that ended by their bound, not by their condition.
    #[serde(skip_serializing_if = "is_zero")]
    pub cut_off: u64,
    /// Steps skipped because a list was empty.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Entries added to a shared queue.
    #[serde(skip_serializing_if = "is_zero")]
    pub puts: u64,
    /// Entries dropped because the queue was full.
    #[serde(skip_serializing_if = "is_zero")]
    pub put_dropped: u64,
    /// Entries taken from a queue.
    #[serde(skip_serializing_if = "is_zero")]
    pub takes: u64,
    /// Steps in `skipped` that got no entry of a queue in time.
    #[serde(skip_serializing_if = "is_zero")]
    pub take_missed: u64,
    /// Rows of a pool that sessions starting with this step leased.
    #[serde(skip_serializing_if = "is_zero")]
    pub leases: u64,
    /// Planned requests that were not made since one before them had failed: those of the rest of a step, or of the
    /// rest of a session that ends at a failure.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_reached: u64,
    /// Completed waits.
    #[serde(skip_serializing_if = "is_zero")]
    pub waits: u64,
    /// Sum of their actual lengths, µs.
    #[serde(skip_serializing_if = "is_zero")]
    pub wait_sum_us: u64,
    /// Response bodies as received, bytes, chunk framing removed.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// The same bodies decoded, bytes; `None` where that is the same number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plain_bytes: Option<u64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if asks for it"
)]
pub(crate) fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl StepCounts {
    /// Requests that failed, of all classes.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.total()
    }

    /// Requests of the plan that ended, well or failed.
    #[must_use]
    pub fn ended(&self) -> u64 {
        (self.ok + self.failed()).saturating_sub(self.redirects + self.retries)
    }

    /// Failed attempts that were sent again, in archives of every program version.
    #[must_use]
    pub fn sent_again(&self) -> u64 {
        self.retried.total() + self.retries
    }

    /// Response bodies decoded, bytes.
    #[must_use]
    pub fn decoded_bytes(&self) -> u64 {
        self.plain_bytes.unwrap_or(self.bytes)
    }

    /// Counts a response body of `wire` bytes that is `plain` bytes long when decoded.
    pub fn add_body(&mut self, wire: u64, plain: u64) {
        if plain != wire || self.plain_bytes.is_some() {
            self.plain_bytes = Some(self.decoded_bytes() + plain);
        }
        self.bytes += wire;
    }
}

impl AddAssign<&StepCounts> for StepCounts {
    fn add_assign(&mut self, other: &Self) {
        // Every field is named, so that a new one can't be forgotten.
        let Self {
            ok,
            errors,
            hops,
            retried,
            turned_away,
            unanswered,
            redirects,
            retries,
            retry_wait_us,
            pauses,
            pause_us,
            cut_off,
            skipped,
            puts,
            put_dropped,
            takes,
            take_missed,
            leases,
            not_reached,
            waits,
            wait_sum_us,
            bytes,
            plain_bytes: _,
        } = other;
        self.add_body(*bytes, other.decoded_bytes());
        self.ok += ok;
        self.errors += *errors;
        self.hops += hops;
        self.retried += *retried;
        self.turned_away += turned_away;
        self.unanswered += unanswered;
        self.redirects += redirects;
        self.retries += retries;
        self.retry_wait_us += retry_wait_us;
        self.pauses += pauses;
        self.pause_us += pause_us;
        self.cut_off += cut_off;
        self.skipped += skipped;
        self.puts += puts;
        self.put_dropped += put_dropped;
        self.takes += takes;
        self.take_missed += take_missed;
        self.leases += leases;
        self.not_reached += not_reached;
        self.waits += waits;
        self.wait_sum_us += wait_sum_us;
    }
}

/// Times of one step, µs; a time of 0 counts as 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepTimes {
    /// Response times of requests that met their `expect`: from the planned send where there is a plan, else from
    /// the actual send of the first attempt, to the end of the last response.
    pub ok: Hist,
    /// Service times of the same requests, from the actual send. Empty for a step without a plan, where both
    /// are the same.
    pub service: Hist,
    /// Times to failure of the requests that failed, from where their response time would count.
    pub error: Hist,
    /// Ages of the requests that had no response when the drive ended, from where their response time would count.
    pub unanswered: Hist,
    /// Times of the phases of the requests that met their `expect`.
    pub phases: [Hist<2>; PHASES],
    /// For event streams, failed ones included: the time to the first event, from where the response time would count,
    /// and the time between each further one and the one before.
    pub events: [Hist; EVENTS],
    /// Times that users waited for the entries that the step takes, zero waits included.
    pub queue_wait: Hist,
    /// Times that users waited for rows of a pool before sessions that start with this step, zero waits included.
    pub lease_wait: Hist,
    /// Numbers that responses contain, in thousandths, in the order of the step's measures, up to the last one
    /// that has a value.
    pub measures: Vec<Hist>,
}

impl StepTimes {
    /// The histogram of the measure at this index; it exists from its first value on.
    pub fn measure(&mut self, place: usize) -> &mut Hist {
        while self.measures.len() <= place {
            self.measures.push(Hist::default());
        }
        &mut self.measures[place]
    }

    fn reset(&mut self) {
        let Self {
            ok,
            service,
            error,
            unanswered,
            phases,
            events,
            queue_wait,
            lease_wait,
            measures,
        } = self;
        for hist in [ok, service, error, unanswered, queue_wait, lease_wait] {
            hist.reset();
        }
        phases.iter_mut().for_each(Hist::reset);
        events.iter_mut().for_each(Hist::reset);
        measures.iter_mut().for_each(Hist::reset);
    }
}

impl AddAssign<&StepTimes> for StepTimes {
    fn add_assign(&mut self, other: &Self) {
        let Self {
            ok,
            service,
            error,
            unanswered,
            phases,
            events,
            queue_wait,
            lease_wait,
            measures,
        } = other;
        add(&mut self.queue_wait, queue_wait);
        add(&mut self.lease_wait, lease_wait);
        add(&mut self.ok, ok);
        add(&mut self.service, service);
        add(&mut self.error, error);
        add(&mut self.unanswered, unanswered);
        for (sum, one) in self.phases.iter_mut().zip(phases) {
            add(sum, one);
        }
        for (sum, one) in self.events.iter_mut().zip(events) {
            add(sum, one);
        }
        for (place, one) in measures.iter().enumerate() {
            add(self.measure(place), one);
        }
    }
}

fn add<const DIGITS: u8>(sum: &mut Hist<DIGITS>, one: &Hist<DIGITS>) {
    sum.add(one).expect("growing histograms hold any value");
}

/// Counts and times of one step in one window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepWindow {
    /// Its counts.
    pub counts: StepCounts,
    /// Its times.
    pub times: StepTimes,
}

impl StepWindow {
    /// Requests that met their `expect`.
    #[must_use]
    pub fn transactions(&self) -> u64 {
        self.counts.ok
    }

    /// Requests that failed, of all classes.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.counts.failed()
    }

    /// Removes all counts and values, and keeps the memory.
    pub fn reset(&mut self) {
        self.counts = StepCounts::default();
        self.times.reset();
    }
}

impl AddAssign<&StepWindow> for StepWindow {
    fn add_assign(&mut self, other: &Self) {
        self.counts += &other.counts;
        self.times += &other.times;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorClass;

    /// One count of each kind, all different.
    fn counts() -> StepCounts {
        let json = r#"{"ok":1,"errors":{"reset":2},"hops":3,"retried":{"timeout":4},"turned_away":5,
            "unanswered":6,"redirects":7,"retries":8,"retry_wait_us":9,"pauses":10,"pause_us":11,
            "cut_off":12,"skipped":13,"waits":14,"wait_sum_us":15,"bytes":16,"plain_bytes":17,
            "puts":18,"put_dropped":19,"takes":20,"take_missed":21,"leases":22,"not_reached":23}"#;
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn adds_every_count() {
        let mut sum = counts();
        sum += &counts();
        let (one, sum) = (
            serde_json::to_value(counts()).unwrap(),
            serde_json::to_value(&sum).unwrap(),
        );
        let one = one.as_object().unwrap();
        assert_eq!(one.len(), 23, "all have a number");
        for (name, value) in one {
            let (twice, value) = (&sum[name], value.clone());
            match value.as_u64() {
                Some(count) => assert_eq!(twice.as_u64(), Some(2 * count), "{name}"),
                None => assert_ne!(*twice, value, "{name}"),
            }
        }
    }

    #[test]
    fn omits_zeros_and_reads_them_back() {
        assert_eq!(serde_json::to_string(&StepCounts::default()).unwrap(), "{}");
        let back: StepCounts = serde_json::from_str("{}").unwrap();
        assert_eq!(back, StepCounts::default());
    }

    #[test]
    fn decoded_bytes_are_kept_apart_from_where_they_differ() {
        let mut sum = StepCounts::default();
        sum.add_body(10, 10);
        assert_eq!(sum.plain_bytes, None);
        sum.add_body(10, 40);
        sum.add_body(5, 5);
        assert_eq!((sum.bytes, sum.decoded_bytes()), (25, 55));
    }

    #[test]
    fn requests_of_the_plan_are_counted_once_in_old_archives() {
        let old = StepCounts {
            ok: 10,
            redirects: 4,
            retries: 2,
            errors: [(ErrorClass::Status, 3)].into_iter().collect(),
            ..StepCounts::default()
        };
        assert_eq!((old.ended(), old.sent_again()), (7, 2));
    }

    #[test]
    fn windows_add_up_and_are_reset() {
        let mut one = StepWindow {
            counts: counts(),
            ..StepWindow::default()
        };
        one.times.ok.record(5).unwrap();
        one.times.measure(1).record(7).unwrap();
        one.times.phases[3].record(9).unwrap();
        one.times.events[1].record(9).unwrap();
        one.times.unanswered.record(9).unwrap();
        one.times.queue_wait.record(9).unwrap();
        one.times.lease_wait.record(9).unwrap();
        let mut sum = one.clone();
        sum += &one;
        assert_eq!((sum.times.ok.len(), sum.times.measures[1].len()), (2, 2));
        assert_eq!(sum.times.phases[3].len() + sum.times.events[1].len(), 4);
        assert_eq!(
            (sum.times.queue_wait.len(), sum.times.lease_wait.len()),
            (2, 2)
        );
        let json = serde_json::to_string(&sum).unwrap();
        assert_eq!(serde_json::from_str::<StepWindow>(&json).unwrap(), sum);
        sum.reset();
        sum.times.measures.clear();
        assert_eq!(sum, StepWindow::default());
    }
}
