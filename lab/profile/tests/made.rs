//! Profiles made by hand; a file preserves all of them.

use std::io::Read as _;

use flate2::read::GzDecoder;
use lab_profile::waits::Class;
use lab_profile::{Builder, Function, Kind, Line, Location, Mapping, Profile, Sample, Wait};
use proptest::prelude::*;

/// Puts a profile together from names of functions.
#[derive(Default)]
pub(crate) struct Stacks {
    builder: Builder,
}

impl Stacks {
    /// Adds samples of 5 ms each: `stack` is a list of functions, the outermost first, such as `main;serve;work`.
    pub(crate) fn with(self, thread: &str, second: u32, stack: &str, count: u64) -> Self {
        self.with_wait(thread, second, stack, (count, None))
    }

    /// Adds intervals of 5 ms each, in which a thread waited.
    pub(crate) fn waiting(
        mut self,
        (thread, second): (&str, u32),
        stack: &str,
        (count, class, waker): (u64, Class, Option<&str>),
    ) -> Self {
        let waker = waker.map(|name| self.builder.waker(name));
        self.with_wait(thread, second, stack, (count, Some(Wait { class, waker })))
    }

    fn with_wait(
        mut self,
        thread: &str,
        second: u32,
        stack: &str,
        (count, wait): (u64, Option<Wait>),
    ) -> Self {
        let builder = &mut self.builder;
        let mut locate = |name: &str| {
            // A kernel's function is written with `~` before it.
            let (file, name) = match name.strip_prefix('~') {
                Some(name) => ("[kernel]", name),
                None => ("/srv/server", name),
            };
            let mapping = builder.mapping(Mapping {
                file: file.to_owned(),
                build_id: "0badcafe".to_owned(),
            });
            let function = builder.function(Function {
                name: name.to_owned(),
                file: "/src/server.rs".to_owned(),
            });
            builder.location(Location {
                mapping: Some(mapping),
                address: 0x1000 + function as u64,
                lines: vec![Line { function, line: 7 }],
            })
        };
        let stack = stack.rsplit(';').map(&mut locate).collect();
        let thread = builder.thread(thread);
        builder.add(Sample {
            stack,
            thread,
            second,
            count,
            ns: count * 5_000_000,
            wait,
        });
        self
    }

    pub(crate) fn of_waits() -> Self {
        Self {
            builder: Builder::of(Kind::Off),
        }
    }

    pub(crate) fn profile(self) -> Profile {
        self.builder.finish()
    }
}

/// Returns a profile's content, independent of the order of its tables: a line per sample.
pub(crate) fn told(profile: &Profile) -> Vec<String> {
    let line = |line: &Line| {
        let function = &profile.functions[line.function];
        format!("{} {}:{}", function.name, function.file, line.line)
    };
    let location = |index: &usize| {
        let location = &profile.locations[*index];
        let mapping = location.mapping.map(|mapping| &profile.mappings[mapping]);
        let lines: Vec<String> = location.lines.iter().map(line).collect();
        format!("{mapping:?} {:x} {lines:?}", location.address)
    };
    let sample = |sample: &Sample| {
        let stack: Vec<String> = sample.stack.iter().map(location).collect();
        let thread = &profile.threads[sample.thread];
        let wait = sample.wait.map(|wait| {
            let waker = wait.waker.map(|waker| &profile.wakers[waker]);
            (wait.class, waker)
        });
        let (second, weight) = (sample.second, sample.weight());
        format!("{thread} {second} {weight:?} {wait:?} {stack:?}")
    };
    let mut lines: Vec<String> = profile.samples.iter().map(sample).collect();
    lines.sort();
    lines
}

fn any_profile() -> impl Strategy<Value = Profile> {
    prop_oneof![Just(Kind::Cpu), Just(Kind::Off)].prop_flat_map(profile_of)
}

