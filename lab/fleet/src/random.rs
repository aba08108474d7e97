//! Random words for names of runs and ids of agent starts.

/// Returns 128 random bits as a word of 26 letters and digits, valid in a [`crate::Name`].
pub(crate) fn word() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the kernel has random bits");
    let mut number = u128::from_be_bytes(bytes);
    let mut word = String::new();
    for _ in 0..26 {
        let digit = (number % 32) as usize;
        word.push(char::from(b"0123456789abcdefghijklmnopqrstuv"[digit]));
        number /= 32;
    }
    word
}
