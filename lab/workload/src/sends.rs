//! The requests of a step's round, and the variables read after them. It knows no load.

use std::convert::Infallible;

use crate::model::{Request, Step, Workload};
use crate::parallel::Parallel;
use crate::template::Template;

/// The number of requests of a step's round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sends {
    /// The step that counts them, relative to the step itself.
    pub counts_as: usize,
    /// Requests that are sent whatever the responses.
    pub surely: u32,
    /// Most requests, with those for each entry of a list.
    pub at_most: u32,
}

impl<T> Workload<T> {
    /// The most parallel requests of a user, with the protocol's default if the workload sets none; 0 for sequential
    /// ones.
    #[must_use]
    pub fn most_at_once(&self, unless_said: u32) -> u32 {
        let steps = self.session.steps.iter();
        let parallel = steps.filter_map(|step| step.parallel.as_ref());
        let most = parallel.map(|parallel| parallel.most_at_once(unless_said));
        most.max().unwrap_or(0)
    }
}

impl<T> Step<T> {
    /// True for a step without requests of its own: it is a name for some requests of the step before it.
    #[must_use]
    pub fn is_name(&self) -> bool {
        self.requests.is_empty()
    }

    /// The requests of a round, by the step that counts them.
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
    /// Returns true if one of its expressions names this variable.
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

    /// Returns true if variables are read after rendering: by its signature, or by the checks of its response.
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
