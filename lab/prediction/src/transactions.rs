//! Counts the transactions of each name that a replay starts. It knows no times.

use std::ops::Range;

use lab_workload::{Round, Session};

use crate::prediction::Span;

/// The transactions of a session, in the order of [`Session::transaction_names`].
pub(crate) struct Transactions(Vec<Named>);

struct Named {
    steps: Range<usize>,
    each: Round,
    /// The present one has sent a request,
    is_begun: bool,
    /// and one that is sent whatever the responses.
    is_sure: bool,
    begun: u64,
    sure: u64,
}

impl Transactions {
    pub(crate) fn of(session: &Session) -> Self {
        let whole = session
            .is_transaction()
            .then_some((0..session.steps.len(), Round::Session));
        let named = session.transactions.iter();
        let named = named.map(|one| (one.steps.clone(), one.each));
        let all = whole.into_iter().chain(named);
        let all = all.map(|(steps, each)| Named {
            steps,
            each,
            is_begun: false,
            is_sure: false,
            begun: 0,
            sure: 0,
        });
        Self(all.collect())
    }

    /// A session starts, or a round of a group or of a step with these steps.
    pub(crate) fn start(&mut self, each: Round, steps: Range<usize>) {
        let within =
            |one: &&mut Named| steps.start <= one.steps.start && one.steps.end <= steps.end;
        let all = self.0.iter_mut().filter(|one| one.each == each);
        for one in all.filter(within) {
            (one.is_begun, one.is_sure) = (false, false);
        }
    }

    /// Records the requests of a step; `surely` if some of them are sent whatever the responses.
    pub(crate) fn sent(&mut self, step: usize, surely: bool) {
        for one in &mut self.0 {
            if !one.steps.contains(&step) {
                continue;
            }
            one.begun += u64::from(!one.is_begun);
            one.is_begun = true;
            if surely {
                one.sure += u64::from(!one.is_sure);
                one.is_sure = true;
            }
        }
    }

    /// Minimum and maximum of each.
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    pub(crate) fn counts(&self, scale: f64) -> Vec<Span> {
        let span = |one: &Named| Span {
            low: one.sure as f64 * scale,
            high: one.begun as f64 * scale,
        };
        self.0.iter().map(span).collect()
    }
}
