#![no_main]
//! The program with which libFuzzer searches for inputs, for the target that `PLIMSOLL_TARGET` names.

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::{Target, targets};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("PLIMSOLL_TARGET").expect("PLIMSOLL_TARGET names a target");
    let named = targets().find(|target| target.name == name);
    named.unwrap_or_else(|| panic!("there is no target {name}"))
});

fuzz_target!(|data: &[u8]| {
    // The long form of all inputs would take all the time.
    let is_to_be_long = data.iter().map(|byte| u32::from(*byte)).sum::<u32>() % 16 == 0;
    let cost = match is_to_be_long {
        true => TARGET.play(data),
        false => TARGET.once(data),
    };
    assert!(
        cost.time <= cost.most_time,
        "{:?} of the processor for {} bytes; {:?} are allowed",
        cost.time,
        data.len(),
        cost.most_time
    );
});
