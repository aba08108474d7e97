//! Combines intervals and names into a profile of waits, and divides the time of thread groups by class.
//!
//! Only some intervals have stacks. These represent all intervals of the same group, kind, and length (within a factor
//! of two). The sums of a group are then scaled to the times that the scheduler counted.

use std::collections::{BTreeMap, HashMap};

use lab_archive::ThreadsLine;
use lab_profile::waits::{Class, ThreadGroup};
use lab_profile::{Kind as ProfileKind, Profile, Sample, Wait};

use super::collected::{Collected, Row};
use super::switches::{Kind, Number, Piece, Stratum, Sum};
use super::usage::Times;
use crate::assemble::NamedStacks;
use crate::files::Modules;
use crate::stacks::Frame;

/// The minimum number of wakers recorded for a stack to assign them to its waits.
const ENOUGH_WAKERS: u64 = 3;
/// Slices record waits with their true frequency if these are shorter than this on average, in nanoseconds.
const SHORT_NS: f64 = 20e6;
/// The minimum number of readings of a group's sleeping functions for a division of its time.
const ENOUGH_READS: u64 = 30;
/// Most distinct wakers of a stack.
const MOST_WAKERS: usize = 3;

/// The fields that distinguish samples of the profile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Column {
    second: u32,
    group: Number,
    stack: Number,
    no_core: bool,
    waker: Option<Number>,
}

/// Estimated intervals and their time.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    count: f64,
    ns: f64,
}

impl Estimate {
    fn add(&mut self, count: f64, ns: f64) {
        self.count += count;
        self.ns += ns;
    }
}

/// Nanoseconds by class.
type Classes = BTreeMap<Class, u64>;

type Columns = HashMap<Column, Estimate>;

/// The profile of all waits in recorded seconds, and the lines of the table of threads.
pub(super) fn of(waits: &Collected, modules: &Modules) -> (Profile, Vec<ThreadsLine>) {
    let numbers = Numbers::of(waits);
    let mut named = Named::of(waits, &numbers, modules);
    let columns = match waits.level {
        3 => switched(waits, &numbers, &mut named),
        _ => found(waits, &numbers),
    };
    let profile = named.profile(columns);
    let lines = lines(waits, &profile);
    (profile, lines)
}

/// Numbers of stacks and groups, including groups that only the table of threads has.
struct Numbers {
    frames: Vec<Frame>,
    stacks: Vec<Vec<u32>>,
    groups: Vec<String>,
    sleeps: Vec<String>,
    group: HashMap<String, Number>,
    /// The stack of a kernel function that threads sleep in.
    sleep: HashMap<String, Number>,
    not_sampled: Number,
}

impl Numbers {
    fn of(waits: &Collected) -> Self {
        let mut numbers = Self {
            frames: waits.stacks.frames().to_vec(),
            stacks: waits.stacks.all().map(<[u32]>::to_vec).collect(),
            groups: waits.groups.values.clone(),
            sleeps: waits.sleeps.values.clone(),
            group: HashMap::new(),
            sleep: HashMap::new(),
            not_sampled: 0,
        };
        numbers.not_sampled = numbers.single(Frame::NotSampled);
        for name in waits.on_rows().flat_map(|row| row.groups.keys()) {
            if !numbers.groups.contains(name) {
                numbers.groups.push(name.clone());
            }
        }
        let groups = (0..).zip(&numbers.groups);
        numbers.group = groups.map(|(at, name)| (name.clone(), at)).collect();
        let functions = waits.on_rows().flat_map(|row| row.found.values());
        for function in functions.flat_map(BTreeMap::keys) {
            if !numbers.sleep.contains_key(function) {
                numbers.sleeps.push(function.clone());
                let frame = Frame::Sleeps(numbers.sleeps.len() as u32 - 1);
                let stack = numbers.single(frame);
                numbers.sleep.insert(function.clone(), stack);
            }
        }
        numbers
    }

