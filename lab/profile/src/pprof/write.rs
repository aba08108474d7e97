//! A profile as a pprof file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use prost::Message as _;

use super::{
    CLASS, COUNT, MOST_COMPRESSED_BYTES, MOST_FRAMES_TOGETHER, MOST_FUNCTIONS, MOST_INLINED,
    MOST_LOCATIONS, MOST_MAPPINGS, MOST_NAME_BYTES, MOST_SAMPLES, MOST_STACK, MOST_STACKS,
    MOST_TEXT_BYTES, MOST_TEXTS, MOST_UNCOMPRESSED_BYTES, NANOSECONDS, SECOND, SECONDS, THREAD,
    WAKER, message,
};
use crate::model::{Line, Profile};

/// A pprof file, and the number of items dropped or truncated to stay within its bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub bytes: Vec<u8>,
    /// Number of different stacks, the rarest of all, that [`Profile::OTHER`] replaced.
    pub other_stacks: usize,
    /// Samples with these stacks.
    pub other_samples: u64,
    /// Different stacks with more frames than a file may hold, which end with [`Profile::BROKEN`] now.
    pub cut_stacks: usize,
}

impl Profile {
    /// The profile as a pprof file: at most 200,000 different stacks, 127 locations each, and 16 MiB.
    pub fn to_pprof(&self) -> Written {
        let mut most_stacks = MOST_STACKS;
        loop {
            let (profile, lost) = self.bounded(most_stacks, MOST_STACK);
            // A profile of one stack or less is within all bounds but that of samples, which differ by thread and second.
            if let Some(bytes) = packed(&profile, most_stacks <= 1) {
                return Written {
                    bytes,
                    other_stacks: lost.other_stacks,
                    other_samples: lost.other_samples,
                    cut_stacks: lost.cut_stacks,
                };
            }
            most_stacks /= 2;
        }
    }
}

/// The file, unless it is larger than it may be.
fn packed(profile: &Profile, anyway: bool) -> Option<Vec<u8>> {
    if !anyway && !fits(profile) {
        return None;
    }
    let bytes = message(profile).encode_to_vec();
    if !anyway && bytes.len() > MOST_UNCOMPRESSED_BYTES {
        return None;
    }
    let mut file = GzBuilder::new().write(Vec::new(), Compression::default());
    file.write_all(&bytes).expect("memory takes all bytes");
    let file = file.finish().expect("memory takes all bytes");
    (anyway || file.len() <= MOST_COMPRESSED_BYTES).then_some(file)
}

fn fits(profile: &Profile) -> bool {
    let lines = |location: &usize| profile.locations[*location].lines.len().min(MOST_INLINED);
    let stacks = profile.samples.iter().flat_map(|sample| &sample.stack);
    let mappings = profile.mappings.iter();
    let functions = profile.functions.iter();
    let names = mappings
        .flat_map(|mapping| [&mapping.file, &mapping.build_id])
        .chain(functions.flat_map(|function| [&function.name, &function.file]))
        .chain(&profile.threads)
        .chain(&profile.wakers);
    let name_bytes: usize = names.map(|name| name.len().min(MOST_TEXT_BYTES)).sum();
    let threads = profile.threads.len() + profile.wakers.len();
    let texts = 2 * profile.mappings.len() + 2 * profile.functions.len() + threads;
    profile.samples.len() <= MOST_SAMPLES
        && profile.mappings.len() <= MOST_MAPPINGS
        && profile.functions.len() <= MOST_FUNCTIONS
        && profile.locations.len() <= MOST_LOCATIONS
        && name_bytes + 1024 <= MOST_NAME_BYTES
        && texts + 32 <= MOST_TEXTS
        && stacks.map(lines).sum::<usize>() <= MOST_FRAMES_TOGETHER
}

/// The table of texts, the first of which is empty.
struct Texts<'a> {
    list: Vec<String>,
    known: HashMap<Cow<'a, str>, i64>,
}

impl<'a> Texts<'a> {
    fn new() -> Self {
        Self {
            list: vec![String::new()],
            known: HashMap::from([(Cow::Borrowed(""), 0)]),
        }
    }

    fn of(&mut self, text: &'a str) -> i64 {
        let text = shortened(text);
        if let Some(index) = self.known.get(&text) {
            return *index;
        }
        let index = number(self.list.len());
        self.list.push(text.clone().into_owned());
        self.known.insert(text, index);
        index
    }