fn profile_of(kind: Kind) -> impl Strategy<Value = Profile> {
    let text = || "[a-z_<>:&é ]{0,12}";
    let mapping = (text(), "[0-9a-f]{0,8}").prop_map(|(file, build_id)| Mapping { file, build_id });
    let function = (text(), text()).prop_map(|(name, file)| Function { name, file });
    let mappings = prop::collection::vec(mapping, 1..4);
    let functions = prop::collection::vec(function, 1..8);
    let lines = prop::collection::vec((0..8_usize, any::<u32>()), 1..4);
    let locations =
        prop::collection::vec((prop::option::of(0..4_usize), any::<u64>(), lines), 1..8);
    let stack = prop::collection::vec(0..8_usize, 0..9);
    let sample = (
        stack,
        text(),
        any::<u32>(),
        0..u64::from(u32::MAX),
        0..u64::from(u32::MAX),
        prop::option::of((0..Class::ALL.len(), prop::option::of("[a-z* ]{1,9}"))),
    );
    let samples = prop::collection::vec(sample, 0..12);
    (mappings, functions, locations, samples).prop_map(
        move |(mappings, functions, locations, samples)| {
            let mut builder = Builder::of(kind);
            let mut known = Vec::new();
            for (mapping, address, lines) in locations {
                let mapping =
                    mapping.map(|i| builder.mapping(mappings[i % mappings.len()].clone()));
                let lines = lines.into_iter().map(|(function, line)| Line {
                    function: builder.function(functions[function % functions.len()].clone()),
                    line,
                });
                let lines = lines.collect();
                // Without a file there is nothing that an address could be relative to.
                let address = mapping.map_or(0, |_| address);
                known.push(builder.location(Location {
                    mapping,
                    address,
                    lines,
                }));
            }
            for (stack, thread, second, count, ns, wait) in samples {
                let stack = stack
                    .into_iter()
                    .map(|index| known[index % known.len()])
                    .collect();
                let thread = builder.thread(&thread);
                // A profile of CPU time has no waits.
                let wait = wait.filter(|_| kind == Kind::Off);
                let wait = wait.map(|(class, waker)| Wait {
                    class: Class::ALL[class],
                    waker: waker.map(|name| builder.waker(&name)),
                });
                builder.add(Sample {
                    stack,
                    thread,
                    second,
                    count,
                    ns,
                    wait,
                });
            }
            builder.finish()
        },
    )
}

proptest! {
    #[test]
    fn a_file_keeps_all_of_a_profile(profile in any_profile()) {
        let written = profile.to_pprof();
        prop_assert_eq!((written.other_stacks, written.cut_stacks), (0, 0));
        let read = Profile::from_pprof(&written.bytes).unwrap();
        prop_assert_eq!(told(&read), told(&profile));
        prop_assert_eq!(read.kind, profile.kind);
    }

    #[test]
    fn merging_keeps_samples_and_time(
        a in profile_of(Kind::Off),
        b in profile_of(Kind::Off),
    ) {
        let mut both = a.weight();
        both += b.weight();
        let merged = Profile::merged([&a, &b]);
        prop_assert_eq!(merged.weight(), both);
        prop_assert_eq!(told(&Profile::merged([&b, &a])), told(&merged));
    }

    #[test]
    fn damage_is_an_error_or_another_profile(
        profile in any_profile(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let file = profile.to_pprof().bytes;
        let mut bytes = Vec::new();
        GzDecoder::new(&file[..]).read_to_end(&mut bytes).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Err(error) = Profile::from_pprof(&bytes) {
            prop_assert!(!error.to_string().is_empty());
        }
        let _ = Profile::from_pprof(&bytes[..at]);
        // The compressed file has a checksum.
        prop_assert!(Profile::from_pprof(&file[..file.len() - 1]).is_err());
    }
}

#[test]
fn equal_files_come_of_equal_profiles() {
    let profile = || {
        Stacks::default()
            .with("http-0", 3, "main;serve", 2)
            .profile()
    };
    assert_eq!(profile().to_pprof(), profile().to_pprof());
}
