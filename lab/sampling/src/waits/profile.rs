//! Puts intervals and names together as a profile of waits, and divides the time of thread groups by class.
//!
//! Stacks are those of some intervals. They stand for all intervals of their group that are as long, within a factor of
//! four, and of the same kind. The sums of a group are then made the times that the scheduler counted.

use std::collections::{BTreeMap, HashMap};

use lab_archive::ThreadsLine;
use lab_profile::waits::{Class, ThreadGroup};
use lab_profile::{Kind as ProfileKind, Profile, Sample, Wait};

use super::switches::{Kind, Number, Piece, Stratum, Sum};
use super::usage::Times;
use super::{Row, Waits};
use crate::assemble::NamedStacks;
use crate::files::Modules;
use crate::stacks::Frame;

/// A wait has a waker of its stack's wakers if so many were recorded for the stack.
const ENOUGH_WAKERS: u64 = 3;
/// Wakers of a stack that are told apart.
const MOST_WAKERS: usize = 3;

/// What samples of the profile differ by.
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

/// Nanoseconds by class.
type Classes = BTreeMap<Class, u64>;

type Columns = HashMap<Column, Estimate>;

/// The profile of all waits in recorded seconds, and the lines of the table of threads.
pub(super) fn of(waits: &Waits, modules: &Modules) -> (Profile, Vec<ThreadsLine>) {
    let mut stacks = Numbers {
        frames: waits.stacks.frames().to_vec(),
        groups: waits.groups.values.clone(),
        sleeps: waits.sleeps.values.clone(),
        extra: HashMap::new(),
        all: waits.stacks.all().map(<[u32]>::to_vec).collect(),
    };
    let columns = match waits.level {
        3 => switched(waits, &mut stacks),
        _ => found(waits, &mut stacks),
    };
    let profile = named(waits, &stacks, columns, modules);
    let lines = lines(waits, &profile);
    (profile, lines)
}

/// Numbers of stacks and groups, with those that only the table of threads has.
struct Numbers {
    frames: Vec<Frame>,
    groups: Vec<String>,
    sleeps: Vec<String>,
    extra: HashMap<Frame, Number>,
    all: Vec<Vec<u32>>,
}

impl Numbers {
    fn group(&mut self, name: &str) -> Number {
        let known = self.groups.iter().position(|group| group == name);
        let at = known.unwrap_or_else(|| {
            self.groups.push(name.to_owned());
            self.groups.len() - 1
        });
        at as Number
    }

    /// The stack of one frame.
    fn single(&mut self, frame: Frame) -> Number {
        if let Some(known) = self.extra.get(&frame) {
            return *known;
        }
        self.frames.push(frame);
        self.all.push(vec![self.frames.len() as u32 - 1]);
        let number = self.all.len() as Number - 1;
        self.extra.insert(frame, number);
        number
    }

    fn sleeps(&mut self, function: &str) -> Number {
        let known = self.sleeps.iter().position(|one| one == function);
        let at = known.unwrap_or_else(|| {
            self.sleeps.push(function.to_owned());
            self.sleeps.len() - 1
        });
        self.single(Frame::Sleeps(at as u32))
    }
}

/// The times of each group in recorded seconds.
fn targets(waits: &Waits) -> BTreeMap<String, Times> {
    let mut targets: BTreeMap<String, Times> = BTreeMap::new();
    for (group, times) in waits.on_rows().flat_map(|row| &row.groups) {
        targets.entry(group.clone()).or_default().add(times);
    }
    targets
}

/// By the records of switches.
fn switched(waits: &Waits, numbers: &mut Numbers) -> Columns {
    let not_sampled = numbers.single(Frame::NotSampled);
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
        sum.count += estimate.count;
        sum.ns += estimate.ns;
    }
    for ((_, kind), columns) in &mut by_kind {
        if *kind == Kind::Blocked {
            *columns = by_wakers(std::mem::take(columns));
        }
    }
    let mut all = Columns::new();
    for (name, times) in targets(waits) {
        let group = numbers.group(&name);
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
            scale(&mut all, columns, target);
        }
    }
    all
}

fn ns(columns: &Columns) -> f64 {
    columns.values().map(|estimate| estimate.ns).sum()
}

/// Adds columns so that their time is this.
fn scale(all: &mut Columns, columns: Columns, target_ns: f64) {
    let factor = target_ns / ns(&columns).max(1.0);
    for (column, estimate) in columns {
        let sum = all.entry(column).or_default();
        sum.count += estimate.count;
        sum.ns += estimate.ns * factor;
    }
}

