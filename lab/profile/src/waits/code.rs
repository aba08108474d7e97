//! Waits by code and class.

use std::collections::HashMap;

use super::patterns::Patterns;
use crate::class::Class;
use crate::key::Key;
use crate::model::{Profile, Sample};

/// The code of threads that were interrupted: a thread can lose its core anywhere.
pub const ANY_CODE: &str = "[any code]";

/// A wait: its class, and its function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    /// The class of the wait.
    pub class: Class,
    /// The function nearest to the wait that is neither libc's nor a runtime's.
    pub function: String,
}

impl Code {
    /// Returns true for waits without a known function, such as waits whose stacks weren't recorded.
    pub(super) fn is_placeholder(&self) -> bool {
        let name = self.function.as_str();
        name.starts_with('[') && name != ANY_CODE && !name.starts_with(Profile::KERNEL)
    }
}

/// Prefixes of the file names of common libraries.
const LIBRARIES: [&str; 7] = [
    "libc.so",
    "libc-",
    "ld-",
    "libpthread",
    "libjvm.so",
    "libstdc++",
    "[vdso]",
];

/// The code of a profile's samples.
pub(super) struct Codes<'a> {
    profile: &'a Profile,
    patterns: &'a Patterns,
    functions: HashMap<&'a [usize], String>,
    /// Whether a function is one of a runtime, by its position.
    runtime: HashMap<usize, bool>,
}

impl<'a> Codes<'a> {
    pub(super) fn new(profile: &'a Profile, patterns: &'a Patterns) -> Self {
        Self {
            profile,
            patterns,
            functions: HashMap::new(),
            runtime: HashMap::new(),
        }
    }

    pub(super) fn of(&mut self, sample: &'a Sample) -> Code {
        let class = class_of(sample);
        let function = match class {
            Class::NoCore => ANY_CODE.to_owned(),
            _ => self.function(&sample.stack),
        };
        Code { class, function }
    }

    fn function(&mut self, stack: &'a [usize]) -> String {
        let (profile, patterns, runtime) = (self.profile, self.patterns, &mut self.runtime);
        let mut is_runtime = |function: usize| {
            let is_runtime = || patterns.is_runtime(&Key::of(&profile.functions[function]).name);
            *runtime.entry(function).or_insert_with(is_runtime)
        };
        let known = self.functions.entry(stack);
        known
            .or_insert_with(|| waiting_function(profile, &mut is_runtime, stack))
            .clone()
    }
}

/// Returns the class of a sample's wait.
pub fn class_of(sample: &Sample) -> Class {
    sample.wait.map_or(Class::Other, |wait| wait.class)
}

fn waiting_function(
    profile: &Profile,
    is_runtime: &mut impl FnMut(usize) -> bool,
    stack: &[usize],
) -> String {
    let is_user = |location: &&usize| !profile.is_of_kernel(**location);
    let user = || stack.iter().filter(is_user);
    let positions = |location: &usize| {
        let lines = profile.locations[*location].lines.iter();
        lines.map(|line| line.function)
    };
    let functions = |location: &usize| positions(location).map(|at| &profile.functions[at]);
    let is_library = |location: &&usize| {
        let mapping = profile.locations[**location].mapping;
        let file = mapping.map_or("", |mapping| profile.mappings[mapping].base());
        LIBRARIES.iter().any(|begin| file.starts_with(begin))
    };
    let name = |function| Key::of(function).name;
    let mut own = user().filter(|at| !is_library(at)).flat_map(positions);
    let nearest = own.find(|at| !is_runtime(*at));
    let nearest = nearest.map(|at| name(&profile.functions[at]));
    // Stacks of a runtime's own threads have only runtime functions.
    let of_runtime = || {
        let mut names = user().filter(|at| !is_library(at)).flat_map(functions);
        names.find(|one| !one.name.starts_with('[')).map(name)
    };
    let of_library = || user().flat_map(functions).next().map(name);
    let of_kernel = || {
        let kernel: Vec<usize> = stack.iter().filter(|at| !is_user(at)).copied().collect();
        let innermost = kernel.iter().copied().flat_map(|at| functions(&at).next());
        let innermost = innermost.map(|function| &function.name).next()?;
        // Without a stack, only the kernel function in which the thread sleeps is known.
        Some(match profile.kernel_entry(&kernel) {
            entry if entry == Profile::KERNEL => format!("{entry} {innermost}"),
            entry => entry,
        })
    };
    nearest
        .or_else(of_runtime)
        .or_else(of_library)
        .or_else(of_kernel)
        .unwrap_or_else(|| Profile::UNKNOWN.to_owned())
}
