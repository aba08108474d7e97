//! `threads.csv` and `latency.hlog`: how the system's threads spent the hold.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::path::Path;
use std::time::Duration;

use hdrhistogram::Histogram;
use lab_profile::waits::scheduling::Latencies;
use lab_profile::waits::{Class, ThreadGroup};

use crate::hlog::{Decoder, Encoder};
use crate::wire::{self, Sizes};
use crate::{ArchiveError, monitor, names};

/// First lines of `latency.hlog`.
const HEADER: &str = "\
#[plimsoll scheduling latency: values in microseconds, times in seconds from the start of the ramp]
#[Histogram log format version 1.3]
#[StartTime: 0.000 (seconds since epoch)]
\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"
";
/// The first columns of `threads.csv`. Columns of classes follow.
const COLUMNS: [&str; 6] = [
    monitor::TIME,
    "group",
    "threads",
    "wall_ms",
    "on_cpu_ms",
    "no_core_ms",
];
/// The maximum size of each file in bytes; larger files are neither written nor read.
pub(crate) const MOST_BYTES: u64 = 64 << 20;
/// The maximum number of lines of `latency.hlog`, one per group of threads.
const MOST_GROUPS: usize = 1000;
/// The maximum length of a line of `latency.hlog`, in bytes.
const MOST_LINE_BYTES: u64 = 1 << 20;
/// The maximum length of a group's name, in bytes.
const MOST_NAME_BYTES: usize = 200;

/// A group of threads in a part of the hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadsLine {
    /// The end of the part, on the trial's clock.
    pub t_ms: f64,
    /// The group's times since the line before.
    pub group: ThreadGroup,
}

/// The recorded waits of a trial's system. Each file is `None` where none was recorded. No figure needs these files,
/// so a damaged one, which is an error, does not affect the rest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waits {
    /// `waits.pb.gz` as it lies on disk: a profile of kind [`lab_profile::Kind::Off`].
    pub profile: Option<Result<Vec<u8>, String>>,
    /// The lines of `threads.csv` in order of time.
    pub threads: Option<Result<Vec<ThreadsLine>, String>>,
    /// `latency.hlog`.
    pub latency: Option<Result<Latencies, String>>,
}

impl Waits {
    /// How each group of threads spent the hold, in the order of their names; `None` where it wasn't recorded, and an error
    /// where the file is damaged.
    #[must_use]
    pub fn groups(&self) -> Option<Result<Vec<ThreadGroup>, String>> {
        let lines = self.threads.as_ref()?;
        Some(match lines {
            Ok(lines) => Ok(groups_of(lines)),
            Err(problem) => Err(problem.clone()),
        })
    }

    pub(crate) fn read(folder: &Path, sizes: &Sizes) -> Self {
        Self {
            profile: whole(folder, names::WAITS, sizes),
            threads: bounded(folder, names::THREADS, MOST_BYTES, sizes, |path, bytes| {
                parse_threads(path, &bytes)
            }),
            latency: bounded(folder, names::LATENCY, MOST_BYTES, sizes, |path, bytes| {
                parse_latency(path, &bytes)
            }),
        }
    }
}

/// Reads a file of at most 16 MiB that figures don't need; `None` where there is none.
pub(crate) fn whole(folder: &Path, name: &str, sizes: &Sizes) -> Option<Result<Vec<u8>, String>> {
    bounded(
        folder,
        name,
        names::MOST_PROFILE_BYTES,
        sizes,
        |_, bytes| Ok(bytes),
    )
}

/// Returns the parsed file, or the problem with it.
fn bounded<T>(
    folder: &Path,
    name: &str,
    most: u64,
    sizes: &Sizes,
    parse: impl FnOnce(&Path, Vec<u8>) -> Result<T, ArchiveError>,
) -> Option<Result<T, String>> {
    let path = folder.join(name);
    if !path.exists() && !sizes.contains_key(name) {
        return None;
    }
    let small = match path.metadata() {
        Ok(file) if file.len() > most => {
            let problem = format!("it is larger than {} MiB", most >> 20);
            Err(ArchiveError::damaged(&path, None, problem))
        }
        _ => Ok(()),
    };
    let bytes = small.and_then(|()| wire::read_sized(&path, name, sizes));
    let value = bytes.and_then(|bytes| parse(&path, bytes));
    Some(value.map_err(|error| error.to_string()))
}

