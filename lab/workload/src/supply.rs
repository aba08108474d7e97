//! Steps that need values of earlier responses: a step without its value is skipped. The plan reports steps that are
//! skipped whatever the server answers, from the real draws of the first sessions; facts that only responses decide
//! (the length of a list, whether a condition holds) are assumed to be the best possible.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::capture::{Capture, CaptureSource};
use crate::control::Visitor;
use crate::mix::seed_of;
use crate::model::{Body, Piece, Request, Step, Workload};
use crate::scope::PASSWORD;
use crate::slot::{Slot, Use};
use crate::template::Template;
use crate::timing::{SessionChoice, TimingStream};

/// An unlimited number of entries.
const MANY: u32 = u32::MAX;
/// Simulated users, and sessions of each: a step with a chance of one in a hundred runs some ten times.
const USERS: u32 = 16;
const SESSIONS: u64 = 64;

/// A value that a step requires: without it the step is skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// The step.
    pub step: String,
    /// The variable that it takes from, or reads.
    pub variable: String,
    /// The steps whose responses fill it.
    pub from: Vec<String>,
}

/// A step without its value, whatever the server answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Starved {
    /// The missing value.
    pub need: Need,
    /// The least part of its rounds that is skipped; above 0.
    pub part: f64,
}

impl Workload {
    /// The values that the session's steps require of responses, in their order.
    #[must_use]
    pub fn needs(&self) -> Vec<Need> {
        let supply = Supply::of(self);
        let mut needs = Vec::new();
        for (step, requests) in self.session.steps.iter().zip(&supply.steps) {
            let uses = requests.iter().flat_map(|request| &request.uses);
            let slots = uses
                .map(|one| one.slot)
                .filter(|slot| supply.is_kept(*slot));
            let slots: BTreeSet<Slot> = slots.collect();
            needs.extend(slots.into_iter().map(|slot| self.need(&step.name, slot)));
        }
        needs
    }

    fn need(&self, step: &str, slot: Slot) -> Need {
        let fills = |step: &&Step| {
            let mut captures = step.requests.iter().flat_map(|request| &request.captures);
            captures.any(|capture| capture.slot == slot)
        };
        let steps = self.setup.iter().chain(&self.session.steps);
        let variable = self.variables.get(usize::from(slot));
        Need {
            step: step.to_owned(),
            variable: variable.cloned().unwrap_or_default(),
            from: steps.filter(fills).map(|step| step.name.clone()).collect(),
        }
    }

    /// The steps that are skipped whatever the server answers, in their order, without those that only depend on
    /// another skipped one. Uses the draws of the first block for users of this population, whose name is empty if all
    /// do the same. If sessions arrive (`arrives`), the remains of an earlier one may be anything.
    #[must_use]
    pub fn starved(&self, seed: u64, population: &str, arrives: bool) -> Vec<Starved> {
        let seed = match population {
            "" => seed,
            name => seed_of(seed, name),
        };
        let supply = Supply::of(self);
        if supply.kept.is_empty() {
            return Vec::new();
        }
        self.roots(&self.counts(&supply, seed, arrives))
    }

    /// The counts of each step in the first sessions.
    fn counts(&self, supply: &Supply, seed: u64, arrives: bool) -> Vec<Count> {
        let mut counts = vec![Count::default(); self.session.steps.len()];
        for user in 0..USERS {
            let mut walk = Walk {
                workload: self,
                supply,
                have: supply.at_first(self, false),
                counts: &mut counts,
            };
            let mut stream = TimingStream::new(seed, 0, user);
            for session in 0..SESSIONS {
                if arrives {
                    let number = u64::from(user) * SESSIONS + session;
                    stream = TimingStream::of_session(seed, 0, number);
                }
                if arrives || self.session.visitor == Visitor::New {
                    walk.have = supply.at_first(self, arrives);
                }
                walk.session(&mut stream);
            }
        }
        counts
    }

