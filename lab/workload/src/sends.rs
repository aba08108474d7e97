//! What a step sends in a round, and what of that is read later. It knows no load.

use std::convert::Infallible;

use crate::model::{Request, Step, Workload};
use crate::parallel::Parallel;
use crate::template::Template;

/// How many requests a round of a step sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sends {
    /// As which step they count, from the step itself on.
    pub counts_as: usize,
    /// Those that are sent whatever was answered.
    pub surely: u32,
    /// Those with a request for each entry of a list.
    pub at_most: u32,
}

impl<T> Workload<T> {
    /// The most requests of a user that go out at the same time, where so many may unless the workload says; 0 where
    /// each follows another.
    #[must_use]
    pub fn most_at_once(&self, unless_said: u32) -> u32 {
        let steps = self.session.steps.iter();
        let parallel = steps.filter_map(|step| step.parallel.as_ref());
        let most = parallel.map(|parallel| parallel.most_at_once(unless_said));
        most.max().unwrap_or(0)
    }
}

impl<T> Step<T> {
    /// True for a step that sends nothing of its own: it is a name for some requests of the step before it.
    #[must_use]
    pub fn is_name(&self) -> bool {
        self.requests.is_empty()
    }

    /// What a round of it sends, by the step that counts it.
    #[must_use]
    pub fn sends(&self) -> Vec<Sends> {
        let mut sends: Vec<Sends> = Vec::new();
        let parallel = self.parallel.as_deref();
        let repeated = parallel.and_then(Parallel::repeated);
        for request in 0..self.requests.len() {
            let counts_as = parallel.map_or(0, |parallel| parallel.counts_as(request));
            let (surely, at_most) = match repeated {
                Some((of, at_most)) if of == request => (0, at_most),
                _ => (1, 1),
            };
            match sends.iter_mut().find(|one| one.counts_as == counts_as) {
                Some(one) => {
                    one.surely += surely;
                    one.at_most += at_most;
                }
                None => sends.push(Sends {
                    counts_as,
                    surely,
                    at_most,
                }),
            }
        }
        sends
    }
}

impl Request {
    /// Whether one of its expressions names this variable.
    #[must_use]
    pub fn names(&self, variable: &str) -> bool {
        let mut found = false;
        let mut look = |template: &Template| {
            found |= template.names(variable);
            Ok::<(), Infallible>(())
        };
        let looked = self.try_map(&mut look);
        looked.is_ok() && found
    }

    /// Whether variables are read once it is made: by what signs it, or by what judges its answer.
    #[must_use]
    pub fn reads_later(&self) -> bool {
        let mut reads = self.sign.is_some() || self.credentials.is_some();
        reads |= self
            .events
            .as_ref()
            .is_some_and(|events| events.until.is_some());
        let mut read = |_: &Template| {
            reads = true;
            Ok::<(), Infallible>(())
        };
        for capture in &self.captures {
            let Ok(_) = capture.try_map(&mut read);
        }
        for expectation in &self.answer {
            let Ok(_) = expectation.try_map(&mut read);
        }
        reads
    }
}