/// Adds up the lines of each group. Blocked time of lines without classes is divided in the same proportions as that of
/// the other lines.
#[must_use]
pub fn groups_of(lines: &[ThreadsLine]) -> Vec<ThreadGroup> {
    let mut groups: BTreeMap<&str, ThreadGroup> = BTreeMap::new();
    for ThreadsLine { group, .. } in lines {
        let sum = groups.entry(&group.name).or_insert_with(|| ThreadGroup {
            name: group.name.clone(),
            ..ThreadGroup::default()
        });
        sum.threads = sum.threads.max(group.threads);
        sum.wall_ns = sum.wall_ns.saturating_add(group.wall_ns);
        sum.on_cpu_ns = sum.on_cpu_ns.saturating_add(group.on_cpu_ns);
        sum.no_core_ns = sum.no_core_ns.saturating_add(group.no_core_ns);
        if let Some(blocked) = &group.blocked_ns {
            let classes = sum.blocked_ns.get_or_insert_default();
            for (class, ns) in blocked {
                let of_class = classes.entry(*class).or_default();
                *of_class = of_class.saturating_add(*ns);
            }
        }
    }
    let mut groups: Vec<ThreadGroup> = groups.into_values().collect();
    for group in &mut groups {
        let runs = group.on_cpu_ns.saturating_add(group.no_core_ns);
        let blocked = group.wall_ns.saturating_sub(runs);
        if let Some(classes) = &mut group.blocked_ns {
            scale(classes, blocked);
        }
    }
    groups
}

/// Scales the times of all classes so that their sum is `to_ns`.
fn scale(classes: &mut BTreeMap<Class, u64>, to_ns: u64) {
    let sum: u128 = classes.values().map(|ns| u128::from(*ns)).sum();
    for ns in classes.values_mut() {
        let scaled = u128::from(*ns) * u128::from(to_ns) / sum.max(1);
        *ns = u64::try_from(scaled).unwrap_or(u64::MAX);
    }
}

fn classes() -> impl Iterator<Item = Class> {
    let all = Class::ALL.into_iter();
    all.filter(|class| *class != Class::NoCore)
}

/// The content of `threads.csv`.
pub(crate) fn threads(path: &Path, lines: &[ThreadsLine]) -> Result<Vec<u8>, ArchiveError> {
    let unwritable = |error: csv::Error| ArchiveError::unwritable(path, error);
    let header = COLUMNS.into_iter().map(str::to_owned);
    let header = header.chain(classes().map(|class| format!("{}_ms", class.name())));
    let mut bytes = monitor::line(header).map_err(unwritable)?;
    for ThreadsLine { t_ms, group } in lines {
        let known = group.blocked_ns.as_ref();
        let of_class = |class| match known {
            Some(blocked) => ms(blocked.get(&class).copied().unwrap_or(0)),
            None => String::new(),
        };
        let first = [
            format!("{t_ms:.3}"),
            group.name.clone(),
            group.threads.to_string(),
            ms(group.wall_ns),
            ms(group.on_cpu_ns),
            ms(group.no_core_ns),
        ];
        let fields = first.into_iter().chain(classes().map(of_class));
        bytes.extend(monitor::line(fields).map_err(unwritable)?);
    }
    Ok(bytes)
}

/// Milliseconds with all digits of the nanoseconds.
fn ms(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}

