//! Any bytes as a file mapped by a sampled process, or as the names of its compiled code: all results are within the
//! input.

use lab_sampling::parsers::{Elf, perf_map};

pub(crate) fn run(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    if kind % 2 == 0 {
        let addresses = [0, 1, 0x1000, 0x7fff_0000_1000, u64::MAX];
        let names = perf_map(data, &addresses);
        assert!(names.len() <= addresses.len());
        assert!(names.values().all(|name| name.len() <= 3 * data.len()));
    } else if let Some(elf) = Elf::read(data) {
        for offset in [0, 0x1000, u64::MAX] {
            let address = elf.start(offset, 0x1000);
            elf.function(address.unwrap_or(offset));
        }
    }
}
