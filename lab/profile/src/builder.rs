//! Puts a profile together: equal mappings, functions, locations, threads, and samples are kept once.

use std::collections::HashMap;
use std::hash::Hash;

use crate::model::{Function, Kind, Line, Location, Mapping, Profile, Sample, Wait};

/// Assembles a profile and stores equal parts once.
///
/// Positions that the methods return are those in the profile that [`Builder::finish`] returns.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    profile: Profile,
    mappings: HashMap<Mapping, usize>,
    functions: HashMap<Function, usize>,
    locations: HashMap<Location, usize>,
    threads: HashMap<String, usize>,
    wakers: HashMap<String, usize>,
    samples: HashMap<(Vec<usize>, usize, u32, Option<Wait>), usize>,
}

/// The position of a value in a list; a value that isn't there yet is appended.
fn position<T: Clone + Eq + Hash>(
    list: &mut Vec<T>,
    known: &mut HashMap<T, usize>,
    value: T,
) -> usize {
    if let Some(index) = known.get(&value) {
        return *index;
    }
    let index = list.len();
    list.push(value.clone());
    known.insert(value, index);
    index
}

/// The position of a name in a list; a name that isn't there yet is appended.
fn named(list: &mut Vec<String>, known: &mut HashMap<String, usize>, name: &str) -> usize {
    if let Some(index) = known.get(name) {
        return *index;
    }
    position(list, known, name.to_owned())
}

impl Builder {
    /// A builder of a profile of this kind. The default is one of CPU time.
    pub fn of(kind: Kind) -> Self {
        let mut builder = Self::default();
        builder.profile.kind = kind;
        builder
    }

    /// The position of a mapping.
    pub fn mapping(&mut self, mapping: Mapping) -> usize {
        position(&mut self.profile.mappings, &mut self.mappings, mapping)
    }

    /// The position of a function.
    pub fn function(&mut self, function: Function) -> usize {
        position(&mut self.profile.functions, &mut self.functions, function)
    }

    /// Returns the position of a location, whose positions of mapping and functions are this builder's.
    pub fn location(&mut self, location: Location) -> usize {
        position(&mut self.profile.locations, &mut self.locations, location)
    }

    /// The position of a thread's name.
    pub fn thread(&mut self, name: &str) -> usize {
        named(&mut self.profile.threads, &mut self.threads, name)
    }

    /// Returns the position of a waker (the code that ends waits), such as `http-* in handle`.
    pub fn waker(&mut self, name: &str) -> usize {
        named(&mut self.profile.wakers, &mut self.wakers, name)
    }

    /// Returns the position of a placeholder location, such as [`Profile::BROKEN`].
    pub fn placeholder(&mut self, name: &str) -> usize {
        let function = self.function(Function {
            name: name.to_owned(),
            file: String::new(),
        });
        self.location(Location {
            mapping: None,
            address: 0,
            lines: vec![Line { function, line: 0 }],
        })
    }

    /// The name of a place in code that no function is known for, such as `server+0x22d26`.
    pub fn place_name(&self, mapping: Option<usize>, address: u64) -> String {
        match mapping {
            Some(mapping) => {
                let file = self.profile.mappings[mapping].base();
                format!("{file}+{address:#x}")
            }
            None => Profile::UNKNOWN.to_owned(),
        }
    }

    /// Adds a sample, whose positions are this builder's. Sums counts and times of equal samples.
    pub fn add(&mut self, sample: Sample) {
        let key = (sample.stack, sample.thread, sample.second, sample.wait);
        if let Some(index) = self.samples.get(&key) {
            let known = &mut self.profile.samples[*index];
            known.count = known.count.saturating_add(sample.count);
            known.ns = known.ns.saturating_add(sample.ns);
            return;
        }
        self.profile.samples.push(Sample {
            stack: key.0.clone(),
            ..sample
        });
        self.samples.insert(key, self.profile.samples.len() - 1);
    }

    /// The profile.
    pub fn finish(self) -> Profile {
        self.profile
    }
}
