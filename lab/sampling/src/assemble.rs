//! Puts samples and names together as a profile.

use std::collections::HashMap;
use std::hash::Hash;

use lab_profile::{Function, Line, Location, Mapping, Profile, Sample};

use crate::files::Modules;
use crate::names::{Name, Named, Names};
use crate::spaces::Place;
use crate::stacks::{Frame, Key, OTHER, Stacks};

/// The name of the function that represents stacks that were not sampled.
const NOT_SAMPLED: &str = "[not sampled]";
/// Functions that threads begin with.
const STARTS: [&str; 16] = [
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "thread_start",
    "runtime.goexit",
    "runtime.mstart",
    "runtime.rt0_go",
    "runtime.mcall",
    "runtime.systemstack",
    "libc_start_main_stage2",
];
/// Libraries in which threads begin. Stripped ones have no names for that.
const C_LIBRARIES: [&str; 5] = ["libc.so", "libc-", "libpthread", "ld-linux", "ld-musl"];

/// Stacks with their names, as positions in the tables of a profile.
#[derive(Debug)]
pub(crate) struct NamedStacks {
    /// Tables without samples.
    pub(crate) profile: Profile,
    locations: Vec<usize>,
    broken: usize,
    names: Names,
}

impl NamedStacks {
    /// Names all frames. `sleeps` are the kernel functions of [`Frame::Sleeps`].
    pub(crate) fn of(frames: &[Frame], modules: &Modules, sleeps: &[String]) -> Self {
        let mut names = Names::look_up(frames, modules);
        names.sleeps(sleeps);
        let mut tables = Tables::new(&names, modules);
        let locations = frames.iter().map(|frame| tables.location(*frame)).collect();
        let broken = tables.location(Frame::Broken);
        Self {
            profile: tables.profile,
            locations,
            broken,
            names,
        }
    }

    /// The positions of a stack, whose frames are given by their numbers.
    pub(crate) fn stack(&self, frames: &[(u32, Frame)], modules: &Modules) -> Stack {
        let found = frames
            .iter()
            .map(|(at, frame)| (*frame, self.locations[*at as usize]));
        Stack::of(found.collect(), self.broken, &self.names, modules)
    }
}

/// A profile, and the numbers of its good samples.
#[derive(Debug, Default)]
pub(crate) struct Assembled {
    pub(crate) profile: Profile,
    pub(crate) samples: u64,
    /// Samples whose stacks reach the start of their thread.
    pub(crate) whole: u64,
    /// Samples whose innermost function has a name.
    pub(crate) named: u64,
    /// Samples whose stacks were dropped: there were too many different ones.
    pub(crate) other: u64,
}

/// `weight` is the CPU time of a sample of a block, in nanoseconds.
pub(crate) fn profile(
    stacks: &Stacks,
    modules: &Modules,
    weight: impl Fn(u32) -> f64,
) -> Assembled {
    let named = NamedStacks::of(stacks.frames(), modules, &[]);
    let mut known: HashMap<u32, Stack> = HashMap::new();
    let mut folded: HashMap<(u32, u32, Vec<usize>), (u64, f64)> = HashMap::new();
    let mut done = Assembled::default();
    for (
        Key {
            block,
            second,
            thread,
            stack,
        },
        count,
    ) in stacks.counts()
    {
        let about = known.entry(stack).or_insert_with(|| {
            let frames = stacks.stack(stack);
            let frames = frames.map(|at| (at, stacks.frames()[at as usize]));
            named.stack(&frames.collect::<Vec<_>>(), modules)
        });
        done.samples += count;
        done.other += if stack == OTHER { count } else { 0 };
        done.whole += if about.whole { count } else { 0 };
        done.named += if about.named { count } else { 0 };
        let sum = folded
            .entry((second, thread, about.locations.clone()))
            .or_default();
        sum.0 += count;
        sum.1 += count as f64 * weight(block);
    }
    done.profile = named.profile;
    done.profile.threads = stacks.threads().to_vec();
    let samples = folded
        .into_iter()
        .map(|((second, thread, stack), (count, ns))| Sample {
            stack,
            thread: thread as usize,
            second,
            count,
            ns: ns.round() as u64,
            wait: None,
        });
    done.profile.samples = samples.collect();
    done.profile
        .samples
        .sort_by(|a, b| (a.second, a.thread, &a.stack).cmp(&(b.second, b.thread, &b.stack)));
    done
}

/// A stack with its places.
pub(crate) struct Stack {
    pub(crate) locations: Vec<usize>,
    whole: bool,
    named: bool,
}

impl Stack {
    /// Makes a stack of frames and their locations; `broken` is the location that marks an incomplete stack.
    fn of(frames: Vec<(Frame, usize)>, broken: usize, names: &Names, modules: &Modules) -> Self {
        let (frames, mut locations): (Vec<Frame>, Vec<usize>) = frames.into_iter().unzip();
        let whole = is_whole(&frames, names, modules);
        if frames.last() == Some(&Frame::Chained) {
            locations.pop();
            locations.extend((!whole).then_some(broken));
        }
        Self {
            locations,
            whole,
            named: is_named(&frames, names),
        }
    }
}