    /// Adds a stack with this single frame, and returns its number.
    fn single(&mut self, frame: Frame) -> Number {
        self.frames.push(frame);
        self.stacks.push(vec![self.frames.len() as u32 - 1]);
        self.stacks.len() as Number - 1
    }

    fn frames(&self, stack: Number) -> Vec<(u32, Frame)> {
        let of_stack = self.stacks[stack as usize].iter();
        of_stack
            .map(|at| (*at, self.frames[*at as usize]))
            .collect()
    }
}

/// The times of each group in recorded seconds.
fn targets(waits: &Collected) -> BTreeMap<String, Times> {
    let mut targets: BTreeMap<String, Times> = BTreeMap::new();
    for (group, times) in waits.on_rows().flat_map(|row| &row.groups) {
        targets.entry(group.clone()).or_default().add(times);
    }
    targets
}

/// Builds the columns from the records of switches.
fn switched(waits: &Collected, numbers: &Numbers, named: &mut Named<'_>) -> Columns {
    let not_sampled = numbers.not_sampled;
    let mut by_kind: BTreeMap<(Number, Kind), Columns> = BTreeMap::new();
    for (piece, estimate) in weighted(waits, not_sampled) {
        let Stratum { group, kind, .. } = piece.stratum;
        let column = Column {
            second: piece.second,
            group,
            stack: piece.stack,
            no_core: kind != Kind::Blocked,
            waker: piece.waker,
        };
        let of_kind = by_kind.entry((group, kind)).or_default();
        let sum = of_kind.entry(column).or_default();
        sum.add(estimate.count, estimate.ns);
    }
    for ((_, kind), columns) in &mut by_kind {
        if *kind == Kind::Blocked {
            *columns = by_wakers(std::mem::take(columns));
        }
    }
    let mut all = Columns::new();
    for (name, times) in targets(waits) {
        let Some(group) = numbers.group.get(&name).copied() else {
            continue;
        };
        let mut take = |kind| by_kind.remove(&(group, kind)).unwrap_or_default();
        let (preempted, woken, blocked) = (
            take(Kind::Preempted),
            take(Kind::Woken),
            take(Kind::Blocked),
        );
        let no_core = times
            .no_core_ns
            .min(times.wall_ns.saturating_sub(times.on_ns)) as f64;
        let of_preempted = ns(&preempted).min(no_core);
        for (columns, target, is_blocked) in [
            (preempted, of_preempted, false),
            (woken, no_core - of_preempted, false),
            (blocked, times.blocked_ns() as f64, true),
        ] {
            let columns = match columns.is_empty() {
                true => spread(waits, &name, (group, not_sampled), is_blocked),
                false => columns,
            };
            let columns = match is_blocked && waits.slices > 0 {
                true => by_sleeps(waits, numbers, named, &name, columns),
                false => columns,
            };
            scale(&mut all, columns, target);
        }
    }
    all
}

fn ns(columns: &Columns) -> f64 {
    columns.values().map(|estimate| estimate.ns).sum()
}

/// Adds columns to `all`, scaled so that their total time is `target_ns`.
fn scale(all: &mut Columns, columns: Columns, target_ns: f64) {
    let factor = target_ns / ns(&columns).max(1.0);
    for (column, estimate) in columns {
        let sum = all.entry(column).or_default();
        sum.add(estimate.count, estimate.ns * factor);
    }
}

