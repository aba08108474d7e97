//! The two random streams of a virtual user: its waits, and its choices.
//!
//! Both derive from (study seed, block, user index) alone, or for an arriving session from its number, so that every
//! cell of a block sees the same draws and every block sees new ones. The streams are separate so that a choice (a
//! `pick`, a `uuid`) never shifts a later wait. Nothing here knows a clock.

use std::time::Duration;

use lab_filters::normal_quantile;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::wait::{Chance, Wait};

/// Identifies a stream of a user in its seed.
#[derive(Clone, Copy)]
enum Purpose {
    Timing = 1,
    Choice = 2,
    Order = 3,
    Arrivals = 4,
    SessionTiming = 5,
    SessionChoice = 6,
    Strata = 7,
    Unplanned = 8,
    SessionUnplanned = 9,
}

/// The waits of one user: one draw per wait, whatever its kind. Waits that depend on the server's responses (further
/// rounds and retries) use a separate stream, so that no response shifts a planned wait.
#[derive(Debug, Clone)]
pub struct TimingStream {
    planned: Xoshiro256PlusPlus,
    unplanned: Later,
}

/// A lazily created generator: few users need it.
#[derive(Debug, Clone)]
struct Later {
    seed: u64,
    made: Option<Box<Xoshiro256PlusPlus>>,
}

impl Later {
    fn of(seed: u64) -> Self {
        Self { seed, made: None }
    }

    fn generator(&mut self) -> &mut Xoshiro256PlusPlus {
        let seed = self.seed;
        let make = || Box::new(Xoshiro256PlusPlus::seed_from_u64(seed));
        self.made.get_or_insert_with(make)
    }
}

impl TimingStream {
    /// Creates the stream of user `index` in `block`.
    #[must_use]
    pub fn new(seed: u64, block: u32, index: u32) -> Self {
        Self {
            planned: generator(seed, block, index, Purpose::Timing),
            unplanned: Later::of(of_user(seed, block, index, Purpose::Unplanned)),
        }
    }

    /// Creates the stream of a user's visit, from 0: a returning user draws anew, so that the speed of the server
    /// shifts no planned wait.
    #[must_use]
    pub fn of_visit(seed: u64, block: u32, index: u32, visit: u32) -> Self {
        match visit {
            0 => Self::new(seed, block, index),
            visit => Self::new(mix(seed ^ mix(u64::from(visit))), block, index),
        }
    }

    /// Creates the stream of an arriving session, by its number among all sessions: its waits depend neither on the
    /// user that runs it nor on the duration of earlier sessions.
    #[must_use]
    pub fn of_session(seed: u64, block: u32, number: u64) -> Self {
        Self {
            planned: session_generator(seed, block, number, Purpose::SessionTiming),
            unplanned: Later::of(of_session(seed, block, number, Purpose::SessionUnplanned)),
        }
    }

    /// Creates a separate stream for the waits of one of several parallel requests, which are unplanned.
    #[must_use]
    pub fn branch(&mut self) -> Self {
        let seed = self.unplanned.generator().next_u64();
        Self {
            planned: Xoshiro256PlusPlus::seed_from_u64(seed),
            unplanned: Later::of(mix(seed)),
        }
    }

    /// Returns the next wait. Consumes exactly one draw, also for [`Wait::None`] and [`Wait::Constant`], so that
    /// editing one step of a workload keeps the draws of the others.
    pub fn next_wait(&mut self, wait: &Wait) -> Duration {
        sample(wait, unit(&mut self.planned))
    }

    /// Returns the next unplanned wait; consumes one draw of the stream of unplanned waits.
    pub fn next_unplanned(&mut self, wait: &Wait) -> Duration {
        sample(wait, unit(self.unplanned.generator()))
    }

    /// Skips this many planned waits: those of a step that is skipped because of earlier answers.
    pub fn pass_over(&mut self, waits: u32) {
        (0..waits).for_each(|_| {
            self.planned.next_u64();
        });
    }
}

/// Selects the steps of one session. New for each session.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionChoice {
    group: u32,
    draw: f64,
}

impl SessionChoice {
    /// Returns whether to run a step with this chance; call in the order of the session. The first step of a group
    /// consumes one draw of the stream; steps without a chance consume none.
    pub fn does(&mut self, chance: Option<&Chance>, stream: &mut TimingStream) -> bool {
        let Some(chance) = chance else { return true };
        if self.group != chance.group {
            self.group = chance.group;
            self.draw = unit(&mut stream.planned);
        }
        (chance.from..chance.to).contains(&self.draw)
    }
}

