//! Events that a request waits for.

use lab_workload::Events;
use lab_workload::template::Escape;

use super::request::Compiler;

use crate::file::EventsFile;
use crate::units;
use lab_units::parts::At;

/// Maximum events of a response, also the default.
const MOST: u64 = 1_000_000;
const USUAL: u32 = 100_000;

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listening {
    /// Server-sent events.
    Events,
    /// Messages, which have no type, and may be none at all.
    Messages,
}

impl Compiler<'_> {
    /// Reads a request's settings for events; `None` if a problem was reported.
    pub(super) fn events(&mut self, file: Option<&At<EventsFile>>) -> Option<Option<Events>> {
        self.listening(file, Listening::Events)
    }

    /// Reads the events that a request waits for; `None` if a problem was reported.
    pub(super) fn listening(
        &mut self,
        file: Option<&At<EventsFile>>,
        of: Listening,
    ) -> Option<Option<Events>> {
        let Some(file) = file else {
            return Some(None);
        };
        let EventsFile {
            until,
            event,
            count,
            at_most,
        } = &file.value;
        if let Some(at) = event.as_ref().filter(|_| of == Listening::Messages) {
            let problem = at.span.first_line();
            let problem = problem.problem("messages have no type", "here");
            self.problems
                .push(problem.help("say by a text which is the last: `until`"));
            return None;
        }
        let fewest = match of {
            Listening::Events => 1,
            Listening::Messages => 0,
        };
        let until = match until {
            Some(text) => self.template("until", text, Escape::None).map(Some),
            None => Some(None),
        };
        let mut number = |what: &str, at: &Option<At<_>>, fewest| match at {
            Some(at) => self
                .setting(what, at, |text| units::whole_number(text, fewest..=MOST))
                .map(|n| Some(u32::try_from(n).unwrap_or(u32::MAX))),
            None => Some(None),
        };
        let count = number("count", count, fewest);
        let at_most = number("at_most", at_most, 1);
        let count = count?;
        Some(Some(Events {
            until: until?,
            named: event.as_ref().map(|name| name.text().trim().to_owned()),
            count,
            at_most: at_most?.unwrap_or(USUAL.max(count.unwrap_or_default())),
        }))
    }
}
