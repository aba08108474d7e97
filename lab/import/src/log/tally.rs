//! Statistics of a log, for the user.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::entry::Skip;

/// Most paths that are counted at a time; then rare ones are evicted.
const MAX_PATHS: usize = 20_000;
/// Significant length of a path.
const MAX_PATH: usize = 200;
/// Paths that are shown.
const TOP: usize = 10;
/// Most reported names of dropped values.
const MAX_NAMES: usize = 20;
/// Most kinds of requests, each of which is a step.
pub(super) const MAX_KINDS: usize = 60;
/// Kinds from this number on have a class of statuses, not a single one.
const MAX_EXACT: usize = 40;

/// Statistics of a log.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) lines: u64,
    pub(super) taken: u64,
    skipped: BTreeMap<Skip, (u64, u64)>,
    /// Number of requests of each kind: method and outcome.
    pub(super) kinds: BTreeMap<(String, Outcome), u64>,
    paths: HashMap<String, u64>,
    has_evicted: bool,
    dropped: u64,
    names: Vec<String>,
    /// The first time, µs.
    first: Option<i64>,
    last: i64,
    second: i64,
    in_second: u64,
    busiest: u64,
}

/// The logged outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Good,
    Redirect,
    Refused,
    /// This status, and no other one of its class.
    Status(u16),
    /// A server error, a client that disconnected, or none.
    Other,
}

impl Outcome {
    pub(super) fn of(status: Option<u16>) -> Self {
        match status {
            Some(200..=299) => Self::Good,
            Some(300..=399) => Self::Redirect,
            // 444, 494 to 499: nginx, for connections that ended before a response.
            Some(400..=443 | 445..=493) => Self::Refused,
            _ => Self::Other,
        }
    }

    /// Its status alone, if its class has others.
    fn exact(self, status: Option<u16>) -> Self {
        match (self, status) {
            (Self::Good | Self::Redirect | Self::Refused, Some(status)) => Self::Status(status),
            (outcome, _) => outcome,
        }
    }

    pub(super) fn name(self) -> Cow<'static, str> {
        match self {
            Self::Good => "2xx".into(),
            Self::Redirect => "3xx".into(),
            Self::Refused => "4xx".into(),
            Self::Status(status) => status.to_string().into(),
            Self::Other => "other".into(),
        }
    }

    /// As `expect` has it.
    pub(super) fn expect(self) -> Cow<'static, str> {
        match self {
            Self::Good => "2xx".into(),
            // The condition of a 304 is not sent again.
            Self::Redirect => "[2xx, 3xx]".into(),
            Self::Refused => "4xx".into(),
            // Neither is the range of a 206 or 416, nor the condition of a 412.
            Self::Status(status @ (206 | 304 | 412 | 416)) => format!("[200, {status}]").into(),
            Self::Status(status) => status.to_string().into(),
            // A logged failure need not occur again.
            Self::Other => "[2xx, 3xx, 4xx]".into(),
        }
    }
}

impl Tally {
    pub(super) fn skip(&mut self, why: Skip) {
        let (count, _) = self.skipped.entry(why).or_insert((0, self.lines));
        *count += 1;
    }

    /// The outcome of a request: the status itself if it is to be exact, and its class if there are too many statuses.
    pub(super) fn outcome(&self, method: &str, status: Option<u16>, is_exact: bool) -> Outcome {
        let class = Outcome::of(status);
        let exact = if is_exact { class.exact(status) } else { class };
        let mut kinds = self.kinds.keys();
        let has_room = self.kinds.len() < MAX_EXACT
            || kinds.any(|(known, of)| known == method && *of == exact);
        if has_room { exact } else { class }
    }

    /// Counts an imported request; false if there are too many kinds.
    pub(super) fn take(&mut self, method: &str, outcome: Outcome, path: &str) -> bool {
        let known = self.kinds.len();
        let mut kinds = self.kinds.iter_mut();
        match kinds.find(|((known, of), _)| known == method && *of == outcome) {
            Some((_, count)) => *count += 1,
            None if known >= MAX_KINDS => return false,
            None => {
                self.kinds.insert((method.to_owned(), outcome), 1);
            }
        }
        // Paths are ASCII.
        let path = path.get(..MAX_PATH).unwrap_or(path);
        match self.paths.get_mut(path) {
            Some(count) => *count += 1,
            None => {
                if self.paths.len() >= MAX_PATHS {
                    self.make_room();
                }
                self.paths.insert(path.to_owned(), 1);
            }
        }
        self.taken += 1;
        true
    }