/// The choices of one user: list entries, identifiers, dates, filler text.
#[derive(Debug, Clone)]
pub struct ChoiceStream(Xoshiro256PlusPlus);

impl ChoiceStream {
    /// Creates the stream of user `index` in `block`.
    #[must_use]
    pub fn new(seed: u64, block: u32, index: u32) -> Self {
        Self(generator(seed, block, index, Purpose::Choice))
    }

    /// Creates the stream of an arriving session, by its number among all sessions.
    #[must_use]
    pub fn of_session(seed: u64, block: u32, number: u64) -> Self {
        Self(session_generator(
            seed,
            block,
            number,
            Purpose::SessionChoice,
        ))
    }

    /// Creates the stream of the times between sessions that arrive in `block`.
    #[must_use]
    pub fn of_arrivals(seed: u64, block: u32) -> Self {
        Self(generator(seed, block, 0, Purpose::Arrivals))
    }

    /// Returns a number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        unit(&mut self.0)
    }

    /// Returns a number in `0..bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply-shift: its bias is bound ÷ 2⁶⁴, far below the resolution of any trial.
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Creates a separate stream for one of several concurrent activities: the draws of the others don't change it.
    #[must_use]
    pub fn branch(&mut self) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(self.bits()))
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Sorts `items` into the run order of `block`: a seeded Fisher–Yates shuffle.
pub fn shuffle<T>(items: &mut [T], seed: u64, block: u32) {
    let mut stream = ChoiceStream(generator(seed, block, 0, Purpose::Order));
    for last in (1..items.len()).rev() {
        let other = stream.below(last as u64 + 1) as usize;
        items.swap(last, other);
    }
}

/// Returns draw `drawn` of one of these users, in [0, 1): all draws of a block together are spread evenly, see
/// `template::profile`.
pub fn stratum(seed: u64, block: u32, (index, users): (u32, u32), drawn: u32) -> f64 {
    /// The golden ratio − 1.
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let users = users.max(1);
    let of_block = mix(mix(mix(seed) ^ u64::from(block)) ^ Purpose::Strata as u64);
    let shift = (of_block >> 11) as f64 / (1u64 << 53) as f64;
    let first = mix(of_block ^ u64::from(drawn)) % u64::from(users);
    let place = (u64::from(index) + first) % u64::from(users);
    let number = u64::from(drawn) * u64::from(users) + place;
    (shift + number as f64 * GOLDEN).fract()
}

fn generator(seed: u64, block: u32, index: u32, purpose: Purpose) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(of_user(seed, block, index, purpose))
}

/// Returns the seed of a user's stream.
fn of_user(seed: u64, block: u32, index: u32, purpose: Purpose) -> u64 {
    let place = (u64::from(block) << 32) | u64::from(index);
    mix(mix(mix(seed) ^ place) ^ purpose as u64)
}

fn session_generator(seed: u64, block: u32, number: u64, purpose: Purpose) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(of_session(seed, block, number, purpose))
}

/// Returns the seed of a session's stream. Session numbers need all 64 bits, so the block is mixed in separately.
fn of_session(seed: u64, block: u32, number: u64, purpose: Purpose) -> u64 {
    let mixed = mix(mix(mix(seed) ^ u64::from(block)) ^ number);
    mix(mixed ^ purpose as u64)
}

/// SplitMix64's output function (Steele, Lea, Flood 2014): neighbouring inputs, unrelated outputs.
#[must_use]
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns a number in [0, 1) with 53 random bits.
fn unit(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Returns the wait at quantile `u` of its distribution.
fn sample(wait: &Wait, u: f64) -> Duration {
    let seconds = match *wait {
        Wait::None | Wait::Seconds(..) => return Duration::ZERO,
        Wait::Constant(d) => return d,
        Wait::Uniform(low, high) => {
            low.as_secs_f64() + u * (high.saturating_sub(low)).as_secs_f64()
        }
        Wait::Exponential(mean) => {
            let mean = mean.as_secs_f64();
            (-(1.0 - u).ln() * mean).min(10.0 * mean)
        }
        Wait::Lognormal(median, sigma) => {
            let median = median.as_secs_f64();
            // u = 0 would give minus infinity; use half a step of the 53-bit grid instead.
            let z = normal_quantile(u.max(f64::EPSILON / 4.0));
            (median * (sigma * z).exp()).min(100.0 * median)
        }
    };
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests;
