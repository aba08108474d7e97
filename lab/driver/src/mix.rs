//! Populations that are driven at the same time: each a [`Drive`] of its own, by the same workers.

use std::sync::Arc;

use crate::drive::Drive;

/// What is driven at the same time: one population, or several beside each other. What a drive says of the
/// generator and of time (cores, part, ramp, hold, window, limits) is the first one's, for all of them.
/// Shared connections are each population's own.
#[derive(Debug, Clone)]
pub struct Mix {
    first: Arc<Drive>,
    beside: Vec<Arc<Drive>>,
}

impl From<Drive> for Mix {
    fn from(drive: Drive) -> Self {
        Self {
            first: Arc::new(drive),
            beside: Vec::new(),
        }
    }
}

impl From<&Drive> for Mix {
    fn from(drive: &Drive) -> Self {
        drive.clone().into()
    }
}

impl From<&Mix> for Mix {
    fn from(mix: &Mix) -> Self {
        mix.clone()
    }
}

impl Mix {
    /// One more population.
    #[must_use]
    pub fn and(mut self, drive: Drive) -> Self {
        self.beside.push(Arc::new(drive));
        self
    }

    /// The first population, whose settings of the generator hold for all.
    #[must_use]
    pub fn first(&self) -> &Drive {
        &self.first
    }

    /// The populations, at least one.
    pub fn drives(&self) -> impl Iterator<Item = &Drive> {
        self.shared().map(Arc::as_ref)
    }

    /// Where a user of this number is: its population and its number there. Numbers count through the
    /// populations.
    #[must_use]
    pub fn user(&self, number: u32) -> Option<(&Drive, u32)> {
        let of = |drive: &&Drive| {
            number
                .checked_sub(drive.first)
                .is_some_and(|at| at < drive.users)
        };
        let drive = self.drives().find(of)?;
        Some((drive, number - drive.first))
    }

    /// Whether there are several.
    pub(crate) fn is_several(&self) -> bool {
        !self.beside.is_empty()
    }

    pub(crate) fn shared(&self) -> impl Iterator<Item = &Arc<Drive>> {
        std::iter::once(&self.first).chain(&self.beside)
    }

    /// All populations for themselves, to be changed.
    pub(crate) fn drives_mut(&mut self) -> impl Iterator<Item = &mut Arc<Drive>> {
        std::iter::once(&mut self.first).chain(&mut self.beside)
    }
}
