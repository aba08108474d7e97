//! Populations that run at the same time, each with an [`Assignment`] of its own, on the same workers.

use std::sync::Arc;

use crate::assignment::Assignment;

/// The load of a trial: one population, or several in parallel. The settings of generator and time (cores, part, ramp,
/// hold, window, limits) are those of the first one, for all of them. Shared connections are each population's own.
#[derive(Debug, Clone)]
pub struct Mix {
    first: Arc<Assignment>,
    others: Vec<Arc<Assignment>>,
}

impl From<Assignment> for Mix {
    fn from(drive: Assignment) -> Self {
        Self {
            first: Arc::new(drive),
            others: Vec::new(),
        }
    }
}

impl From<&Assignment> for Mix {
    fn from(drive: &Assignment) -> Self {
        drive.clone().into()
    }
}

impl From<&Mix> for Mix {
    fn from(mix: &Mix) -> Self {
        mix.clone()
    }
}

impl Mix {
    /// Adds a population.
    #[must_use]
    pub fn and(mut self, drive: Assignment) -> Self {
        self.others.push(Arc::new(drive));
        self
    }

    /// Returns the first population, whose generator settings apply to all.
    #[must_use]
    pub fn first(&self) -> &Assignment {
        &self.first
    }

    /// Returns the populations, at least one.
    pub fn assignments(&self) -> impl Iterator<Item = &Assignment> {
        self.shared().map(Arc::as_ref)
    }

    /// Returns the population of the user with this number, and the user's number there. Numbers count through the
    /// populations.
    #[must_use]
    pub fn user(&self, number: u32) -> Option<(&Assignment, u32)> {
        let of = |drive: &&Assignment| {
            number
                .checked_sub(drive.first)
                .is_some_and(|at| at < drive.users)
        };
        let drive = self.assignments().find(of)?;
        Some((drive, number - drive.first))
    }

    /// Returns true if there are several populations.
    pub(crate) fn is_several(&self) -> bool {
        !self.others.is_empty()
    }

    pub(crate) fn shared(&self) -> impl Iterator<Item = &Arc<Assignment>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns all populations, to be changed.
    pub(crate) fn assignments_mut(&mut self) -> impl Iterator<Item = &mut Arc<Assignment>> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }
}