/// Chains of frame pointers carry no sign of a break: they are whole if their outermost function is a thread's
/// start function.
fn is_whole(frames: &[Frame], names: &Names, modules: &Modules) -> bool {
    let Some((end, rest)) = frames.split_last() else {
        return true;
    };
    if *end != Frame::Chained {
        return *end != Frame::Broken;
    }
    let Some(frame) = rest.last().copied() else {
        return true;
    };
    let outer = names.get(frame).and_then(|named| named.names.last());
    let name = outer.map_or("", |name| name.function.as_str());
    let name = name.split(".abi").next().unwrap_or(name);
    if STARTS.contains(&name) {
        return true;
    }
    let path = match frame {
        Frame::User(Place::File(module, _)) => modules.get(module).map(|one| one.path.as_str()),
        _ => None,
    };
    let file = path.and_then(|path| path.rsplit('/').next()).unwrap_or("");
    // A chain that broke immediately in the library has no other frames.
    let users = frames.iter().filter(|one| matches!(one, Frame::User(_)));
    users.count() >= 2 && C_LIBRARIES.iter().any(|library| file.starts_with(library))
}

/// Returns true if the innermost function has a name. Kernel code always counts as named: at worst it is `[kernel]`.
fn is_named(frames: &[Frame], names: &Names) -> bool {
    let Some(innermost) = frames.first() else {
        return false;
    };
    match innermost {
        Frame::Kernel(_) | Frame::Sleeps(_) | Frame::Other => true,
        _ => names.get(*innermost).is_some_and(|named| named.known),
    }
}

/// The tables of a profile as they grow.
struct Tables<'a> {
    names: &'a Names,
    modules: &'a Modules,
    profile: Profile,
    mappings: HashMap<Mapped, usize>,
    functions: HashMap<(String, String), usize>,
    locations: HashMap<(Option<usize>, u64, Vec<Name>), usize>,
}

/// The code that a mapping contains.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Mapped {
    Kernel,
    Compiled,
    File(u32),
}

impl<'a> Tables<'a> {
    fn new(names: &'a Names, modules: &'a Modules) -> Self {
        Self {
            names,
            modules,
            profile: Profile::default(),
            mappings: HashMap::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
        }
    }

    /// The position of a place. Addresses of processes and of the kernel stay out of it: such places differ by function.
    fn location(&mut self, frame: Frame) -> usize {
        let named = self.names.get(frame).cloned();
        let named = named.unwrap_or_else(|| Named {
            names: vec![special(frame)],
            known: false,
        });
        let (mapped, address) = match frame {
            Frame::Kernel(_) | Frame::Sleeps(_) => (Some(Mapped::Kernel), 0),
            Frame::User(Place::File(module, address)) => (Some(Mapped::File(module)), address),
            Frame::User(Place::Compiled(..)) => (Some(Mapped::Compiled), 0),
            Frame::NotSampled | Frame::Broken | Frame::Chained | Frame::Other => (None, 0),
        };
        let mapping = mapped.map(|mapped| self.mapping(mapped));
        let key = (mapping, address, named.names.clone());
        if let Some(known) = self.locations.get(&key) {
            return *known;
        }
        let lines = named.names.into_iter().map(|name| Line {
            line: name.line,
            function: self.function(name),
        });
        let lines = lines.collect();
        let position = self.profile.locations.len();
        self.profile.locations.push(Location {
            mapping,
            address,
            lines,
        });
        self.locations.insert(key, position);
        position
    }

    fn mapping(&mut self, mapped: Mapped) -> usize {
        let modules = self.modules;
        position(
            &mut self.mappings,
            &mut self.profile.mappings,
            mapped,
            || match mapped {
                Mapped::Kernel => bracketed(Profile::KERNEL),
                Mapped::Compiled => bracketed("[compiled code]"),
                Mapped::File(module) => modules.get(module).map_or_else(
                    || bracketed(Profile::UNKNOWN),
                    |module| Mapping {
                        file: module.path.clone(),
                        build_id: module
                            .elf
                            .as_ref()
                            .map_or_else(String::new, |elf| elf.build_id.clone()),
                    },
                ),
            },
        )
    }

    fn function(&mut self, name: Name) -> usize {
        let key = (name.function.clone(), name.file.clone());
        position(
            &mut self.functions,
            &mut self.profile.functions,
            key,
            || Function {
                name: name.function,
                file: name.file,
            },
        )
    }
}

fn position<K: Eq + Hash, T>(
    known: &mut HashMap<K, usize>,
    table: &mut Vec<T>,
    key: K,
    make: impl FnOnce() -> T,
) -> usize {
    *known.entry(key).or_insert_with(|| {
        table.push(make());
        table.len() - 1
    })
}

fn bracketed(name: &str) -> Mapping {
    Mapping {
        file: name.to_owned(),
        build_id: String::new(),
    }
}

fn special(frame: Frame) -> Name {
    let function = match frame {
        Frame::Broken | Frame::Chained => Profile::BROKEN,
        Frame::Other => Profile::OTHER,
        Frame::Kernel(_) | Frame::Sleeps(_) => Profile::KERNEL,
        Frame::NotSampled => NOT_SAMPLED,
        Frame::User(_) => Profile::UNKNOWN,
    };
    Name {
        function: function.to_owned(),
        ..Name::default()
    }
}
