//! Any bytes as messages between a generator and its conductor, both ways. Also with the right length prepended, so
//! that not every input ends at its first four bytes.

use lab_driver::remote::{check_from_generator, check_to_generator};

pub(crate) fn run(bytes: &[u8]) {
    let mut framed = (bytes.len() as u32).to_be_bytes().to_vec();
    framed.extend(bytes);
    for input in [bytes, &framed] {
        let _ = check_from_generator(input);
        let _ = check_to_generator(input);
    }
}
