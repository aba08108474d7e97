//! The model of a profile.

use std::iter::Sum;
use std::ops::AddAssign;

use crate::class::Class;

/// The kind of a profile's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Samples of threads on a CPU, with CPU time.
    #[default]
    Cpu,
    /// Intervals in which threads were off the CPU, with their length.
    Off,
}

/// The samples of one profile, and the tables that they refer to by position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The kind of its samples.
    pub kind: Kind,
    /// Executables and libraries whose code was sampled.
    pub mappings: Vec<Mapping>,
    /// Functions, named by their demangled names.
    pub functions: Vec<Function>,
    /// Places in code. A place where functions were inlined has several lines.
    pub locations: Vec<Location>,
    /// Names of threads.
    pub threads: Vec<String>,
    /// Wakers: the group and the function of the thread that ended a wait, such as `http-* in handle`.
    pub wakers: Vec<String>,
    /// Samples, equal ones of a second as one.
    pub samples: Vec<Sample>,
}

/// An executable or a library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The path of the file as the system saw it, or a name in brackets where there is no file (`[kernel]`).
    pub file: String,
    /// The build id in hexadecimal digits, empty where the file has none.
    pub build_id: String,
}

/// A function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Function {
    /// The demangled name; where no name is known, the file and the start of the function in it (`server+0x22d26`).
    pub name: String,
    /// The source file, empty where it isn't known.
    pub file: String,
}

/// A place in code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// The position of the mapping in [`Profile::mappings`]; none for places that no file holds.
    pub mapping: Option<usize>,
    /// The address relative to the file of the mapping, never an address of a process or of the kernel.
    pub address: u64,
    /// Functions at this place: the innermost inlined function first, the function that contains all of them last.
    pub lines: Vec<Line>,
}

/// A function at a place, and the line of its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Line {
    /// The position of the function in [`Profile::functions`].
    pub function: usize,
    /// The line in the function's source file; 0 where it isn't known.
    pub line: u32,
}

/// Samples with one stack, of one thread name, in one second of the hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Positions in [`Profile::locations`], the innermost first. A truncated stack ends with a location whose function
    /// is [`Profile::BROKEN`].
    pub stack: Vec<usize>,
    /// The position in [`Profile::threads`].
    pub thread: usize,
    /// The second of the trial's clock.
    pub second: u32,
    /// The number of samples; of waits, of intervals.
    pub count: u64,
    /// The CPU time that they stand for, in nanoseconds; of waits, their length. The sum over a CPU profile is the CPU time
    /// of the system while it was sampled.
    pub ns: u64,
    /// In a profile of waits: the thread's wait.
    pub wait: Option<Wait>,
}

/// The wait of a thread while it was off the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wait {
    /// The kind of wait.
    pub class: Class,
    /// The waker: a position in [`Profile::wakers`], where it is known.
    pub waker: Option<usize>,
}

impl Sample {
    /// The number of samples and their time.
    pub fn weight(&self) -> Weight {
        Weight {
            count: self.count,
            ns: self.ns,
        }
    }
}

/// A number of samples and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// The number of samples.
    pub count: u64,
    /// CPU time in nanoseconds; of waits, their length.
    pub ns: u64,
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.ns = self.ns.saturating_add(other.ns);
    }
}

impl Sum for Weight {
    fn sum<I: Iterator<Item = Self>>(weights: I) -> Self {
        let mut sum = Self::default();
        for weight in weights {
            sum += weight;
        }
        sum
    }
}

impl Mapping {
    /// The name of the file without its folders.
    pub fn base(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or_default()
    }
}

impl Profile {
    /// Positions in [`Profile::functions`] of a stack's functions, the innermost first, inlined functions included.
    pub fn frames<'a>(&'a self, sample: &'a Sample) -> impl Iterator<Item = usize> + 'a {
        let lines = |location: &usize| self.locations[*location].lines.iter();
        sample
            .stack
            .iter()
            .flat_map(lines)
            .map(|line| line.function)
    }

    /// The number of samples and the time of all of them.
    pub fn weight(&self) -> Weight {
        self.samples.iter().map(Sample::weight).sum()
    }

    /// The name of the function that ends a stack which couldn't be followed to the start of its thread.
    pub const BROKEN: &str = "[unwound no further]";
    /// The name of the function that replaces all stacks beyond the file's limit.
    pub const OTHER: &str = "[other]";
    /// The mapping of the kernel's code, and the name of its functions where nothing else is known of them.
    pub const KERNEL: &str = "[kernel]";
    /// The name of a function of which nothing is known.
    pub const UNKNOWN: &str = "[unknown]";
}