/// Each piece with the intervals that it represents; intervals without a representative have no stack.
fn weighted(waits: &Collected, not_sampled: Number) -> Vec<(Piece, Estimate)> {
    let switches = &waits.switches;
    let mut sampled: HashMap<Stratum, Sum> = HashMap::new();
    for (piece, sum) in switches.pieces.iter().filter(|(piece, _)| !piece.is_known) {
        sampled
            .entry(piece.stratum)
            .or_default()
            .add(sum.count, sum.ns);
    }
    // If no interval of a length has a stack, the nearest length with stacks represents it.
    let nearest = |stratum: &Stratum| {
        let alike = sampled.iter().filter(|(other, sum)| {
            (other.group, other.kind) == (stratum.group, stratum.kind) && sum.ns > 0
        });
        let distance = |other: &Stratum| (other.length.abs_diff(stratum.length), other.length);
        let nearest = alike.map(|(other, _)| *other).min_by_key(distance);
        nearest.unwrap_or(*stratum)
    };
    let mut exact: HashMap<Stratum, Sum> = HashMap::new();
    let mut like: HashMap<Stratum, Stratum> = HashMap::new();
    for ((stratum, _), sum) in &switches.exact {
        let like = like.entry(*stratum).or_insert_with(|| nearest(stratum));
        exact.entry(*like).or_default().add(sum.count, sum.ns);
    }
    let ratio = |all: u64, some: u64| all as f64 / some.max(1) as f64;
    let mut found: Vec<(Piece, Estimate)> = Vec::new();
    for (piece, sum) in &switches.pieces {
        let (count, ns) = match (
            piece.is_known,
            exact.get(&piece.stratum),
            sampled.get(&piece.stratum),
        ) {
            (false, Some(exact), Some(sampled)) => (
                ratio(exact.count, sampled.count),
                ratio(exact.ns, sampled.ns),
            ),
            _ => (1.0, 1.0),
        };
        let estimate = Estimate {
            count: sum.count as f64 * count,
            ns: sum.ns as f64 * ns,
        };
        found.push((*piece, estimate));
    }
    for ((stratum, second), sum) in &switches.exact {
        let like = like.get(stratum).unwrap_or(stratum);
        if sampled.get(like).is_none_or(|sampled| sampled.ns == 0) {
            let piece = Piece {
                second: *second,
                stratum: *stratum,
                stack: not_sampled,
                waker: None,
                is_known: true,
            };
            let estimate = Estimate {
                count: sum.count as f64,
                ns: sum.ns as f64,
            };
            found.push((piece, estimate));
        }
    }
    found
}

/// Divides the waits of each stack among its recorded wakers, which are known for only some of the waits.
fn by_wakers(columns: Columns) -> Columns {
    let mut wakers: HashMap<(Number, Number), HashMap<Number, Estimate>> = HashMap::new();
    for (column, estimate) in &columns {
        if let Some(waker) = column.waker {
            let of_stack = wakers.entry((column.group, column.stack)).or_default();
            let sum = of_stack.entry(waker).or_default();
            sum.add(estimate.count, estimate.ns);
        }
    }
    let mut divided = Columns::new();
    for (column, estimate) in columns {
        let known = wakers.get(&(column.group, column.stack));
        for (waker, part) in known.map_or_else(|| vec![(None, 1.0)], shares) {
            let column = Column {
                waker,
                ..column.clone()
            };
            let sum = divided.entry(column).or_default();
            sum.add(estimate.count * part, estimate.ns * part);
        }
    }
    divided
}

/// The most frequent wakers with their parts of the time; `None` for the others.
fn shares(wakers: &HashMap<Number, Estimate>) -> Vec<(Option<Number>, f64)> {
    let all: f64 = wakers.values().map(|estimate| estimate.ns).sum();
    let count: f64 = wakers.values().map(|estimate| estimate.count).sum();
    if all <= 0.0 || count < ENOUGH_WAKERS as f64 {
        return vec![(None, 1.0)];
    }
    let mut order: Vec<(Number, f64)> = wakers
        .iter()
        .map(|(waker, estimate)| (*waker, estimate.ns / all))
        .collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    order.truncate(MOST_WAKERS);
    let rest = 1.0 - order.iter().map(|(_, part)| part).sum::<f64>();
    let order = order.into_iter().map(|(waker, part)| (Some(waker), part));
    order.chain((rest > 1e-9).then_some((None, rest))).collect()
}

