//! One target per parser of bytes from the network or a person's file: any bytes are parsed or rejected, in memory and
//! time proportional to them.
//!
//! With `make fuzz`, libFuzzer searches for inputs that break a target (`main`); tests run the ones in `corpus/`, so
//! that found faults stay fixed. It is independent of the fuzzer.

mod cost;
mod targets;

pub use cost::Cost;

/// A parser as a fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name of its module, and of its folder in `corpus/`.
    pub name: &'static str,
    run: fn(&[u8]),
    /// The maximum bytes of an input.
    most_bytes: usize,
    /// The bytes that it may allocate regardless of the input.
    base_bytes: usize,
    /// The bytes that it may allocate for each byte of the input.
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

    /// Runs it on an input, and on many copies of it in a row: an excessive cost per byte shows when there are many.
    ///
    /// # Panics
    /// When the target does, or uses more memory than it may.
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
    /// When the target does, or uses more memory than it may.
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
