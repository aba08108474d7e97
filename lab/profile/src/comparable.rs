//! Reduces profiles to the information that all of them have, so that equal code has equal functions in all builds.

use std::collections::{HashMap, HashSet};

use crate::{Builder, Function, Key, Line, Location, Mapping, Profile, Sample, Wait};

/// The information about functions that some profile of a run lacks.
#[derive(Debug, Default)]
pub struct Common {
    /// Base names of files for which some profile lacks the inlined functions.
    not_inlined: HashSet<String>,
    /// Names of functions for which some profile lacks the source file.
    without_file: HashSet<String>,
    /// Files, by base name, of which several builds were sampled.
    of_several_builds: HashSet<String>,
}

/// A profile that can be compared with others.
pub struct Comparable {
    /// The profile.
    pub profile: Profile,
    /// CPU time of samples in code that has no name and is different in each build, in nanoseconds.
    pub unnamed_ns: u64,
}

impl Common {
    /// Collects the data that some of these profiles lack.
    pub fn of<'a>(profiles: impl Iterator<Item = &'a Profile>) -> Self {
        let mut common = Self::default();
        let mut builds: HashMap<&str, &str> = HashMap::new();
        for profile in profiles {
            for mapping in &profile.mappings {
                let known = builds.entry(mapping.base()).or_insert(&mapping.build_id);
                if *known != mapping.build_id {
                    common.of_several_builds.insert(mapping.base().to_owned());
                }
            }
            let mut inlined: HashMap<&str, bool> = HashMap::new();
            for location in &profile.locations {
                *inlined.entry(file_of(profile, location)).or_default() |= location.lines.len() > 1;
            }
            let without = inlined.into_iter().filter(|(_, is_inlined)| !is_inlined);
            let without = without.map(|(file, _)| file.to_owned());
            common.not_inlined.extend(without);
            let bare = profile.functions.iter().filter(|one| one.file.is_empty());
            let bare = bare.map(|function| Key::of(function).name);
            common.without_file.extend(bare);
        }
        common
    }

    /// A profile without the information that only some profiles have. Kernel code counts for the system call or the
    /// interrupt that it runs for. Sampling interrupts are late where the kernel has interrupts off, so that samples
    /// show the wrong kernel function.
    pub fn comparable(&self, profile: &Profile) -> Comparable {
        let mut builder = Builder::of(profile.kind);
        let mut unnamed_ns = 0;
        let mut known: Vec<Option<(usize, bool)>> = vec![None; profile.locations.len()];
        for sample in &profile.samples {
            let (kernel, user): (Vec<usize>, Vec<usize>) = sample
                .stack
                .iter()
                .copied()
                .partition(|location| profile.is_of_kernel(*location));
            let mut stack: Vec<usize> = Vec::with_capacity(user.len() + 1);
            if !kernel.is_empty() {
                stack.push(in_kernel(&mut builder, profile.kernel_entry(&kernel)));
            }
            let mut is_unnamed = false;
            for (at, location) in user.iter().enumerate() {
                let (location, named) = *known[*location].get_or_insert_with(|| {
                    self.location(&mut builder, profile, &profile.locations[*location])
                });
                is_unnamed |= at == 0 && kernel.is_empty() && !named;
                stack.push(location);
            }
            unnamed_ns += if is_unnamed { sample.ns } else { 0 };
            let thread = profile.threads.get(sample.thread);
            let thread = builder.thread(thread.map_or("", String::as_str));
            // Comparisons are by class, and ignore wakers.
            let wait = sample.wait.map(|wait| Wait {
                waker: None,
                ..wait
            });
            builder.add(Sample {
                stack,
                thread,
                wait,
                ..*sample
            });
        }
        Comparable {
            profile: builder.finish(),
            unnamed_ns,
        }
    }

    /// A location, and whether other builds have the names of its functions.
    fn location(
        &self,
        builder: &mut Builder,
        profile: &Profile,
        location: &Location,
    ) -> (usize, bool) {
        let file = file_of(profile, location);
        // The last line is the function that contains the others.
        let from = match self.not_inlined.contains(file) {
            true => location.lines.len().saturating_sub(1),
            false => 0,
        };
        let mut is_named = true;
        let lines = location.lines[from..].iter().map(|line| {
            let function = &profile.functions[line.function];
            let function = match self.is_unnamed(file, &function.name) {
                true => {
                    is_named = false;
                    Function {
                        name: format!("[{file}, functions without names]"),
                        file: String::new(),
                    }
                }
                false => self.function(function),
            };
            Line {
                function: builder.function(function),
                line: 0,
            }
        });
        let lines = lines.collect();
        let mapping = location.mapping.map(|at| profile.mappings[at].clone());
        let mapping = mapping.map(|mapping| builder.mapping(mapping));
        let location = builder.location(Location {
            mapping,
            address: 0,
            lines,
        });
        (location, is_named)
    }

    fn function(&self, function: &Function) -> Function {
        let key = Key::of(function);
        let key = match self.without_file.contains(&key.name) {
            true => key.without_file(),
            false => key,
        };
        Function {
            name: key.name,
            file: key.file,
        }
    }

    /// Returns true for a function without a name, only an address in its file, of which several builds were sampled.
    fn is_unnamed(&self, file: &str, name: &str) -> bool {
        let place = name
            .strip_prefix(file)
            .and_then(|rest| rest.strip_prefix("+0x"));
        self.of_several_builds.contains(file) && place.is_some()
    }
}