fn parse_threads(path: &Path, bytes: &[u8]) -> Result<Vec<ThreadsLine>, ArchiveError> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(true)
        .from_reader(bytes);
    let damaged = |e: csv::Error| {
        let line = e.position().map(csv::Position::line);
        ArchiveError::damaged(path, line, e)
    };
    let header = reader.headers().map_err(damaged)?.clone();
    if !COLUMNS
        .iter()
        .copied()
        .eq(header.iter().take(COLUMNS.len()))
    {
        let problem = format!("the first columns are not {}", COLUMNS.join(","));
        return Err(ArchiveError::damaged(path, Some(1), problem));
    }
    // Columns of a later version's classes are skipped.
    let columns = header
        .iter()
        .map(|name| Class::named(name.strip_suffix("_ms")?));
    let columns: Vec<Option<Class>> = columns.collect();
    let mut lines = Vec::new();
    for record in reader.records() {
        let record = record.map_err(damaged)?;
        let at = record.position().map(csv::Position::line);
        let line = parse_line(&record, &columns);
        lines.push(line.map_err(|problem| ArchiveError::damaged(path, at, problem))?);
    }
    Ok(lines)
}

fn parse_line(
    record: &csv::StringRecord,
    columns: &[Option<Class>],
) -> Result<ThreadsLine, String> {
    let field = |at: usize| record.get(at).unwrap_or("");
    let t_ms = field(0).parse::<f64>().ok().filter(|t| t.is_finite());
    let name = field(1);
    if name.len() > MOST_NAME_BYTES {
        return Err("the name of a group is longer than 200 bytes".to_owned());
    }
    let (mut blocked, mut is_known) = (BTreeMap::new(), false);
    for (at, class) in columns.iter().enumerate().skip(COLUMNS.len()) {
        if let Some(class) = class.filter(|_| !field(at).is_empty()) {
            is_known = true;
            let ns = ns(field(at))?;
            if ns > 0 {
                blocked.insert(class, ns);
            }
        }
    }
    Ok(ThreadsLine {
        t_ms: t_ms.ok_or_else(|| format!("`{}` is no time", field(0)))?,
        group: ThreadGroup {
            name: name.to_owned(),
            threads: field(2)
                .parse()
                .map_err(|_| format!("`{}` is no number of threads", field(2)))?,
            wall_ns: ns(field(3))?,
            on_cpu_ns: ns(field(4))?,
            no_core_ns: ns(field(5))?,
            blocked_ns: is_known.then_some(blocked),
        },
    })
}

fn ns(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no time in ms");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    let ns = whole
        .checked_mul(1_000_000)
        .and_then(|ns| ns.checked_add(part));
    ns.ok_or_else(wrong)
}

/// `latency.hlog`, with one line per group for the whole hold. Beyond the maximum, the groups with the fewest values are
/// dropped.
pub(crate) fn latency(
    path: &Path,
    (from, to): (Duration, Duration),
    groups: &Latencies,
) -> Result<Vec<u8>, ArchiveError> {
    let mut encoder = Encoder::default();
    let mut bytes = HEADER.as_bytes().to_vec();
    let mut largest: Vec<(&String, &Histogram<u64>)> = groups.iter().collect();
    largest.sort_by_key(|(_, histogram)| std::cmp::Reverse(histogram.len()));
    largest.truncate(MOST_GROUPS);
    largest.sort_by_key(|(group, _)| *group);
    for (group, histogram) in largest {
        let line = encoder.tagged(&tag(group), from, to, histogram);
        bytes.extend(line.map_err(|problem| ArchiveError::unwritable(path, problem))?);
    }
    Ok(bytes)
}

fn parse_latency(path: &Path, mut bytes: &[u8]) -> Result<Latencies, ArchiveError> {
    let mut decoder = Decoder::default();
    let mut groups = Latencies::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = bytes
            .by_ref()
            .take(MOST_LINE_BYTES)
            .read_until(b'\n', &mut line);
        if read.map_err(ArchiveError::read(path))? == 0 {
            break;
        }
        let damaged = |problem: String| ArchiveError::damaged(path, Some(number), problem);
        let Some((tag, histogram)) = decoder.tagged(&line).map_err(damaged)? else {
            continue;
        };
        if groups.len() >= MOST_GROUPS {
            return Err(damaged(format!("it has more than {MOST_GROUPS} groups")));
        }
        let group = untag(&tag).ok_or_else(|| damaged(format!("`{tag}` is no name")))?;
        if groups.insert(group, histogram).is_some() {
            return Err(damaged(format!("`{tag}` is there twice")));
        }
    }
    Ok(groups)
}

