//! The state of one virtual user while it runs: its variables, its captured lists, its choices.
//!
//! Kept small, since a trial has thousands: values are stored in slots, and a list stores the common prefix of its
//! entries once. It knows neither requests nor time.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use lab_filters::text_list::{JsonKind, JsonValue, NO_TEXT, TextList};
use lab_filters::{TraceContext, Traced, Tracing};

use crate::clock;
use crate::data::{Data, Each};
use crate::inputs::Inputs;
use crate::render_error::RenderError;
use crate::timing::{self, ChoiceStream};

/// The variable set by provisioning, which every workload has.
pub const PASSWORD: &str = "password";

/// Default day 0 of the date functions: a Monday whose fortnight lies in one month.
pub const DEFAULT_DATES_FROM: Date = jiff::civil::date(2026, 1, 5);

/// The longest time in a variable: a day.
const MAX_SECONDS: f64 = 86_400.0;

pub use crate::slot::Slot;

/// Identifies a user of a trial.
#[derive(Debug, Clone, Copy)]
pub struct User {
    /// 0-based.
    pub index: u32,
    /// Number of users; at least 1.
    pub users: u32,
    /// Number of users in earlier populations: templates and rows continue from there, so that no two users have the
    /// same number. Random draws don't depend on it.
    pub first: u32,
    /// The plan's seed.
    pub seed: u64,
    /// The trial's block.
    pub block: u32,
    /// The plan's day 0 for date functions.
    pub base_date: Date,
}

/// The variables of one user.
#[derive(Debug)]
pub struct UserScope {
    names: Arc<[String]>,
    inputs: Arc<Inputs>,
    data: Option<Arc<Data>>,
    /// The number of the session, for arriving sessions.
    session: Option<u64>,
    values: Box<[Stored]>,
    rare: Option<Box<Rare>>,
    index: u32,
    users: u32,
    first: u32,
    base_date: Date,
    choice: ChoiceStream,
    round: u32,
    /// One more than the current session; 0 before the first.
    cycles: u64,
    seed: u64,
    block: u32,
    /// Number of the user's stratified draws.
    strata: u32,
    /// Number of trace decisions; since the session's start, for arriving sessions.
    traces: u64,
}

/// State that few users have: boxed, to save memory for a million users without it.
#[derive(Debug, Clone, Default)]
struct Rare {
    /// Why the user has no row, if so.
    no_row: Option<Box<str>>,
    /// The values before the first session, if each session is a new visitor.
    first_values: Option<Box<[Stored]>>,
    /// The time of day in µs since 1970, from its first use in the current request.
    now_us: Option<i64>,
}

#[derive(Debug, Clone, Default)]
enum Stored {
    #[default]
    Unset,
    Text(Box<str>),
    List(Box<TextList>),
}

impl UserScope {
    /// Creates a user with variables of these names, all unset.
    pub fn unset(
        names: &Arc<[String]>,
        (given, data): (&Arc<Inputs>, Option<&Arc<Data>>),
        user: User,
    ) -> Self {
        Self {
            names: Arc::clone(names),
            inputs: Arc::clone(given),
            data: data.map(Arc::clone),
            session: None,
            values: names.iter().map(|_| Stored::Unset).collect(),
            rare: None,
            index: user.index,
            users: user.users.max(1),
            first: user.first,
            base_date: user.base_date,
            choice: ChoiceStream::new(user.seed, user.block, user.index),
            round: 0,
            cycles: 0,
            seed: user.seed,
            block: user.block,
            strata: 0,
            traces: 0,
        }
    }

