//! Names of places: functions with inlined ones, and lines, from symbols and debug information.

use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use blazesym::symbolize::source::{Elf as ElfSource, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

use lab_profile::Profile;

use crate::files::{Module, Modules};
use crate::kernel::Kernel;
use crate::perfmap;
use crate::spaces::Place;
use crate::stacks::Frame;

/// A function at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(crate) function: String,
    /// The source file, empty where it isn't known.
    pub(crate) file: String,
    /// 0 where it isn't known.
    pub(crate) line: u32,
}

/// The functions at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Named {
    /// The innermost inlined function first; never empty.
    pub(crate) names: Vec<Name>,
    /// Whether the function has a name, not only an address in its file.
    pub(crate) known: bool,
}

/// Names of all places that were sampled.
#[derive(Debug, Default)]
pub(crate) struct Names {
    found: HashMap<Frame, Named>,
}

impl Names {
    /// Looks all up. Must be called while the system's processes live, for code that they compiled themselves.
    pub(crate) fn look_up(frames: &[Frame], modules: &Modules) -> Self {
        let mut files: HashMap<u32, Vec<u64>> = HashMap::new();
        let mut compiled: HashMap<i32, Vec<u64>> = HashMap::new();
        let mut kernel = Vec::new();
        for frame in frames {
            match frame {
                Frame::User(Place::File(module, address)) => {
                    files.entry(*module).or_default().push(*address)
                }
                Frame::User(Place::Compiled(pid, address)) => {
                    compiled.entry(*pid).or_default().push(*address)
                }
                Frame::Kernel(address) => kernel.push(*address),
                Frame::Sleeps(_)
                | Frame::NotSampled
                | Frame::Broken
                | Frame::Chained
                | Frame::Other => {}
            }
        }
        let mut names = Self::default();
        for (number, addresses) in files {
            let Some(module) = modules.get(number) else {
                continue;
            };
            let place = |address| Frame::User(Place::File(number, address));
            let found = of_file(module, &addresses).into_iter();
            names
                .found
                .extend(found.map(|(address, named)| (place(address), named)));
        }
        for (pid, addresses) in compiled {
            names.compiled(pid, &addresses);
        }
        names.kernel(&kernel);
        names
    }

    /// Adds the kernel functions that threads sleep in.
    pub(crate) fn sleeps(&mut self, functions: &[String]) {
        for (number, function) in (0..).zip(functions) {
            let named = plain(function.clone(), true);
            self.found.insert(Frame::Sleeps(number), named);
        }
    }

    pub(crate) fn get(&self, frame: Frame) -> Option<&Named> {
        self.found.get(&frame)
    }

    fn compiled(&mut self, pid: i32, addresses: &[u64]) {
        let known = perfmap::names(pid, addresses);
        for address in addresses {
            let named = match known.get(address) {
                Some(name) => plain(name.clone(), true),
                None => plain("[compiled code]".to_owned(), false),
            };
            self.found
                .insert(Frame::User(Place::Compiled(pid, *address)), named);
        }
    }

    fn kernel(&mut self, addresses: &[u64]) {
        if addresses.is_empty() {
            return;
        }
        let kernel = Kernel::read();
        for address in addresses {
            let name = kernel.name(*address);
            let named = plain(name.unwrap_or(Profile::KERNEL).to_owned(), name.is_some());
            self.found.insert(Frame::Kernel(*address), named);
        }
    }
}

fn plain(function: String, known: bool) -> Named {
    let name = Name {
        function,
        ..Name::default()
    };
    Named {
        names: vec![name],
        known,
    }
}

fn of_file(module: &Module, addresses: &[u64]) -> Vec<(u64, Named)> {
    let symbols = symbols(module, addresses);
    let named = addresses.iter().enumerate().map(|(at, address)| {
        let known = symbols.as_ref().and_then(|all| all.get(at)?.clone());
        (
            *address,
            known.unwrap_or_else(|| by_bounds(module, *address)),
        )
    });
    named.collect()
}

/// Names by the symbols and the debug information of the file, or of the installed debug file for its build id.
fn symbols(module: &Module, addresses: &[u64]) -> Option<Vec<Option<Named>>> {
    let file = module.file.as_ref()?;
    // The file that is open, whatever is at its path by now.
    let own = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let mut found = from(own, addresses)?;
    if found.iter().any(Option::is_none)
        && let Some(debug) = debug_file(module)
        && let Some(more) = from(debug, addresses)
    {
        for (known, other) in found.iter_mut().zip(more) {
            *known = known.take().or(other);
        }
    }
    Some(found)
}

fn debug_file(module: &Module) -> Option<PathBuf> {
    let id = &module.elf.as_ref()?.build_id;
    let (first, rest) = id.split_at_checked(2)?;
    let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug"));
    path.is_file().then_some(path)
}

fn from(path: PathBuf, addresses: &[u64]) -> Option<Vec<Option<Named>>> {
    // One for each file, so that no more than one file's tables are in memory.
    let symbolizer = Symbolizer::new();
    let source = Source::Elf(ElfSource::new(path));
    let found = symbolizer
        .symbolize(&source, Input::VirtOffset(addresses))
        .ok()?;
    let named = found.into_iter().map(|one| match one {
        Symbolized::Sym(symbol) => Some(named(&symbol)),
        Symbolized::Unknown(_) => None,
    });
    Some(named.collect())
}

fn named(symbol: &Sym<'_>) -> Named {
    let inlined = symbol.inlined.iter().rev();
    let inlined = inlined.map(|one| name(&one.name, one.code_info.as_ref()));
    let outer = name(&symbol.name, symbol.code_info.as_deref());
    Named {
        names: inlined.chain([outer]).collect(),
        known: true,
    }
}

fn name(function: &str, code: Option<&CodeInfo<'_>>) -> Name {
    Name {
        function: function.to_owned(),
        file: code.map_or_else(String::new, |code| {
            code.to_path().to_string_lossy().into_owned()
        }),
        line: code.and_then(|code| code.line).unwrap_or(0),
    }
}

/// Without symbols, the start address in the file identifies a function.
fn by_bounds(module: &Module, address: u64) -> Named {
    let path = module.path.as_str();
    let base = path.rsplit('/').next().unwrap_or(path);
    let start = module.elf.as_ref().and_then(|elf| elf.function(address));
    match start {
        Some(start) => plain(format!("{base}+{start:#x}"), false),
        None if path.starts_with('[') => plain(base.to_owned(), true),
        None => plain(format!("[{base}]"), false),
    }
}
