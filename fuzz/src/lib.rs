//! One target per parser that meets the network or a person's file: any bytes are understood or refused, in
//! memory and time that have a ratio to them.
//!
//! `make fuzz` has libFuzzer look for inputs that break a target (`main`); tests play the ones in `corpus/`,
//! so that what was found once isn't found again. It knows no fuzzer.

mod cost;
mod targets;

pub use cost::Cost;

/// A parser, as it is fuzzed.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name of its module, and of its folder in `corpus/`.
    pub name: &'static str,
    run: fn(&[u8]),
    /// Longest input that is tried.
    most_bytes: usize,
    /// What it may allocate besides what depends on the input.
    base_bytes: usize,
    /// What it may allocate for each byte of the input.
    times: usize,
}

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    targets::ALL.iter()
}

impl Target {
    const fn new(name: &'static str, run: fn(&[u8])) -> Self {
        Self {
            name,
            run,
            most_bytes: 64 << 10,
            base_bytes: 64 << 10,
            times: 32,
        }
    }

    const fn base(self, base_bytes: usize) -> Self {
        Self { base_bytes, ..self }
    }

    const fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    /// Runs it on an input, and on the same over and over: what takes more than it should for each byte
    /// shows when there are many.
    ///
    /// # Panics
    /// When the target does, or takes more memory than it may.
    pub fn play(&self, input: &[u8]) -> Cost {
        let input = &input[..input.len().min(self.most_bytes)];
        let long = input.iter().copied().cycle().take(match input.len() {
            0 => 0,
            _ => self.most_bytes,
        });
        let long: Vec<u8> = long.collect();
        self.once(input).and(self.once(&long))
    }

    /// Runs it on an input.
    ///
    /// # Panics
    /// When the target does, or takes more memory than it may.
    pub fn once(&self, input: &[u8]) -> Cost {
        let input = &input[..input.len().min(self.most_bytes)];
        let cost = Cost::of(input.len(), || (self.run)(input));
        let most = self.base_bytes + self.times * input.len();
        assert!(
            cost.peak_bytes <= most as u64,
            "{}: {} bytes in memory for an input of {}; {most} are allowed",
            self.name,
            cost.peak_bytes,
            input.len()
        );
        cost
    }
}
