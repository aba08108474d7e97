//! The limits of a file, and the errors of files that can't be read.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use lab_profile::{Builder, MOST_UNCOMPRESSED_BYTES, Profile, ReadError, Sample, Sums, Weight};

use crate::made::Stacks;

/// A message's field with bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        field.push(length as u8 & 0x7f | 0x80);
        length >>= 7;
    }
    field.push(length as u8);
    field.extend(bytes);
    field
}

/// The types of values, and texts: 1 samples, 2 count, 3 cpu, 4 nanoseconds, 5 second, 6 thread, 7 work.
fn begin() -> Vec<u8> {
    let mut file = field(1, &[8, 1, 16, 2]);
    file.extend(field(1, &[8, 3, 16, 4]));
    for text in [
        "",
        "samples",
        "count",
        "cpu",
        "nanoseconds",
        "second",
        "thread",
        "work",
    ] {
        file.extend(field(6, text.as_bytes()));
    }
    file
}

fn refused(what: &[Vec<u8>]) -> String {
    let file = [begin(), what.concat()].concat();
    Profile::from_pprof(&file)
        .expect_err("it is refused")
        .to_string()
}

#[test]
fn says_what_is_wrong() {
    let function = field(5, &[8, 1, 16, 7]);
    let location = field(4, &[8, 1, 34, 2, 8, 1]);
    for (what, error) in [
        (vec![field(2, &[8, 9])], "sample 1: there is no location 9"),
        (
            vec![field(4, &[8, 1, 34, 2, 8, 9])],
            "location 1: there is no function 9",
        ),
        (
            vec![field(4, &[8, 1, 16, 9])],
            "location 1: there is no mapping 9",
        ),
        (
            vec![field(5, &[8, 1, 16, 99])],
            "function 1: there is no text 99",
        ),
        (
            vec![function.clone(), function.clone()],
            "function 2: the id 1 is 0 or not the only one",
        ),
        (
            vec![field(5, &[16, 7])],
            "function 1: the id 0 is 0 or not the only one",
        ),
        (
            vec![function.clone(), location.clone(), location.clone()],
            "location 2: the id 1 is 0 or not the only one",
        ),
        (
            vec![field(
                2,
                &[18, 11, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
            )],
            "sample 1: the CPU time is -1",
        ),
        (
            vec![field(2, &[26, 4, 8, 5, 24])],
            "sample 1: not in the pprof format",
        ),
        (
            vec![vec![2 << 3 | 2, 99]],
            "field 11: not in the pprof format: it ends beyond the file",
        ),
        (
            vec![vec![2 << 3 | 3]],
            "field 11: not in the pprof format: it has a group",
        ),
        (
            vec![
                function.clone(),
                location.clone(),
                field(2, &[[10, 0xc2, 0x3f].to_vec(), vec![1; 8130]].concat()),
            ],
            "it has more than 4064 functions in one stack",
        ),
        (
            vec![field(6, &vec![b'a'; 70_000])],
            "it has more than 16384 bytes in one message or text",
        ),
        (
            vec![field(3, &[]).repeat(1)],
            "mapping 1: the id 0 is 0 or not the only one",
        ),
        (
            vec![field(3, &[]).repeat(70_000)],
            "it has more than 65536 mappings",
        ),
    ] {
        let found = refused(&what);
        assert!(found.starts_with(error), "{found}, not {error}");
    }
}

#[test]
fn refuses_profiles_of_something_else() {
    let error = Profile::from_pprof(&[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "it has no values of the type samples/count; it has: none"
    );
    let heap: Vec<u8> = ["", "inuse_space", "bytes"]
        .iter()
        .flat_map(|text| field(6, text.as_bytes()))
        .collect();
    let heap = [field(1, &[8, 1, 16, 2]), heap].concat();
    let error = Profile::from_pprof(&heap).unwrap_err().to_string();
    assert_eq!(
        error,
        "it has no values of the type samples/count; it has: inuse_space/bytes"
    );
}

#[test]
fn a_location_without_a_function_is_named_by_its_place() {
    let file = [
        begin(),
        // From 0x400000, of the file's offset 0x1000.
        field(3, &[8, 1, 16, 0x80, 0x80, 0x80, 2, 32, 0x80, 0x20, 40, 7]),
        field(4, &[8, 1, 16, 1, 24, 0xe6, 0xda, 0x88, 2]),
        field(4, &[8, 2, 24, 0xe6, 0xda, 0x88, 2]),
        field(2, &[10, 2, 1, 2, 18, 2, 3, 4]),
    ];
    let profile = Profile::from_pprof(&file.concat()).unwrap();
    let sums = Sums::of(&profile);
    let names: Vec<&str> = sums
        .functions
        .iter()
        .map(|sum| sum.key.name.as_str())
        .collect();
    assert_eq!(names, ["work+0x23d66", "[unknown]"]);
    assert_eq!(sums.all, Weight { count: 3, ns: 4 });
    assert_eq!(
        (profile.locations[0].address, profile.locations[1].address),
        (0x23d66, 0)
    );
}

#[test]
fn refuses_what_grows_too_large() {
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    let part = vec![0; 1 << 20];
    for _ in 0..=MOST_UNCOMPRESSED_BYTES >> 20 {
        bomb.write_all(&part).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(matches!(
        Profile::from_pprof(&bomb),
        Err(ReadError::TooLarge { .. })
    ));
    assert!(matches!(
        Profile::from_pprof(&vec![0; 17 << 20]),
        Err(ReadError::TooLarge { .. })
    ));
    assert!(matches!(
        Profile::from_pprof(&[0x1f, 0x8b, 8]),
        Err(ReadError::Compression(_))
    ));
}

/// Returns a profile with this number of stacks: all combinations of a few functions, so that there are few locations.
fn of_stacks(stacks: u64, length: usize) -> Profile {
    let mut builder = Builder::default();
    let digits: Vec<usize> = (0..16)
        .map(|digit| builder.placeholder(&format!("f{digit}")))
        .collect();
    let thread = builder.thread("http-0");
    for number in 0..stacks {
        let frame = |at: usize| digits[(number >> (4 * (at % 16)) & 15) as usize];
        builder.add(Sample {
            stack: (0..length).map(frame).collect(),
            thread,
            second: 1,
            count: number + 1,
            ns: 1,
            wait: None,
        });
    }
    builder.finish()
}

#[test]
fn the_rarest_stacks_become_other() {
    let profile = of_stacks(200_010, 5);
    let written = profile.to_pprof();
    // One place is that of the others.
    assert_eq!(
        (written.other_stacks, written.other_samples),
        (11, (1..=11).sum())
    );
    let read = Profile::from_pprof(&written.bytes).unwrap();
    assert_eq!(read.weight(), profile.weight());
    assert_eq!(read.samples.len(), 200_000);
    let sums = Sums::of(&read);
    let other = sums
        .functions
        .iter()
        .find(|sum| sum.key.name == Profile::OTHER)
        .unwrap();
    assert_eq!(
        (other.own, other.total.ns),
        (Weight { count: 66, ns: 11 }, 11)
    );
}

#[test]
fn deep_stacks_keep_their_innermost_frames() {
    let profile = of_stacks(3, 300);
    let written = profile.to_pprof();
    assert_eq!((written.other_stacks, written.cut_stacks), (0, 3));
    let read = Profile::from_pprof(&written.bytes).unwrap();
    assert_eq!(read.weight(), profile.weight());
    for sample in &read.samples {
        assert_eq!(sample.stack.len(), 127);
        let outermost = read.frames(sample).last().unwrap();
        assert_eq!(read.functions[outermost].name, Profile::BROKEN);
    }
}

#[test]
fn long_names_are_shortened() {
    let name = "é".repeat(20_000);
    let profile = Stacks::default().with("http-0", 1, &name, 1).profile();
    let read = Profile::from_pprof(&profile.to_pprof().bytes).unwrap();
    assert_eq!(read.functions[0].name.chars().last(), Some('…'));
    assert!(read.functions[0].name.len() <= 16 << 10);
}