/// Each piece with the intervals that it stands for; those that nothing stands for have no stack.
fn weighted(waits: &Waits, not_sampled: Number) -> Vec<(Piece, Estimate)> {
    let switches = &waits.switches;
    let mut exact: HashMap<Stratum, Sum> = HashMap::new();
    for ((stratum, _), sum) in &switches.exact {
        let all = exact.entry(*stratum).or_default();
        all.count += sum.count;
        all.ns += sum.ns;
    }
    let mut sampled: HashMap<Stratum, Sum> = HashMap::new();
    for (piece, sum) in switches.pieces.iter().filter(|(piece, _)| !piece.is_known) {
        let all = sampled.entry(piece.stratum).or_default();
        all.count += sum.count;
        all.ns += sum.ns;
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
        if sampled.get(stratum).is_none_or(|sampled| sampled.ns == 0) {
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

/// Gives the waits of each stack the wakers that were recorded for some of them.
fn by_wakers(columns: Columns) -> Columns {
    let mut wakers: HashMap<(Number, Number), HashMap<Number, Estimate>> = HashMap::new();
    for (column, estimate) in &columns {
        if let Some(waker) = column.waker {
            let of_stack = wakers.entry((column.group, column.stack)).or_default();
            let sum = of_stack.entry(waker).or_default();
            sum.count += estimate.count;
            sum.ns += estimate.ns;
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
            sum.count += estimate.count * part;
            sum.ns += estimate.ns * part;
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
    waits: &Waits,
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

/// By the kernel functions that threads were found in.
fn found(waits: &Waits, numbers: &mut Numbers) -> Columns {
    let not_sampled = numbers.single(Frame::NotSampled);
    let mut together: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for (group, functions) in waits.on_rows().flat_map(|row| &row.found) {
        for (function, count) in functions {
            *together
                .entry(group)
                .or_default()
                .entry(function)
                .or_default() += count;
        }
    }
    let mut all = Columns::new();
    for row in waits.on_rows() {
        for (name, times) in &row.groups {
            let group = numbers.group(name);
            let column = |stack, no_core| Column {
                second: second(row),
                group,
                stack,
                no_core,
                waker: None,
            };
            let no_core = all.entry(column(not_sampled, true)).or_default();
            no_core.ns += times.no_core_ns as f64;
            // A second in which the group wasn't found asleep is like the others.
            let of_row = row.found.get(name).map(|of_row| {
                let of_row = of_row.iter();
                of_row
                    .map(|(function, count)| (function.as_str(), *count))
                    .collect()
            });
            let functions: BTreeMap<&str, u64> = of_row
                .or_else(|| together.get(name.as_str()).cloned())
                .unwrap_or_default();
            let sum: u64 = functions.values().sum();
            for (function, count) in &functions {
                let stack = numbers.sleeps(function);
                let of_function = all.entry(column(stack, false)).or_default();
                of_function.count += *count as f64;
                of_function.ns += times.blocked_ns() as f64 * *count as f64 / sum as f64;
            }
            if functions.is_empty() {
                let unknown = all.entry(column(not_sampled, false)).or_default();
                unknown.ns += times.blocked_ns() as f64;
            }
        }
    }
    all
}

/// Names all stacks and wakers.
fn named(waits: &Waits, numbers: &Numbers, columns: Columns, modules: &Modules) -> Profile {
    let named = NamedStacks::of(&numbers.frames, modules, &numbers.sleeps);
    let frames = |stack: Number| -> Vec<(u32, Frame)> {
        let of_stack = numbers.all[stack as usize].iter();
        of_stack
            .map(|at| (*at, numbers.frames[*at as usize]))
            .collect()
    };
    let mut profile = Profile {
        kind: ProfileKind::Off,
        threads: numbers.groups.clone(),
        ..named.profile.clone()
    };
    let mut stacks: HashMap<Number, (Vec<usize>, Class)> = HashMap::new();
    let mut wakers: HashMap<Number, Option<usize>> = HashMap::new();
    let mut columns: Vec<(Column, Estimate)> = columns.into_iter().collect();
    columns.sort_by(|a, b| a.0.cmp(&b.0));
    let mut samples: BTreeMap<(u32, usize, Vec<usize>, Wait), Estimate> = BTreeMap::new();
    for (column, estimate) in columns {
        let (stack, class) = stacks.entry(column.stack).or_insert_with(|| {
            let frames = frames(column.stack);
            let stack = named.stack(&frames, modules);
            let class = class(waits, numbers, &frames, &stack, &named.profile);
            (stack, class)
        });
        let waker = column.waker.and_then(|waker| {
            *wakers.entry(waker).or_insert_with(|| {
                let (group, stack) = waits.wakers.values.get(waker as usize)?;
                let frames = frames(*stack);
                let stack = named.stack(&frames, modules);
                let functions = functions(&frames, &stack, &named.profile);
                let function = waits.patterns.waker(&functions)?;
                let name = format!("{} in {function}", numbers.groups[*group as usize]);
                Some(position(&mut profile.wakers, name))
            })
        });
        let wait = Wait {
            class: if column.no_core {
                Class::NoCore
            } else {
                *class
            },
            waker,
        };
        let key = (column.second, column.group as usize, stack.clone(), wait);
        let sum = samples.entry(key).or_default();
        sum.count += estimate.count;
        sum.ns += estimate.ns;
    }
    let samples = samples
        .into_iter()
        .map(|((second, thread, stack, wait), estimate)| Sample {
            stack,
            thread,
            second,
            count: estimate.count.round() as u64,
            ns: estimate.ns.round() as u64,
            wait: Some(wait),
        });
    profile.samples = samples.filter(|sample| sample.ns > 0).collect();
    profile
}

fn position(names: &mut Vec<String>, name: String) -> usize {
    let known = names.iter().position(|one| *one == name);
    known.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

fn class(
    waits: &Waits,
    numbers: &Numbers,
    frames: &[(u32, Frame)],
    stack: &[usize],
    tables: &Profile,
) -> Class {
    match frames.first() {
        Some((_, Frame::Sleeps(function))) => {
            waits.patterns.of_wchan(&numbers.sleeps[*function as usize])
        }
        Some((_, Frame::NotSampled | Frame::Other)) | None => Class::Other,
        Some(_) => waits
            .patterns
            .class(&functions(frames, stack, tables), false),
    }
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

/// The table of threads, with the time in which they were blocked by class as the profile has it. Seconds of a group that
/// the profile doesn't know are like the others.
fn lines(waits: &Waits, profile: &Profile) -> Vec<ThreadsLine> {
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