    /// Subtracts the rarer half's count from each path: the remaining counts are too low by that at most.
    fn make_room(&mut self) {
        self.has_evicted = true;
        let mut counts: Vec<u64> = self.paths.values().copied().collect();
        let (_, middle, _) = counts.select_nth_unstable(MAX_PATHS / 2);
        let middle = *middle;
        self.paths.retain(|_, count| {
            *count = count.saturating_sub(middle);
            *count > 0
        });
    }

    pub(super) fn drop_values(&mut self, names: Vec<String>) {
        self.dropped += u64::from(!names.is_empty());
        for name in names {
            if self.names.len() < MAX_NAMES && !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }

    /// Counts a row as it is written, in the order of times.
    pub(super) fn written(&mut self, us: i64) {
        let second = us.div_euclid(1_000_000);
        if self.first.is_none() || second != self.second {
            (self.second, self.in_second) = (second, 0);
        }
        self.first.get_or_insert(us);
        self.last = us;
        self.in_second += 1;
        self.busiest = self.busiest.max(self.in_second);
    }

    /// Requests of the busiest second.
    pub(super) fn busiest(&self) -> u64 {
        self.busiest
    }

    /// From the first to the last request, s.
    pub(super) fn seconds(&self) -> f64 {
        self.first
            .map_or(0.0, |first| (self.last - first) as f64 / 1e6)
    }

    /// In sentences without full stops.
    pub(super) fn said(&self) -> Vec<String> {
        let mut said = Vec::new();
        let (seconds, taken) = (self.seconds(), self.taken);
        let rate = taken as f64 / seconds.max(1.0);
        said.push(format!(
            "{taken} of {} lines are requests to replay, over {}: {rate:.1}/s on average, {} in the busiest second",
            self.lines,
            time(seconds),
            self.busiest
        ));
        let share = |count: u64| 100.0 * count as f64 / taken.max(1) as f64;
        let mut methods: BTreeMap<String, u64> = BTreeMap::new();
        for ((method, _), count) in &self.kinds {
            *methods.entry(method.clone()).or_default() += count;
        }
        let methods = sorted(methods.iter());
        let methods = methods
            .iter()
            .map(|(name, n)| format!("{name} {:.1} %", share(*n)));
        said.push(format!(
            "methods: {}",
            methods.collect::<Vec<_>>().join(", ")
        ));
        let paths = sorted(self.paths.iter());
        let about = if self.has_evicted { "about " } else { "" };
        let paths = paths.iter().take(TOP);
        let paths = paths.map(|(path, n)| format!("{} {about}{n}", short(path)));
        said.push(format!("paths: {}", paths.collect::<Vec<_>>().join(", ")));
        said.extend(
            self.reasons()
                .into_iter()
                .map(|reason| format!("skipped {reason}")),
        );
        if self.dropped > 0 {
            said.push(format!(
                "values under {} in queries look like secrets and are dropped (requests: {})",
                self.names
                    .iter()
                    .map(|name| short(name))
                    .collect::<Vec<_>>()
                    .join(", "),
                self.dropped
            ));
        }
        said
    }

    /// The reasons for skipped lines, if no request was imported.
    pub(super) fn reasons(&self) -> Vec<String> {
        let reason = |(why, (count, line)): (&Skip, &(u64, u64))| {
            format!("{count}: {} (the first is line {line})", why.reason())
        };
        self.skipped.iter().map(reason).collect()
    }
}

/// The most frequent first.
fn sorted<'t>(counts: impl Iterator<Item = (&'t String, &'t u64)>) -> Vec<(&'t str, u64)> {
    let mut all: Vec<_> = counts.map(|(name, count)| (&**name, *count)).collect();
    all.sort_by(|(a, n), (b, m)| m.cmp(n).then(a.cmp(b)));
    all
}

/// A text truncated to a line, without control characters.
fn short(text: &str) -> String {
    const SHOWN: usize = 60;
    let visible = |c: char| if c.is_control() { '?' } else { c };
    let start: String = text.chars().take(SHOWN).map(visible).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("`{start}{more}`")
}

pub(super) fn time(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
