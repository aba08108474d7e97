//! What steps take of what earlier answers left: a step that finds nothing is skipped. Which steps find nothing
//! whatever the server answers is told before a run, from the very draws of the first sessions; what answers alone
//! decide (how long a list is, whether a condition holds) is taken to be as well as it can be.

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

/// As many entries as anybody may want.
const MANY: u32 = u32::MAX;
/// Users who are looked at, and sessions of each: a step of one session in a hundred is done some ten times.
const USERS: u32 = 16;
const SESSIONS: u64 = 64;

/// What a step can't do without: it is skipped where answers left nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// The step.
    pub step: String,
    /// The variable that it takes from, or reads.
    pub variable: String,
    /// The steps whose answers fill that.
    pub from: Vec<String>,
}

/// A step that finds nothing, whatever the server answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Starved {
    /// What it finds nothing of.
    pub need: Need,
    /// The part of its rounds in which it is skipped, at least; above 0.
    pub part: f64,
}

impl Workload {
    /// What the steps of the session need of answers, in their order.
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

    /// The steps that are skipped whatever the server answers, in their order, without those that only follow
    /// another one that is: of users of this population, whose name is empty where all do the same, by the draws of
    /// the first block. `arrives` is whether sessions arrive: what an earlier one left may then be anything.
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

    /// What becomes of each step in the first sessions.
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

    /// Those that are starved by no other one that is.
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
        // Steps that starve each other in a ring have no first one.
        match roots.is_empty() {
            true => starved,
            false => roots,
        }
    }
}

/// How often a step's turn came, and what it was skipped for.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    rounds: u32,
    skipped: u32,
    found_empty: Option<Slot>,
}

/// What requests take and give, of the variables that answers alone fill.
struct Supply {
    kept: BTreeSet<Slot>,
    /// Of each request of each step of the session.
    steps: Vec<Vec<Exchanged>>,
    /// What setup fills.
    of_setup: BTreeSet<Slot>,
}

struct Exchanged {
    uses: Vec<Use>,
    /// Each with the most entries that it gives.
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
        // What something else sets is never empty for want of an answer.
        let mut given: BTreeSet<Slot> = workload
            .data
            .iter()
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

    /// The most that there is before a session: what setup left, and, where it is `anybody`'s, whatever another
    /// session left.
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

/// What a request renders before it is sent, in order.
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

/// A user's way through its sessions.
struct Walk<'a> {
    workload: &'a Workload,
    supply: &'a Supply,
    /// The most entries that each variable has.
    have: Vec<u32>,
    counts: &'a mut [Count],
}