/// The name of a group as a tag, which has neither spaces nor commas.
fn tag(group: &str) -> String {
    let mut tag = String::new();
    for byte in group.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' | b':' | b'/' => {
                tag.push(char::from(byte));
            }
            _ => tag.push_str(&format!("%{byte:02X}")),
        }
    }
    tag
}

fn untag(tag: &str) -> Option<String> {
    if tag.len() > 3 * MOST_NAME_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = tag.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            let digits = std::str::from_utf8(digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(name: &str, on_ns: u64, blocked: Option<u64>) -> ThreadsLine {
        ThreadsLine {
            t_ms: 1500.25,
            group: ThreadGroup {
                name: name.to_owned(),
                threads: 2,
                wall_ns: 2_000_000_000,
                on_cpu_ns: on_ns,
                no_core_ns: 5,
                blocked_ns: blocked
                    .map(|ns| BTreeMap::from([(Class::Lock, ns), (Class::Idle, 3 * ns)])),
            },
        }
    }

    #[test]
    fn groups_are_the_sums_of_their_lines() {
        let lines = [
            line("a", 1_000_000_001, Some(10)),
            line("b", 7, None),
            line("a", 9, None),
        ];
        let groups = groups_of(&lines);
        assert_eq!(groups.len(), 2);
        assert_eq!(
            (groups[0].wall_ns, groups[0].on_cpu_ns),
            (4_000_000_000, 1_000_000_010)
        );
        let blocked = groups[0].blocked_ns.as_ref().unwrap();
        let rest = groups[0].wall_ns - groups[0].on_cpu_ns - groups[0].no_core_ns;
        assert!(blocked.values().sum::<u64>().abs_diff(rest) < 2);
        assert!(blocked[&Class::Idle].abs_diff(3 * blocked[&Class::Lock]) < 4);
        assert_eq!(groups[1].blocked_ns, None);
    }

    #[test]
    fn damaged_lines_are_named() {
        let path = Path::new("x");
        let whole = threads(path, &[line("a", 1, Some(1)), line("b", 2, None)]).unwrap();
        let text = String::from_utf8(whole).unwrap();
        for (old, new, part) in [
            ("t_ms", "t_s", "columns"),
            ("1500.250,a", "x,a", "no time"),
            ("0.000001", "0.-1", "no time in ms"),
            ("a,2,", "a,-2,", "number of threads"),
        ] {
            let bad = text.replacen(old, new, 1);
            let error = parse_threads(path, bad.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let cut = &text.as_bytes()[..text.len() - 20];
        assert!(parse_threads(path, cut).is_err(), "a line is cut off");
    }

    proptest! {
        #[test]
        fn lines_read_back(
            names in proptest::collection::vec(".{0,20}", 0..5), ns in any::<u64>(), known in any::<bool>(),
        ) {
            let ns = ns / 4 + 1;
            let lines: Vec<_> = names.iter().map(|name| line(name, ns, known.then_some(ns))).collect();
            let bytes = threads(Path::new("x"), &lines).unwrap();
            prop_assert_eq!(parse_threads(Path::new("x"), &bytes).unwrap(), lines);
        }

        #[test]
        fn latencies_read_back(
            names in proptest::collection::btree_set("[^\r\n]{1,20}", 0..5),
            values in proptest::collection::vec(0u64..10_000_000, 1..50),
        ) {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            values.iter().for_each(|value| histogram.record(*value).unwrap());
            let groups: Latencies = names.into_iter().map(|name| (name, histogram.clone())).collect();
            let hold = (Duration::from_secs(1), Duration::from_secs(9));
            let bytes = latency(Path::new("x"), hold, &groups).unwrap();
            prop_assert_eq!(parse_latency(Path::new("x"), &bytes).unwrap(), groups);
        }

        #[test]
        fn any_bytes_are_an_error_or_lines(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_threads(Path::new("x"), &bytes);
            let _ = parse_latency(Path::new("x"), &bytes);
        }
    }
}