/// The time of a group in recorded seconds, without stacks.
fn spread(
    waits: &Collected,
    name: &str,
    (group, stack): (Number, Number),
    is_blocked: bool,
) -> Columns {
    let rows = waits
        .on_rows()
        .filter_map(|row| Some((row, row.groups.get(name)?)));
    let columns = rows.map(|(row, times)| {
        let ns = if is_blocked {
            times.blocked_ns()
        } else {
            times.no_core_ns
        };
        let column = Column {
            second: second(row),
            group,
            stack,
            no_core: !is_blocked,
            waker: None,
        };
        let estimate = Estimate {
            count: 0.0,
            ns: ns as f64,
        };
        (column, estimate)
    });
    columns.filter(|(_, estimate)| estimate.ns > 0.0).collect()
}

fn second(row: &Row) -> u32 {
    u32::try_from(row.from.as_secs()).unwrap_or(u32::MAX)
}

/// Returns how often sleeping threads of a group were found in each kernel function.
fn sleeps<'w>(rows: impl Iterator<Item = &'w Row>, group: &str) -> BTreeMap<&'w str, u64> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (function, count) in rows.filter_map(|row| row.found.get(group)).flatten() {
        *sums.entry(function).or_default() += count;
    }
    sums
}

/// Where switches were recorded in slices, long waits are truncated, and many of them are missing. Readings of the
/// sleeping kernel functions give the time of each kind of wait; stacks give the waiting code.
fn by_sleeps(
    waits: &Collected,
    numbers: &Numbers,
    named: &mut Named<'_>,
    name: &str,
    columns: Columns,
) -> Columns {
    let sleeps = sleeps(waits.on_rows(), name);
    let reads: u64 = sleeps.values().sum();
    let Some(group) = numbers.group.get(name).filter(|_| reads >= ENOUGH_READS) else {
        return columns;
    };
    let mut sums: BTreeMap<Class, Estimate> = BTreeMap::new();
    for (column, estimate) in &columns {
        let sum = sums.entry(named.stack(column.stack).by_kernel).or_default();
        sum.add(estimate.count, estimate.ns);
    }
    let is_short = |class: &Class| {
        let sum = sums.get(class);
        sum.is_some_and(|sum| sum.ns > 0.0 && sum.ns < SHORT_NS * sum.count)
    };
    let mut factors: BTreeMap<Class, f64> = BTreeMap::new();
    let mut found: BTreeMap<Class, u64> = BTreeMap::new();
    for (function, count) in &sleeps {
        *found.entry(waits.patterns.of_wchan(function)).or_default() += count;
    }
    let short_ns: f64 = sums
        .iter()
        .filter(|(class, _)| is_short(class))
        .map(|(_, sum)| sum.ns)
        .sum();
    let short_reads: u64 = found
        .iter()
        .filter(|(class, _)| is_short(class))
        .map(|(_, count)| count)
        .sum();
    for (class, sum) in &sums {
        let factor = match is_short(class) {
            true => short_reads as f64 / short_ns.max(1.0),
            false => found.get(class).map_or(0.0, |count| *count as f64) / sum.ns.max(1.0),
        };
        factors.insert(*class, factor);
    }
    let mut weighted = Columns::new();
    for (column, estimate) in columns {
        let factor = factors.get(&named.stack(column.stack).by_kernel);
        let sum = weighted.entry(column).or_default();
        sum.add(estimate.count, estimate.ns * factor.copied().unwrap_or(0.0));
    }
    let rows: Vec<&Row> = waits.on_rows().collect();
    for (function, count) in sleeps {
        let class = waits.patterns.of_wchan(function);
        if sums.get(&class).is_some_and(|sum| sum.ns > 0.0) {
            continue;
        }
        for row in &rows {
            let column = Column {
                second: second(row),
                group: *group,
                stack: numbers.sleep[function],
                no_core: false,
                waker: None,
            };
            weighted.entry(column).or_default().ns += count as f64 / rows.len() as f64;
        }
    }
    weighted
}