    /// Returns the slot of a variable.
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.names.iter().position(|n| n == name).map(|i| i as Slot)
    }

    /// Returns the name of a slot.
    #[must_use]
    pub fn name(&self, slot: Slot) -> &str {
        self.names
            .get(usize::from(slot))
            .map_or("?", String::as_str)
    }

    /// Sets a variable to one text.
    pub fn set_text(&mut self, slot: Slot, text: &str) {
        if let Some(value) = self.values.get_mut(usize::from(slot)) {
            *value = Stored::Text(text.into());
        }
    }

    /// Sets a variable to a list; with an empty list, steps that need an entry are skipped.
    pub fn set_list<T: AsRef<str>>(&mut self, slot: Slot, entries: &[T]) {
        if let Some(value) = self.values.get_mut(usize::from(slot)) {
            *value = Stored::List(Box::new(TextList::new(entries)));
        }
    }

    /// Sets a variable to the result of a search with at most one value.
    pub fn set_found<T: AsRef<str>>(&mut self, slot: Slot, found: &[T]) {
        self.set_list(slot, found);
        if let Some(Stored::List(list)) = self.values.get_mut(usize::from(slot)) {
            list.single = true;
        }
    }

    /// Sets a variable to the values from a JSON path; `is_single` if the path finds at most one.
    pub fn set_json(&mut self, slot: Slot, values: &[JsonValue<'_>], is_single: bool) {
        if let Some(value) = self.values.get_mut(usize::from(slot)) {
            let mut list = TextList::new(values);
            for (end, value) in list.ends.iter_mut().zip(values) {
                *end |= if value.is_text { 0 } else { NO_TEXT };
            }
            list.single = is_single;
            *value = Stored::List(Box::new(list));
        }
    }

    /// Makes the user a new visitor: restores the variables' values at the first call.
    pub fn renew(&mut self) {
        let rare = self.rare.get_or_insert_default();
        match &rare.first_values {
            Some(first) => self.values.clone_from(first),
            None => rare.first_values = Some(self.values.clone()),
        }
    }

    /// Creates a copy of the user for one of several parallel requests: its captures and draws don't affect the others.
    /// `whole` is whether it reads variables after the request is built.
    #[must_use]
    pub fn branch(&mut self, whole: bool) -> Self {
        let values = match whole {
            true => self.values.clone(),
            false => self.values.iter().map(|_| Stored::Unset).collect(),
        };
        Self {
            names: Arc::clone(&self.names),
            inputs: Arc::clone(&self.inputs),
            data: None,
            values,
            rare: self.rare.clone(),
            choice: self.choice.branch(),
            ..*self
        }
    }

    /// Moves a branch's capture into this variable.
    pub fn join(&mut self, branch: &mut Self, slot: Slot) {
        let place = usize::from(slot);
        if let (Some(own), Some(captured)) =
            (self.values.get_mut(place), branch.values.get_mut(place))
        {
            *own = std::mem::take(captured);
        }
    }

    /// Sets a variable to an entry of a list, by its index among the remaining ones; false if there is none.
    pub fn set_entry(&mut self, slot: Slot, (list, at): (Slot, usize)) -> bool {
        let mut text = String::new();
        let written = match self.values.get(usize::from(list)) {
            Some(Stored::List(entries)) => entries.write(at, &mut text),
            _ if at == 0 => self.write(list, &mut text),
            _ => None,
        };
        if written.is_some() {
            self.set_text(slot, &text);
        }
        written.is_some()
    }

    /// Unsets a variable.
    pub fn clear(&mut self, slot: Slot) {
        if let Some(value) = self.values.get_mut(usize::from(slot)) {
            *value = Stored::Unset;
        }
    }

    /// Returns the value of a variable, as text; the first entry of a list.
    #[must_use]
    pub fn text(&self, slot: Slot) -> Option<String> {
        let mut text = String::new();
        self.write(slot, &mut text).map(|_| text)
    }

    /// Returns the value of a variable by name, as text; the first entry of a list.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        self.text(self.slot(name)?)
    }

    /// Returns this user's index, from 0; with several populations, it continues from the last one's.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.first.saturating_add(self.index)
    }

    /// Returns the index of the user this many places on, in the ring of its population.
    pub(crate) fn neighbour(&self, places: i64) -> i64 {
        let ring = i64::from(self.users);
        let place = (i64::from(self.index) + places.rem_euclid(ring)) % ring;
        i64::from(self.first) + place
    }

    /// Returns the number of users of its population, at least 1.
    #[must_use]
    pub fn users(&self) -> u32 {
        self.users
    }

    /// Returns day 0 of the plan's dates.
    #[must_use]
    pub fn base_date(&self) -> Date {
        self.base_date
    }

    /// Returns the identity of the user among all users, also of trials with other seeds.
    #[must_use]
    pub fn identity(&self) -> String {
        format!("{}:{}:{}", self.seed, self.block, self.index())
    }

    /// Starts a request, which reads the time of day anew.
    pub fn begin_request(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.now_us = None;
        }
    }

    /// Returns the time of day in µs since 1970, constant within a request.
    pub(crate) fn now_us(&mut self) -> i64 {
        let rare = self.rare.get_or_insert_default();
        *rare.now_us.get_or_insert_with(clock::now_us)
    }

    /// Returns the time of day in seconds since 1970, constant within a request.
    pub fn now_seconds(&mut self) -> i64 {
        self.now_us() / 1_000_000
    }

    /// Calls `act` while extra variables after all others have these values. `names` has all names.
    pub fn with_more<T>(
        &mut self,
        names: &Arc<[String]>,
        values: impl Iterator<Item = String>,
        act: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let own = self.values.len();
        let mut all = std::mem::take(&mut self.values).into_vec();
        all.extend(values.map(|value| Stored::Text(value.into())));
        self.values = all.into();
        let before = std::mem::replace(&mut self.names, Arc::clone(names));
        let result = act(self);
        self.names = before;
        let mut all = std::mem::take(&mut self.values).into_vec();
        all.truncate(own);
        self.values = all.into();
        result
    }

    /// Appends a value of the environment.
    pub(crate) fn write_given(
        &self,
        name: &str,
        secret: bool,
        out: &mut String,
    ) -> Result<(), String> {
        match self.inputs.value(name, secret) {
            Some(value) => {
                out.push_str(value);
                Ok(())
            }
            None => Err(format!("the environment variable `{name}` is not set")),
        }
    }

    /// Sets the source of environment values and counter numbers.
    pub fn give(&mut self, given: &Arc<Inputs>) {
        self.inputs = Arc::clone(given);
    }

    /// Returns the next number of a counter.
    pub(crate) fn next_number(&self, counter: &str) -> Result<i64, String> {
        let number = self.inputs.next_number(counter);
        let number = number.ok_or_else(|| format!("there is no counter `{counter}` here"))?;
        i64::try_from(number).map_err(|_| format!("the counter `{counter}` is at its end"))
    }

    /// Returns the key with this name, if it exists.
    pub fn named_key(&self, name: &str) -> Option<Result<Vec<u8>, String>> {
        Some(self.inputs.key(name)?.bytes().map(Cow::into_owned))
    }

    /// Returns the key with this name.
    pub fn key(&self, name: &str) -> Result<Vec<u8>, String> {
        let key = self.named_key(name);
        key.unwrap_or_else(|| Err(format!("there is no key `{name}`")))
    }

    /// Starts an arriving session, by its number: its own stream makes the choices from now on.
    pub fn begin_session(&mut self, number: u64, choice: ChoiceStream) {
        self.session = Some(number);
        self.choice = choice;
        self.traces = 0;
    }

    /// Starts the user's next session: `cycle` counts them from 0, and if each session has a row of the data, its
    /// variables get the values of another row.
    pub fn next_cycle(&mut self) {
        self.cycles += 1;
        // Without arrivals, session k of all users is before session k + 1 of any.
        let own = || u64::from(self.index) + self.cycle() * u64::from(self.users);
        let number = self.session.unwrap_or_else(own);
        self.take_row(Each::Session, number);
    }

    /// Returns the trace that its next request starts, the one with this index in the workload; `None` if it starts
    /// none.
    pub fn begin_trace(&mut self, tracing: &Tracing, request: u32) -> Option<TraceContext> {
        let count = self.traces;
        self.traces += 1;
        tracing.draw(Traced {
            seed: (self.seed, self.block),
            whose: match self.session {
                Some(session) => (true, session),
                None => (false, u64::from(self.index)),
            },
            request,
            count,
        })
    }

    /// Takes the row with this number, if rows belong to `each`.
    pub fn take_row(&mut self, each: Each, number: u64) {
        let Some(data) = self.data.clone().filter(|data| data.each == each) else {
            return;
        };
        match self.set_row(&data, number) {
            Ok(()) => {
                if let Some(rare) = &mut self.rare {
                    rare.no_row = None;
                }
            }
            Err(cause) => self.rare.get_or_insert_default().no_row = Some(cause.into()),
        }
    }

    /// Sets the variables of a row's columns, by the number of the row.
    ///
    /// # Errors
    /// Describes why there is no such row: the variables are then unset.
    pub fn set_row(&mut self, data: &Data, number: u64) -> Result<(), String> {
        let row = data.row(number, self.seed, self.block);
        match row {
            Ok(values) => {
                for ((_, slot), value) in data.columns.iter().zip(values) {
                    self.set_text(*slot, &value);
                }
                Ok(())
            }
            Err(cause) => {
                data.columns.iter().for_each(|(_, slot)| self.clear(*slot));
                Err(cause)
            }
        }
    }

    /// Sets the current round of a repeated step, from 0.
    pub fn set_round(&mut self, round: u32) {
        self.round = round;
    }

    /// Returns the current session, from 0.
    #[must_use]
    pub fn cycle(&self) -> u64 {
        self.cycles.saturating_sub(1)
    }

    /// Returns the current round of the step, from 0.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Returns the user's next stratified draw, in [0, 1).
    pub(crate) fn next_stratum(&mut self) -> f64 {
        let drawn = self.strata;
        self.strata = self.strata.wrapping_add(1);
        let (seed, block) = (self.seed, self.block);
        timing::stratum(seed, block, (self.index, self.users), drawn)
    }

    /// Returns the stream of the user's random choices.
    pub fn choice(&mut self) -> &mut ChoiceStream {
        &mut self.choice
    }

    /// Returns the number of remaining entries: of a list its length, of a text 1, of an unset variable 0.
    #[must_use]
    pub fn count(&self, slot: Slot) -> usize {
        match self.values.get(usize::from(slot)) {
            Some(Stored::Text(_)) => 1,
            Some(Stored::List(list)) => list.len(),
            Some(Stored::Unset) | None => 0,
        }
    }

    /// Returns the time in a variable: a decimal number of seconds. Of a list, and of several words, the entry of the
    /// current round counts. Zero without such a number.
    #[must_use]
    pub fn seconds(&self, slot: Slot) -> Duration {
        let place = |count: usize| if count == 1 { 0 } else { self.round as usize };
        let seconds: Option<f64> = match self.values.get(usize::from(slot)) {
            Some(Stored::List(list)) => {
                let mut text = String::new();
                list.write(place(list.len()), &mut text);
                text.trim().parse().ok()
            }
            Some(Stored::Text(text)) => {
                let mut words = text.split_ascii_whitespace();
                let count = words.clone().take(2).count();
                words.nth(place(count)).and_then(|word| word.parse().ok())
            }
            Some(Stored::Unset) | None => None,
        };
        let seconds = seconds.unwrap_or(0.0).clamp(0.0, MAX_SECONDS);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Returns the memory of this user's variables, on the heap and inline.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let heap = |stored: &Stored| match stored {
            Stored::Unset => 0,
            Stored::Text(text) => text.len(),
            Stored::List(list) => size_of::<TextList>() + list.text.len() + list.ends.len() * 4,
        };
        let rare = self.rare.as_ref();
        let first_values = rare.and_then(|rare| rare.first_values.as_ref()).into_iter();
        size_of::<Self>()
            + self.values.len() * size_of::<Stored>()
            + self.values.iter().map(heap).sum::<usize>()
            + first_values.flatten().map(heap).sum::<usize>()
    }

    /// Returns why a variable has no value: a captured value is used up, or a value from the system under test is
    /// missing.
    pub fn missing(&self, slot: Slot) -> RenderError {
        let variable = self.name(slot).to_owned();
        let columns = self.data.as_ref().map_or(&[][..], |data| &data.columns);
        let rare = self.rare.as_ref();
        if let Some(cause) = rare
            .and_then(|rare| rare.no_row.as_deref())
            .filter(|_| columns.iter().any(|(_, of)| *of == slot))
        {
            let cause = cause.to_owned();
            return RenderError::NoRow { cause };
        }
        match variable.as_str() {
            PASSWORD => RenderError::NotGiven { variable },
            _ => RenderError::EmptyList { variable },
        }
    }

    /// Appends the variable (a list's first entry). `None` if it has no value.
    pub fn write(&self, slot: Slot, out: &mut String) -> Option<JsonKind> {
        match self.values.get(usize::from(slot))? {
            Stored::Text(text) => {
                out.push_str(text);
                Some(JsonKind::Text)
            }
            Stored::List(list) => list.write(0, out),
            Stored::Unset => None,
        }
    }

    /// Appends the first entry and removes it; a text is removed as a whole.
    pub fn take(&mut self, slot: Slot, out: &mut String) -> Option<JsonKind> {
        match self.values.get_mut(usize::from(slot))? {
            Stored::List(list) => list.take(out),
            value @ Stored::Text(_) => {
                if let Stored::Text(text) = std::mem::take(value) {
                    out.push_str(&text);
                }
                Some(JsonKind::Text)
            }
            Stored::Unset => None,
        }
    }

    /// Appends a random entry and keeps it. An empty list consumes no draw.
    pub(crate) fn pick(&mut self, slot: Slot, out: &mut String) -> Option<JsonKind> {
        let count = self.count(slot);
        if count < 2 {
            return self.write(slot, out);
        }
        let at = self.choice.below(count as u64) as usize;
        match self.values.get(usize::from(slot)) {
            Some(Stored::List(list)) => list.write(at, out),
            _ => self.write(slot, out),
        }
    }

    /// Returns true if the variable has the result of a search with at most one value.
    pub(crate) fn is_single(&self, slot: Slot) -> bool {
        matches!(self.values.get(usize::from(slot)), Some(Stored::List(list)) if list.single)
    }

    /// Returns the kind of its value, or of the first entry of its list.
    pub(crate) fn kind(&self, slot: Slot) -> JsonKind {
        match self.values.get(usize::from(slot)) {
            Some(Stored::List(list)) => list.kind(list.next as usize),
            Some(Stored::Text(_) | Stored::Unset) | None => JsonKind::Text,
        }
    }

    /// Returns the variable as a list of texts, and whether it is a list; `None` if unset.
    pub fn entries(&self, slot: Slot) -> Option<(Vec<String>, bool)> {
        match self.values.get(usize::from(slot))? {
            Stored::Unset => None,
            Stored::Text(text) => Some((vec![text.to_string()], false)),
            Stored::List(list) => Some((list.to_vec(), true)),
        }
    }
}