fn file_of<'a>(profile: &'a Profile, location: &Location) -> &'a str {
    location
        .mapping
        .map_or("", |mapping| profile.mappings[mapping].base())
}

fn in_kernel(builder: &mut Builder, name: String) -> usize {
    let mapping = builder.mapping(Mapping {
        file: Profile::KERNEL.to_owned(),
        build_id: String::new(),
    });
    let function = builder.function(Function {
        name,
        file: String::new(),
    });
    builder.location(Location {
        mapping: Some(mapping),
        address: 0,
        lines: vec![Line { function, line: 0 }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile of one sample of these frames, the innermost first: file, function, source file, and inlined functions.
    fn profile(build_id: &str, frames: &[(&str, &str, &str, &[&str])]) -> Profile {
        let mut builder = Builder::default();
        let mut stack = Vec::new();
        for (file, name, source, inlined) in frames {
            let mapping = builder.mapping(Mapping {
                file: (*file).to_owned(),
                build_id: build_id.to_owned(),
            });
            let mut lines: Vec<Line> = Vec::new();
            for name in inlined.iter().chain([name]) {
                let function = builder.function(Function {
                    name: (*name).to_owned(),
                    file: (*source).to_owned(),
                });
                lines.push(Line { function, line: 7 });
            }
            stack.push(builder.location(Location {
                mapping: Some(mapping),
                address: 1,
                lines,
            }));
        }
        let thread = builder.thread("worker");
        builder.add(Sample {
            stack,
            thread,
            second: 3,
            count: 2,
            ns: 1_000,
            wait: None,
        });
        builder.finish()
    }

    /// The functions of the only sample, the innermost first.
    fn frames(of: &Comparable) -> Vec<String> {
        let sample = &of.profile.samples[0];
        let functions = of.profile.frames(sample);
        functions
            .map(|at| Key::of(&of.profile.functions[at]).to_string())
            .collect()
    }

    #[test]
    fn builds_are_compared_by_what_both_say() {
        let full = profile(
            "01",
            &[
                ("/lib/libc.so", "write", "write.c", &["inner"]),
                ("/bin/server", "work", "/src/a.rs", &["inlined"]),
            ],
        );
        let bare = profile(
            "02",
            &[
                ("/lib/libc.so", "write", "write.c", &["inner"]),
                ("/bin/server", "work", "", &[]),
            ],
        );
        let common = Common::of([&full, &bare].into_iter());
        let both = [&full, &bare].map(|one| frames(&common.comparable(one)));
        let expected = ["inner (write.c)", "write (write.c)", "work"];
        assert_eq!(both[0], expected);
        assert_eq!(both[1], expected);
    }

    #[test]
    fn functions_without_names_are_one_where_builds_differ() {
        let one = profile("01", &[("/bin/server", "server+0x22d26", "", &[])]);
        let other = profile("02", &[("/bin/server", "server+0x22d40", "", &[])]);
        let common = Common::of([&one, &one].into_iter());
        let same = common.comparable(&one);
        assert_eq!(
            (frames(&same)[0].as_str(), same.unnamed_ns),
            ("server+0x22d26", 0)
        );
        let common = Common::of([&one, &other].into_iter());
        for of in [&one, &other] {
            let comparable = common.comparable(of);
            assert_eq!(frames(&comparable), ["[server, functions without names]"]);
            assert_eq!(comparable.unnamed_ns, 1_000);
        }
    }

    #[test]
    fn kernel_code_counts_for_its_system_call() {
        let kernel = |names: &[&'static str]| -> Vec<String> {
            let of_kernel = names
                .iter()
                .map(|name| (Profile::KERNEL, *name, "", &[][..]));
            let all = of_kernel.chain([("/bin/server", "work", "", &[][..])]);
            let one = profile("", &all.collect::<Vec<_>>());
            frames(&Common::of([&one].into_iter()).comparable(&one))
        };
        let call = [
            "_raw_spin_unlock_irqrestore",
            "tcp_sendmsg",
            "__x64_sys_sendto",
            "do_syscall_64",
        ];
        assert_eq!(kernel(&call), ["[kernel] sendto", "work"]);
        let fault = ["clear_page", "asm_exc_page_fault"];
        assert_eq!(kernel(&fault), ["[kernel] page faults", "work"]);
        assert_eq!(kernel(&["inner", "outer"]), ["[kernel]", "work"]);
        assert_eq!(kernel(&[]), ["work"]);
    }
}