/// Builds the columns from the kernel functions in which threads were found.
fn found(waits: &Collected, numbers: &Numbers) -> Columns {
    let mut all = Columns::new();
    let mut together: HashMap<&str, BTreeMap<&str, u64>> = HashMap::new();
    for row in waits.on_rows() {
        for (name, times) in &row.groups {
            let column = |stack, no_core| Column {
                second: second(row),
                group: numbers.group[name],
                stack,
                no_core,
                waker: None,
            };
            let no_core = all.entry(column(numbers.not_sampled, true)).or_default();
            no_core.ns += times.no_core_ns as f64;
            let mut functions = sleeps(std::iter::once(row), name);
            if functions.is_empty() {
                // In a second without readings of the group's sleeping threads, the other seconds are used.
                let all = together.entry(name);
                functions = all.or_insert_with(|| sleeps(waits.on_rows(), name)).clone();
            }
            let sum: u64 = functions.values().sum();
            for (function, count) in &functions {
                let of_function = all.entry(column(numbers.sleep[*function], false));
                let ns = times.blocked_ns() as f64 * *count as f64 / sum as f64;
                of_function.or_default().add(*count as f64, ns);
            }
            if functions.is_empty() {
                let unknown = all.entry(column(numbers.not_sampled, false)).or_default();
                unknown.ns += times.blocked_ns() as f64;
            }
        }
    }
    all
}

/// Stacks with their names and classes.
struct Named<'a> {
    waits: &'a Collected,
    numbers: &'a Numbers,
    modules: &'a Modules,
    named: NamedStacks,
    stacks: HashMap<Number, Waiting>,
}

/// A stack of a wait.
struct Waiting {
    locations: Vec<usize>,
    class: Class,
    /// The class by the functions of the kernel alone.
    by_kernel: Class,
}

impl<'a> Named<'a> {
    fn of(waits: &'a Collected, numbers: &'a Numbers, modules: &'a Modules) -> Self {
        Self {
            waits,
            numbers,
            modules,
            named: NamedStacks::of(&numbers.frames, modules, &numbers.sleeps),
            stacks: HashMap::new(),
        }
    }

    fn stack(&mut self, stack: Number) -> &Waiting {
        if !self.stacks.contains_key(&stack) {
            let waiting = self.waiting(stack);
            self.stacks.insert(stack, waiting);
        }
        &self.stacks[&stack]
    }

    fn waiting(&self, stack: Number) -> Waiting {
        let frames = self.numbers.frames(stack);
        let locations = self.named.stack(&frames, self.modules).locations;
        let functions = functions(&frames, &locations, &self.named.profile);
        let kernel = functions.iter().filter(|(_, is_kernel)| *is_kernel);
        let kernel: Vec<(&str, bool)> = kernel.copied().collect();
        let patterns = &self.waits.patterns;
        let (class, by_kernel) = match frames.first() {
            Some((_, Frame::Sleeps(function))) => {
                let class = patterns.of_wchan(&self.numbers.sleeps[*function as usize]);
                (class, class)
            }
            Some((_, Frame::NotSampled | Frame::Other)) | None => (Class::Other, Class::Other),
            Some(_) => (
                patterns.class(&functions, false),
                patterns.class(&kernel, false),
            ),
        };
        Waiting {
            locations,
            class,
            by_kernel,
        }
    }

    /// The code that ended waits: the thread group and the function.
    fn waker(&self, waker: Number) -> Option<String> {
        let (group, stack) = self.waits.wakers.values.get(waker as usize)?;
        let frames = self.numbers.frames(*stack);
        let locations = self.named.stack(&frames, self.modules).locations;
        let functions = functions(&frames, &locations, &self.named.profile);
        let function = self.waits.patterns.waker(&functions)?;
        let group = &self.numbers.groups[*group as usize];
        Some(format!("{group} in {function}"))
    }