impl Walk<'_> {
    /// A session, with the driver's draws.
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

    /// A step that conditions or loops decide on: it may give, and nothing tells what it takes.
    fn perhaps(&mut self, at: usize) {
        for exchanged in &self.supply.steps[at] {
            for (slot, most) in &exchanged.gives {
                let have = &mut self.have[usize::from(*slot)];
                *have = (*have).max(*most);
            }
        }
    }

    /// A step's requests, one after the other, until one finds nothing.
    fn round(&mut self, at: usize) {
        self.counts[at].rounds += 1;
        let requests = &self.supply.steps[at];
        for (place, exchanged) in requests.iter().enumerate() {
            if let Some(empty) = self.take(exchanged) {
                let count = &mut self.counts[at];
                count.skipped += 1;
                count.found_empty.get_or_insert(empty);
                // As the driver forgets what the rest would have captured.
                let rest = requests[place..].iter().flat_map(|one| &one.gives);
                return rest.for_each(|(slot, _)| self.have[usize::from(*slot)] = 0);
            }
            for (slot, most) in &exchanged.gives {
                self.have[usize::from(*slot)] = *most;
            }
        }
    }

    /// Takes what a request takes; the first variable that has nothing to give.
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
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::control::Control;
    use crate::scope::{DEFAULT_DATES_FROM, User, UserScope};
    use crate::wait::Chance;

    /// Variables of all these workloads: `item`, `list`, and `name`, which each user has.
    fn request(target: &str, captures: &[(Slot, CaptureSource)]) -> Request {
        let names = ["item", "list", "name"].map(str::to_owned);
        let capture = |(slot, source): &(Slot, CaptureSource)| Capture {
            variable: names[usize::from(*slot)].clone(),
            slot: *slot,
            source: source.clone(),
        };
        Request {
            captures: captures.iter().map(capture).collect(),
            ..Request::get(Template::parse(target, &names).unwrap())
        }
    }

    fn step(name: &str, request: Request) -> Step {
        Step::of(name, vec![request])
    }

    fn workload(steps: Vec<Step>) -> Workload {
        let mut workload = Workload::of("w", steps);
        workload.variables = Arc::from(["item", "list", "name"].map(str::to_owned));
        workload.user = vec![("name".to_owned(), Template::literal("n"))];
        workload
    }

    fn list() -> CaptureSource {
        CaptureSource::JsonPath(Box::new(crate::JsonPath::parse("$.items[*]").unwrap()))
    }

    fn found(workload: &Workload, arrives: bool) -> Vec<(String, String, f64)> {
        let starved = workload.starved(1, "", arrives).into_iter();
        let told = starved.map(|one| (one.need.step, one.need.variable, one.part));
        told.collect()
    }

    #[test]
    fn one_value_is_taken_once() {
        let open = step(
            "Open",
            request("/{{ name }}", &[(0, CaptureSource::RequestPath)]),
        );
        let mut accept = step("Accept", request("{{ take(item) }}/accept", &[]));
        let fine = workload(vec![open.clone(), accept.clone()]);
        assert!(found(&fine, false).is_empty());
        assert!(found(&fine, true).is_empty());
        accept.repeat = 4;
        let dry = workload(vec![open.clone(), accept.clone()]);
        let told = [("Accept".to_owned(), "item".to_owned(), 0.75)];
        assert_eq!(found(&dry, false), told);
        assert_eq!(found(&dry, true), told);
        // Read, not taken, it stays.
        let mut look = step("Look", request("{{ pick(item) }}/{{ item }}", &[]));
        look.repeat = 4;
        assert!(found(&workload(vec![open, look]), false).is_empty());
    }

    #[test]
    fn how_long_a_list_is_only_answers_know() {
        let read = step("Read", request("/", &[(1, list())]));
        let mut open = step("Open", request("{{ take(list) }}", &[]));
        open.repeat = 100;
        assert!(found(&workload(vec![read, open]), false).is_empty());
    }

    #[test]
    fn what_is_left_out_by_chance_fills_nothing() {
        let mut read = step("Read", request("/", &[(1, list())]));
        read.chance = Some(Chance {
            group: 1,
            from: 0.0,
            to: 0.25,
        });
        let open = step(
            "Open",
            request("{{ take(list) }}", &[(0, CaptureSource::RequestPath)]),
        );
        let close = step("Close", request("{{ take(item) }}", &[]));
        let mut visitors = workload(vec![read, open, close]);
        // What a list of an earlier session has left is the answers' business; somebody new has none.
        visitors.session.visitor = Visitor::New;
        let told = found(&visitors, false);
        let [(step, variable, part)] = &told[..] else {
            panic!("the step that only follows is not told: {told:?}");
        };
        assert_eq!((step.as_str(), variable.as_str()), ("Open", "list"));
        assert!((part - 0.75).abs() < 0.06, "{part}");
    }

    #[test]
    fn a_step_before_the_one_that_fills_it_is_skipped_once() {
        let look = step("Look", request("{{ item }}", &[]));
        let open = step("Open", request("/", &[(0, CaptureSource::RequestPath)]));
        let late = workload(vec![look.clone(), open.clone()]);
        let told = [("Look".to_owned(), "item".to_owned(), 1.0 / 64.0)];
        assert_eq!(found(&late, false), told);
        // Who arrives may have what another one left.
        assert!(found(&late, true).is_empty());
        let mut set_up = late;
        set_up.setup = vec![open];
        assert!(found(&set_up, false).is_empty());
    }

    #[test]
    fn conditions_are_taken_to_be_right() {
        let open = step("Open", request("/", &[(0, CaptureSource::Status)]));
        let mut again = step("Again", request("{{ take(item) }}", &[]));
        again.repeat = 2;
        again.control = Some(Box::new(Control {
            when: Some(Template::literal("true")),
            until: None,
        }));
        assert!(found(&workload(vec![open, again]), false).is_empty());
    }

    #[test]
    fn needs_name_who_fills_them() {
        let read = step("Read", request("/", &[(1, list())]));
        let open = step("Open", request("{{ take(list) }}?{{ name }}", &[]));
        let need = Need {
            step: "Open".to_owned(),
            variable: "list".to_owned(),
            from: vec!["Read".to_owned()],
        };
        assert_eq!(workload(vec![read, open]).needs(), [need]);
    }

    /// What a step does with which variable, what it captures into which, in which part of the sessions, and how
    /// often.
    type Drawn = (u8, Slot, Option<(Slot, bool)>, Option<f64>, u32);

    fn drawn() -> impl Strategy<Value = Drawn> {
        let gives = proptest::option::of((0..2u16, any::<bool>()));
        let part = proptest::option::of(0.1..0.9f64);
        (0..4u8, 0..2u16, gives, part, 1..4u32)
    }

    fn made(group: u32, (uses, of, gives, part, repeat): &Drawn) -> Step {
        let name = ["item", "list"][usize::from(*of)];
        let target = match uses {
            0 => format!("{{{{ take({name}) }}}}"),
            1 => format!("{{{{ pick({name}) }}}}"),
            2 => format!("/{{{{ {name} }}}}"),
            _ => "/".to_owned(),
        };
        let source = |is_list| if is_list { list() } else { CaptureSource::Body };
        let captures: Vec<_> = gives
            .iter()
            .map(|(slot, many)| (*slot, source(*many)))
            .collect();
        let mut made = step(&group.to_string(), request(&target, &captures));
        made.repeat = *repeat;
        made.chance = part.map(|to| Chance {
            group,
            from: 0.0,
            to,
        });
        made
    }

    /// How often a user who goes the same ways skips each step, where every list that is read has so many entries.
    fn skipped(workload: &Workload, entries: usize, skips: &mut [u32], user: u32) {
        let identity = User {
            index: user,
            users: USERS,
            first: 0,
            seed: 1,
            block: 0,
            base_date: DEFAULT_DATES_FROM,
        };
        let mut scope = UserScope::new(workload, identity, &[]).unwrap();
        let mut stream = TimingStream::new(1, 0, user);
        for _ in 0..SESSIONS {
            let mut choice = SessionChoice::default();
            for (at, step) in workload.session.steps.iter().enumerate() {
                if !choice.does(step.chance.as_ref(), &mut stream) {
                    continue;
                }
                for _ in 0..step.repeat {
                    stream.next_wait(&step.wait);
                    let request = &step.requests[0];
                    let rendered = request.target.render(&mut scope, &mut String::new());
                    skips[at] += u32::from(rendered.is_err());
                    for capture in &request.captures {
                        match (&rendered, most(capture)) {
                            (Err(_), _) => scope.clear(capture.slot),
                            (Ok(()), 1) => scope.set_text(capture.slot, "/x"),
                            (Ok(()), _) => scope.set_list(capture.slot, &vec!["/x"; entries]),
                        }
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn no_user_skips_less_than_is_told(
            steps in proptest::collection::vec(drawn(), 1..6),
            entries in 0usize..4,
        ) {
            let made = (1..).zip(&steps).map(|(group, step)| made(group, step));
            let workload = workload(made.collect());
            let supply = Supply::of(&workload);
            let counts = workload.counts(&supply, 1, false);
            let mut skips = vec![0; steps.len()];
            (0..USERS).for_each(|user| skipped(&workload, entries, &mut skips, user));
            // What nobody fills is told when a workload is read, and how long lists are nobody knows.
            let filled = |slot| steps.iter().any(|step| step.2.is_some_and(|(of, _)| of == slot));
            let is_list = |step: &Drawn| step.2.is_some_and(|(_, many)| many);
            let is_known = filled(0) && filled(1) && !steps.iter().any(is_list);
            for (count, skipped) in counts.iter().zip(skips) {
                match is_known {
                    false => prop_assert!(count.skipped <= skipped, "{} {skipped}", count.skipped),
                    true => prop_assert_eq!(count.skipped, skipped),
                }
            }
        }
    }
}
