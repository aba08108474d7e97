//! Samples folded by block, second, thread, and stack, within bounds.

use std::collections::HashMap;

use crate::spaces::Place;

/// Most different stacks. Beyond it the rarest half becomes [`OTHER`].
pub(crate) const MOST_STACKS: usize = 200_000;
/// Thread names that are kept.
const MOST_THREADS: usize = 10_000;
/// The stack of all that are not kept.
pub(crate) const OTHER: u32 = 0;

/// A place of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    Kernel(u64),
    User(Place),
    /// The function of the kernel that a thread sleeps in, by its number among their names.
    Sleeps(u32),
    /// The stack wasn't sampled.
    NotSampled,
    /// The stack continues, but couldn't be followed.
    Broken,
    /// The end of a chain of frame pointers. The frames before it show whether the chain is complete.
    Chained,
    /// See [`OTHER`].
    Other,
}

/// The key by which samples are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) block: u32,
    pub(crate) second: u32,
    pub(crate) thread: u32,
    pub(crate) stack: u32,
}

/// All samples of a hold.
#[derive(Debug)]
pub(crate) struct Stacks {
    most: usize,
    frames: Interner<Frame>,
    stacks: Interner<Box<[u32]>>,
    threads: Interner<String>,
    counts: HashMap<Key, u64>,
}

impl Stacks {
    pub(crate) fn new(most: usize) -> Self {
        let mut frames = Interner::default();
        let other = frames.intern(Frame::Other);
        let mut stacks = Interner::default();
        stacks.intern(Box::from([other]));
        Self {
            most,
            frames,
            stacks,
            threads: Interner::default(),
            counts: HashMap::new(),
        }
    }

    /// Counts a sample. The innermost frame is the first.
    pub(crate) fn add(&mut self, (block, second): (u32, u32), thread: &str, stack: &[Frame]) {
        let stack: Box<[u32]> = stack
            .iter()
            .map(|frame| self.frames.intern(*frame))
            .collect();
        let stack = self.stacks.intern(stack);
        let thread = if self.threads.len() < MOST_THREADS {
            thread
        } else {
            "…"
        };
        let thread = self.threads.intern(thread.to_owned());
        let key = Key {
            block,
            second,
            thread,
            stack,
        };
        *self.counts.entry(key).or_default() += 1;
        if self.stacks.len() > self.most {
            self.keep(self.most / 2);
        }
    }

    /// The number of a stack, the innermost frame first. Beyond the bound it is [`OTHER`].
    pub(crate) fn number(&mut self, stack: &[Frame]) -> u32 {
        if self.stacks.len() > self.most {
            return OTHER;
        }
        let frames = stack.iter().map(|frame| self.frames.intern(*frame));
        let frames = frames.collect();
        self.stacks.intern(frames)
    }

    pub(crate) fn counts(&self) -> impl Iterator<Item = (Key, u64)> {
        self.counts.iter().map(|(key, count)| (*key, *count))
    }

    pub(crate) fn stack(&self, stack: u32) -> impl Iterator<Item = u32> {
        self.stacks.get(stack).iter().copied()
    }

    /// All stacks, as numbers of frames, in the order of their own numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u32]> {
        self.stacks.values.iter().map(|stack| &**stack)
    }

    pub(crate) fn frames(&self) -> &[Frame] {
        &self.frames.values
    }

    pub(crate) fn threads(&self) -> &[String] {
        &self.threads.values
    }

    /// Different stacks.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.stacks.len() - 1
    }

    /// Keeps the most frequent stacks, and frames that they have.
    pub(crate) fn keep(&mut self, most: usize) {
        let mut totals = vec![0u64; self.stacks.len()];
        for (key, count) in &self.counts {
            totals[key.stack as usize] += count;
        }
        let mut order: Vec<u32> = (1..totals.len() as u32).collect();
        order.sort_by_key(|stack| std::cmp::Reverse(totals[*stack as usize]));
        order.truncate(most);
        let old = std::mem::replace(self, Self::new(self.most));
        self.threads = old.threads;
        let mut renamed = HashMap::new();
        for stack in order {
            let frames = old.stacks.get(stack).iter();
            let frames = frames.map(|frame| self.frames.intern(*old.frames.get(*frame)));
            let frames: Box<[u32]> = frames.collect();
            renamed.insert(stack, self.stacks.intern(frames));
        }
        for (key, count) in old.counts {
            let stack = renamed.get(&key.stack).copied().unwrap_or(OTHER);
            *self.counts.entry(Key { stack, ..key }).or_default() += count;
        }
    }
}

/// Values by number, each once.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    pub(crate) values: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Interner<T> {
    pub(crate) fn intern(&mut self, value: T) -> u32 {
        if let Some(known) = self.numbers.get(&value) {
            return *known;
        }
        let number = self.values.len() as u32;
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        number
    }

    fn get(&self, number: u32) -> &T {
        &self.values[number as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(stacks: &Stacks) -> u64 {
        stacks.counts().map(|(_, count)| count).sum()
    }

    #[test]
    fn equal_samples_of_a_second_are_one() {
        let mut stacks = Stacks::new(10);
        for second in [1, 1, 2] {
            stacks.add((0, second), "main", &[Frame::Kernel(1), Frame::Kernel(2)]);
        }
        assert_eq!(
            (stacks.counts().count(), sum(&stacks), stacks.len()),
            (2, 3, 1)
        );
    }

    #[test]
    fn beyond_the_bound_the_rarest_become_other() {
        let mut stacks = Stacks::new(100);
        for round in 0..500 {
            stacks.add(
                (0, round),
                "main",
                &[Frame::Kernel(u64::from(round)), Frame::Kernel(7)],
            );
            stacks.add((0, round), "main", &[Frame::Kernel(1_000_000)]);
            assert!(stacks.len() <= 100);
        }
        assert_eq!(sum(&stacks), 1000);
        let frequent = stacks.counts().filter(|(key, _)| {
            let mut frames = stacks.stack(key.stack);
            frames.any(|frame| stacks.frames()[frame as usize] == Frame::Kernel(1_000_000))
        });
        assert_eq!(frequent.count(), 500, "one for each second");
        let others = stacks.counts().filter(|(key, _)| key.stack == OTHER);
        assert!(others.count() > 300);
        assert!(
            stacks.frames().len() < 110,
            "frames of stacks that are gone go too"
        );
    }
}