    fn kind(&mut self, kind: &'a str, unit: &'a str) -> message::ValueType {
        message::ValueType {
            kind: self.of(kind),
            unit: self.of(unit),
        }
    }
}

/// A string truncated to the limit, with `…` for the removed part.
fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= MOST_TEXT_BYTES {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(MOST_TEXT_BYTES - '…'.len_utf8());
    Cow::Owned(format!("{}…", &text[..end]))
}

fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// The id of the item at a position: ids begin with 1.
fn id(position: usize) -> u64 {
    position as u64 + 1
}

fn message(profile: &Profile) -> message::Profile {
    let mut texts = Texts::new();
    let (count, time) = profile.kind.values();
    let sample_type = vec![texts.kind(count, COUNT), texts.kind(time, NANOSECONDS)];
    message::Profile {
        period_type: Some(sample_type[1]),
        default_sample_type: sample_type[1].kind,
        sample_type,
        sample: samples(profile, &mut texts),
        mapping: mappings(profile, &mut texts),
        location: locations(profile),
        function: functions(profile, &mut texts),
        string_table: texts.list,
    }
}

fn samples<'a>(profile: &'a Profile, texts: &mut Texts<'a>) -> Vec<message::Sample> {
    let (second, seconds) = (texts.of(SECOND), texts.of(SECONDS));
    let mut text = |key, text| message::Label {
        key: texts.of(key),
        text: texts.of(text),
        ..message::Label::default()
    };
    let sample = |sample: &crate::model::Sample| {
        let mut label = vec![
            message::Label {
                key: second,
                number: sample.second.into(),
                unit: seconds,
                text: 0,
            },
            text(THREAD, &profile.threads[sample.thread]),
        ];
        if let Some(wait) = sample.wait {
            label.push(text(CLASS, wait.class.name()));
            let waker = wait.waker.map(|waker| profile.wakers[waker].as_str());
            label.extend(waker.map(|waker| text(WAKER, waker)));
        }
        message::Sample {
            location_id: sample.stack.iter().map(|index| id(*index)).collect(),
            value: vec![number(sample.count), number(sample.ns)],
            label,
        }
    };
    profile.samples.iter().map(sample).collect()
}

fn mappings<'a>(profile: &'a Profile, texts: &mut Texts<'a>) -> Vec<message::Mapping> {
    let mut limits = vec![0; profile.mappings.len()];
    for location in &profile.locations {
        if let Some(mapping) = location.mapping {
            limits[mapping] = limits[mapping].max(location.address.saturating_add(1));
        }
    }
    let mapping = |(index, mapping): (usize, &'a crate::model::Mapping)| message::Mapping {
        id: id(index),
        memory_limit: limits[index],
        filename: texts.of(&mapping.file),
        build_id: texts.of(&mapping.build_id),
        // Names are in the file already, so readers needn't resolve them.
        has_functions: true,
        has_filenames: true,
        has_line_numbers: true,
        has_inline_frames: true,
        ..message::Mapping::default()
    };
    profile.mappings.iter().enumerate().map(mapping).collect()
}

fn locations(profile: &Profile) -> Vec<message::Location> {
    let line = |line: &Line| message::Line {
        function_id: id(line.function),
        line: line.line.into(),
    };
    let location = |(index, location): (usize, &crate::model::Location)| {
        let inlined = location.lines.len().min(MOST_INLINED);
        // The function that contains all others stays in any case.
        let (inner, outer) = match location.lines.split_last() {
            Some((outer, inner)) => (&inner[..inlined - 1], Some(outer)),
            None => (&location.lines[..], None),
        };
        message::Location {
            id: id(index),
            mapping_id: location.mapping.map_or(0, id),
            address: location.address,
            line: inner.iter().chain(outer).map(line).collect(),
        }
    };
    profile.locations.iter().enumerate().map(location).collect()
}

fn functions<'a>(profile: &'a Profile, texts: &mut Texts<'a>) -> Vec<message::Function> {
    let function = |(index, function): (usize, &'a crate::model::Function)| {
        let name = texts.of(&function.name);
        message::Function {
            id: id(index),
            name,
            system_name: name,
            filename: texts.of(&function.file),
        }
    };
    profile.functions.iter().enumerate().map(function).collect()
}
