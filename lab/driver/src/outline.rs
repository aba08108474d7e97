//! The names of all steps, for reports. It knows no requests.

use std::sync::Arc;

use lab_workload::{Inputs, Step, step_of};

use crate::mix::Mix;

/// The steps of all populations, in the order of windows and barriers: population after population.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outline {
    /// Names of the setups' steps.
    pub(crate) setup: Vec<String>,
    /// Names of the sessions' steps.
    pub(crate) session: Vec<String>,
    /// Names of the sessions' transactions.
    pub(crate) transactions: Vec<String>,
    /// Whether one of the populations sends a probe.
    pub(crate) probe: bool,
    /// Inputs with secrets, masked in all output.
    pub(crate) inputs: Vec<Arc<Inputs>>,
}

impl Outline {
    pub(crate) fn of(mix: &Mix) -> Self {
        let mut outline = Self::default();
        for drive in mix.assignments() {
            let workload = &drive.workload;
            let name = |step: &Step| step_of(&drive.population, &step.name);
            outline.setup.extend(workload.setup.iter().map(name));
            outline
                .session
                .extend(workload.session.steps.iter().map(name));
            let names = workload.session.transaction_names();
            let named = names.map(|name| step_of(&drive.population, name));
            outline.transactions.extend(named);
            outline.probe |= workload.probe.is_some();
            outline.inputs.push(Arc::clone(&workload.inputs));
        }
        outline
    }

    /// Returns the number of steps in a window: those of the sessions, then the probe.
    pub(crate) fn recorded_steps(&self) -> usize {
        self.session.len() + usize::from(self.probe)
    }

    /// Returns the name of a step of a window.
    pub(crate) fn recorded_name(&self, step: usize) -> &str {
        self.session.get(step).map_or("probe", String::as_str)
    }

    /// Masks the secrets in a text.
    pub(crate) fn mask(&self, text: &str) -> String {
        let given = self.inputs.iter();
        given.fold(text.to_owned(), |text, given| given.mask(&text))
    }
}
