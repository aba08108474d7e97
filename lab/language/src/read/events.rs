//! Events that a request listens for.

use lab_workload::Events;
use lab_workload::template::Escape;

use super::request::Compiler;
use crate::file::{At, EventsFile};
use crate::units;

/// Most events of an answer, and what is the most unless said.
const MOST: u64 = 1_000_000;
const USUAL: u32 = 100_000;

impl Compiler<'_> {
    /// What a request says of events; `None` when a problem was noted.
    pub(super) fn events(&mut self, file: Option<&At<EventsFile>>) -> Option<Option<Events>> {
        let Some(file) = file else {
            return Some(None);
        };
        let EventsFile {
            until,
            event,
            count,
            at_most,
        } = &file.value;
        let until = match until {
            Some(text) => self.template("until", text, Escape::None).map(Some),
            None => Some(None),
        };
        let mut number = |what: &str, at: &Option<At<_>>| match at {
            Some(at) => self
                .setting(what, at, |text| units::whole_number(text, 1..=MOST))
                .map(|n| Some(u32::try_from(n).unwrap_or(u32::MAX))),
            None => Some(None),
        };
        let count = number("count", count);
        let at_most = number("at_most", at_most);
        let count = count?;
        Some(Some(Events {
            until: until?,
            named: event.as_ref().map(|name| name.text().trim().to_owned()),
            count,
            at_most: at_most?.unwrap_or(USUAL.max(count.unwrap_or_default())),
        }))
    }
}