/// The value of a variable in a condition.
pub(crate) enum Seen {
    /// No value.
    Nothing,
    /// One value.
    One(String),
    /// A list, which may be empty.
    List(Vec<String>),
}

impl UserScope {
    /// Returns the value of the variable in a condition.
    pub(crate) fn seen(&self, slot: Slot) -> Seen {
        match self.values.get(usize::from(slot)) {
            Some(Stored::Text(text)) => Seen::One(text.to_string()),
            Some(Stored::List(list)) if list.single => match list.to_vec().pop() {
                Some(one) => Seen::One(one),
                None => Seen::Nothing,
            },
            Some(Stored::List(list)) => Seen::List(list.to_vec()),
            Some(Stored::Unset) | None => Seen::Nothing,
        }
    }
}

impl Default for UserScope {
    /// Returns a user without variables: a placeholder while an expression borrows the real one.
    fn default() -> Self {
        Self {
            names: Arc::from([]),
            inputs: Arc::default(),
            data: None,
            session: None,
            values: Box::from([]),
            rare: None,
            index: 0,
            users: 1,
            first: 0,
            base_date: DEFAULT_DATES_FROM,
            choice: ChoiceStream::new(0, 0, 0),
            round: 0,
            cycles: 0,
            seed: 0,
            block: 0,
            strata: 0,
            traces: 0,
        }
    }
}