    /// The skipped steps that depend on no other skipped one.
    fn roots(&self, counts: &[Count]) -> Vec<Starved> {
        let steps = self.session.steps.iter().zip(counts);
        let starved = steps.filter_map(|(step, count)| {
            let need = self.need(&step.name, count.found_empty?);
            let part = f64::from(count.skipped) / f64::from(count.rounds);
            Some(Starved { need, part })
        });
        let starved: Vec<Starved> = starved.collect();
        let is_starved = |name: &String| starved.iter().any(|one| one.need.step == *name);
        let is_root = |one: &&Starved| !one.need.from.iter().any(is_starved);
        let roots: Vec<Starved> = starved.iter().filter(is_root).cloned().collect();
        // Steps that depend on each other in a ring have no first one.
        match roots.is_empty() {
            true => starved,
            false => roots,
        }
    }
}

/// Rounds of a step, and the values for which it was skipped.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    rounds: u32,
    skipped: u32,
    found_empty: Option<Slot>,
}

/// The variables that requests read and set, of those that only responses fill.
struct Supply {
    kept: BTreeSet<Slot>,
    /// By step and request of the session.
    steps: Vec<Vec<Exchanged>>,
    /// Filled by the setup.
    of_setup: BTreeSet<Slot>,
}

struct Exchanged {
    uses: Vec<Use>,
    /// Each with the most entries that the request sets.
    gives: Vec<(Slot, u32)>,
}

impl Supply {
    fn of(workload: &Workload) -> Self {
        let filled = |steps: &[Step]| -> BTreeSet<Slot> {
            let requests = steps.iter().flat_map(|step| &step.requests);
            let captures = requests.flat_map(|request| &request.captures);
            captures.map(|capture| capture.slot).collect()
        };
        let of_setup = filled(&workload.setup);
        let mut kept = filled(&workload.session.steps);
        kept.extend(&of_setup);
        // A variable with another source is never empty for lack of a response.
        let mut given: BTreeSet<Slot> = workload
            .rows()
            .flat_map(|data| &data.columns)
            .map(|(_, slot)| *slot)
            .collect();
        let named = workload.user.iter().map(|(name, _)| name.as_str());
        given.extend(
            named
                .chain([PASSWORD])
                .filter_map(|name| workload.slot(name)),
        );
        for request in workload.requests() {
            let set = templates(request).flat_map(Template::sets);
            given.extend(set.map(|(slot, _)| *slot));
        }
        given.extend(
            workload
                .session
                .steps
                .iter()
                .filter_map(Step::take)
                .map(|take| take.slot),
        );
        kept.retain(|slot| !given.contains(slot));
        let steps = workload.session.steps.iter();
        let steps = steps.map(|step| step.requests.iter().map(Exchanged::by).collect());
        Self {
            steps: steps.collect(),
            kept,
            of_setup,
        }
    }

    fn is_kept(&self, slot: Slot) -> bool {
        self.kept.contains(&slot)
    }

    /// The most entries before a session: those of the setup, and, with `anybody`, those of any other session.
    fn at_first(&self, workload: &Workload, anybody: bool) -> Vec<u32> {
        let anybody = anybody && workload.session.visitor == Visitor::Same;
        let at_first = |slot| match anybody || !self.is_kept(slot) || self.of_setup.contains(&slot)
        {
            true => MANY,
            false => 0,
        };
        let slots = 0..workload.variables.len();
        slots.map(|slot| at_first(slot as Slot)).collect()
    }
}

impl Exchanged {
    fn by(request: &Request) -> Self {
        let mut uses = Vec::new();
        templates(request).for_each(|template| template.uses(&mut uses));
        let gives = request.captures.iter().map(|one| (one.slot, most(one)));
        Self {
            uses,
            gives: gives.collect(),
        }
    }
}