    fn profile(&mut self, columns: Columns) -> Profile {
        let mut wakers = Vec::new();
        let mut known: HashMap<Number, Option<usize>> = HashMap::new();
        let mut samples: BTreeMap<(u32, usize, Vec<usize>, Wait), Estimate> = BTreeMap::new();
        let mut columns: Vec<(Column, Estimate)> = columns.into_iter().collect();
        columns.sort_by(|a, b| a.0.cmp(&b.0));
        for (column, estimate) in columns {
            let waker = column.waker.and_then(|waker| {
                let at = known.entry(waker);
                *at.or_insert_with(|| Some(position(&mut wakers, self.waker(waker)?)))
            });
            let stack = self.stack(column.stack);
            let class = match column.no_core {
                true => Class::NoCore,
                false => stack.class,
            };
            let wait = Wait { class, waker };
            let locations = stack.locations.clone();
            let key = (column.second, column.group as usize, locations, wait);
            let sum = samples.entry(key).or_default();
            sum.add(estimate.count, estimate.ns);
        }
        let samples = samples.into_iter();
        let samples = samples.map(|((second, thread, stack, wait), estimate)| Sample {
            stack,
            thread,
            second,
            count: estimate.count.round() as u64,
            ns: estimate.ns.round() as u64,
            wait: Some(wait),
        });
        Profile {
            kind: ProfileKind::Off,
            threads: self.numbers.groups.clone(),
            wakers,
            samples: samples.filter(|sample| sample.ns > 0).collect(),
            ..self.named.profile.clone()
        }
    }
}

fn position(names: &mut Vec<String>, name: String) -> usize {
    let known = names.iter().position(|one| *one == name);
    known.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// The functions of a stack, the innermost first, and whether they are the kernel's.
fn functions<'p>(
    frames: &[(u32, Frame)],
    stack: &[usize],
    tables: &'p Profile,
) -> Vec<(&'p str, bool)> {
    let mut found = Vec::new();
    for ((_, frame), location) in frames.iter().zip(stack) {
        let is_kernel = matches!(frame, Frame::Kernel(_) | Frame::Sleeps(_));
        for line in &tables.locations[*location].lines {
            found.push((tables.functions[line.function].name.as_str(), is_kernel));
        }
    }
    found
}

/// The table of threads, with blocked time divided by class as in the profile. For seconds of a group that are not in the
/// profile, the division of all its seconds is used.
fn lines(waits: &Collected, profile: &Profile) -> Vec<ThreadsLine> {
    let mut by_second: HashMap<(u32, &str), Classes> = HashMap::new();
    let mut together: HashMap<&str, Classes> = HashMap::new();
    for sample in &profile.samples {
        let class = sample.wait.map_or(Class::Other, |wait| wait.class);
        if class != Class::NoCore {
            let name = profile.threads[sample.thread].as_str();
            let of_second = by_second.entry((sample.second, name)).or_default();
            *of_second.entry(class).or_default() += sample.ns;
            *together.entry(name).or_default().entry(class).or_default() += sample.ns;
        }
    }
    let line = |row: &Row, name: &String, times: &Times| {
        let seconds = row.from.as_secs()..row.to.as_secs().max(row.from.as_secs() + 1);
        let seconds = seconds.filter_map(|second| u32::try_from(second).ok());
        let mut blocked = Classes::new();
        for classes in seconds.filter_map(|second| by_second.get(&(second, name.as_str()))) {
            for (class, ns) in classes {
                *blocked.entry(*class).or_default() += ns;
            }
        }
        if blocked.is_empty() {
            blocked = together.get(name.as_str()).cloned().unwrap_or_default();
        }
        let sum: u64 = blocked.values().sum();
        for ns in blocked.values_mut() {
            *ns = (*ns as f64 * times.blocked_ns() as f64 / sum.max(1) as f64) as u64;
        }
        let is_known = row.is_on && waits.level >= 1 && (sum > 0 || times.blocked_ns() == 0);
        ThreadsLine {
            t_ms: row.to.as_secs_f64() * 1e3,
            group: ThreadGroup {
                name: name.clone(),
                threads: times.threads,
                wall_ns: times.wall_ns,
                on_cpu_ns: times.on_ns,
                no_core_ns: times.no_core_ns,
                blocked_ns: is_known.then_some(blocked),
            },
        }
    };
    let rows = waits.rows.iter();
    let lines = rows.flat_map(|row| {
        row.groups
            .iter()
            .map(move |(name, times)| (row, name, times))
    });
    lines
        .map(|(row, name, times)| line(row, name, times))
        .collect()
}