/// The templates that a request renders before it is sent, in order.
fn templates(request: &Request) -> impl Iterator<Item = &Template> {
    let mut all = vec![&request.target];
    all.extend(request.headers.iter().map(|(_, value)| value));
    all.extend(
        request
            .basic_auth
            .iter()
            .flat_map(|(name, password)| [name, password]),
    );
    match &request.body {
        Body::Empty => {}
        Body::Json(text) | Body::Text(text) => all.push(text),
        Body::Form(fields) => all.extend(fields.iter().map(|(_, value)| value)),
        Body::Pieces(pieces) => all.extend(pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text),
            Piece::File(_) => None,
        })),
    }
    all.extend(request.said.iter().flat_map(|said| said.templates()));
    all.into_iter()
}

/// The most entries that a capture finds.
fn most(capture: &Capture) -> u32 {
    match &capture.source {
        CaptureSource::JsonPath(path) if path.is_singular() => 1,
        CaptureSource::Header(_)
        | CaptureSource::Cookie(_)
        | CaptureSource::Regex(_)
        | CaptureSource::RequestPath
        | CaptureSource::Body
        | CaptureSource::Status => 1,
        CaptureSource::JsonPath(_)
        | CaptureSource::JsonPathTemplate(_)
        | CaptureSource::RegexAll(_)
        | CaptureSource::Xml(_)
        | CaptureSource::Html(_) => MANY,
    }
}

/// The simulation of a user's sessions.
struct Walk<'a> {
    workload: &'a Workload,
    supply: &'a Supply,
    /// The most entries that each variable has.
    have: Vec<u32>,
    counts: &'a mut [Count],
}

impl Walk<'_> {
    /// Simulates a session, with the driver's draws.
    fn session(&mut self, stream: &mut TimingStream) {
        let session = &self.workload.session;
        let mut choice = SessionChoice::default();
        for (steps, control) in session.blocks() {
            let first = &session.steps[steps.start];
            if control.is_some() && !choice.does(first.chance.as_ref(), stream) {
                continue;
            }
            for at in steps {
                let step = &session.steps[at];
                if step.is_name() {
                    continue;
                }
                if !choice.does(step.chance.as_ref(), stream) {
                    continue;
                }
                let depends = control.is_some() || step.control.is_some();
                for _ in 0..step.planned_rounds() {
                    stream.pass_over(1);
                    match depends {
                        true => self.perhaps(at),
                        false => self.round(at),
                    }
                }
            }
        }
    }

    /// A step under conditions or loops: it may set values, and what it reads is unknown.
    fn perhaps(&mut self, at: usize) {
        for exchanged in &self.supply.steps[at] {
            for (slot, most) in &exchanged.gives {
                let have = &mut self.have[usize::from(*slot)];
                *have = (*have).max(*most);
            }
        }
    }

    /// Simulates a step's requests in sequence until one lacks its value; parallel ones don't wait for each other.
    fn round(&mut self, at: usize) {
        self.counts[at].rounds += 1;
        let requests = &self.supply.steps[at];
        let parallel = self.workload.session.steps[at].parallel.as_deref();
        let beside = parallel.map_or(requests.len(), |parallel| parallel.first);
        let mut is_skipped = false;
        for (place, exchanged) in requests.iter().enumerate() {
            let empty = self.take(exchanged);
            if let Some(empty) = empty {
                let count = &mut self.counts[at];
                count.skipped += u32::from(!is_skipped);
                count.found_empty.get_or_insert(empty);
                is_skipped = true;
            }
            if empty.is_some() && place < beside {
                // The driver also drops what the rest would have captured.
                let rest = requests[place..].iter().flat_map(|one| &one.gives);
                return rest.for_each(|(slot, _)| self.have[usize::from(*slot)] = 0);
            }
            for (slot, most) in &exchanged.gives {
                self.have[usize::from(*slot)] = if empty.is_some() { 0 } else { *most };
            }
        }
    }

    /// Reads what a request reads; returns the first variable without an entry.
    fn take(&mut self, exchanged: &Exchanged) -> Option<Slot> {
        for one in &exchanged.uses {
            match self.have.get_mut(usize::from(one.slot)) {
                Some(0) => return Some(one.slot),
                Some(have) if one.takes && *have != MANY => *have -= 1,
                Some(_) | None => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
