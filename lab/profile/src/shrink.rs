//! Derives profiles from others: merged, restricted to some seconds, and bounded in size.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::builder::Builder;
use crate::model::{Kind, Line, Location, Profile, Sample, Wait};

/// Copies samples of a profile into a builder; tables are copied as far as samples use them.
struct Copy<'a> {
    from: &'a Profile,
    locations: Vec<Option<usize>>,
}

impl<'a> Copy<'a> {
    fn new(from: &'a Profile) -> Self {
        Self {
            from,
            locations: vec![None; from.locations.len()],
        }
    }

    fn location(&mut self, into: &mut Builder, index: usize) -> usize {
        if let Some(known) = self.locations[index] {
            return known;
        }
        let location = &self.from.locations[index];
        let line = |line: &Line, into: &mut Builder| Line {
            function: into.function(self.from.functions[line.function].clone()),
            line: line.line,
        };
        let copied = Location {
            mapping: location
                .mapping
                .map(|mapping| into.mapping(self.from.mappings[mapping].clone())),
            address: location.address,
            lines: location.lines.iter().map(|each| line(each, into)).collect(),
        };
        let position = into.location(copied);
        self.locations[index] = Some(position);
        position
    }

    /// The wait of a sample by the positions of another profile.
    fn wait(&self, into: &mut Builder, sample: &Sample) -> Option<Wait> {
        sample.wait.map(|wait| Wait {
            waker: wait.waker.map(|waker| into.waker(&self.from.wakers[waker])),
            ..wait
        })
    }

    /// Adds a sample with some of its stack.
    fn add(&mut self, into: &mut Builder, sample: &Sample, stack: &[usize], second: u32) {
        let locations = stack.iter().map(|index| self.location(into, *index));
        let stack = locations.collect();
        let thread = into.thread(&self.from.threads[sample.thread]);
        let wait = self.wait(into, sample);
        into.add(Sample {
            stack,
            thread,
            second,
            wait,
            ..*sample
        });
    }
}

/// The losses of a bounded profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) other_stacks: usize,
    pub(crate) other_samples: u64,
    pub(crate) cut_stacks: usize,
}

impl Profile {
    /// The samples of several profiles as one, such as those of a cell's trials. Seconds become 0, since seconds of different
    /// trials have nothing in common. All are of one kind.
    pub fn merged<'a>(profiles: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::merged_where(profiles, |_| true)
    }

    /// The same of the samples that are kept.
    pub fn merged_where<'a>(
        profiles: impl IntoIterator<Item = &'a Self>,
        keeps: impl Fn(&Sample) -> bool,
    ) -> Self {
        let mut profiles = profiles.into_iter().peekable();
        let kind = profiles.peek().map_or(Kind::Cpu, |profile| profile.kind);
        let mut into = Builder::of(kind);
        for profile in profiles {
            let mut copy = Copy::new(profile);
            for sample in profile.samples.iter().filter(|sample| keeps(sample)) {
                copy.add(&mut into, sample, &sample.stack, 0);
            }
        }
        into.finish()
    }

    /// The samples of some seconds of the trial's clock.
    pub fn within(&self, seconds: Range<u32>) -> Self {
        self.filtered(|sample| seconds.contains(&sample.second))
    }

    /// The samples that are kept.
    pub fn filtered(&self, keeps: impl Fn(&Sample) -> bool) -> Self {
        let mut into = Builder::of(self.kind);
        let mut copy = Copy::new(self);
        for sample in &self.samples {
            if keeps(sample) {
                copy.add(&mut into, sample, &sample.stack, sample.second);
            }
        }
        into.finish()
    }

    /// Returns the profile with at most this number of different stacks, and of frames in each.
    ///
    /// The rarest stacks become [`Profile::OTHER`]; a stack with too many frames keeps the innermost and ends with
    /// [`Profile::BROKEN`].
    pub(crate) fn bounded(&self, most_stacks: usize, most_frames: usize) -> (Self, Lost) {
        let kept = self.commonest_stacks(most_stacks);
        let mut lost = Lost::default();
        let mut into = Builder::of(self.kind);
        let mut copy = Copy::new(self);
        let mut seen = HashSet::new();
        for sample in &self.samples {
            let stack = sample.stack.as_slice();
            let is_new = seen.insert(stack);
            let stack = if kept.as_ref().is_some_and(|kept| !kept.contains(stack)) {
                lost.other_stacks += usize::from(is_new);
                lost.other_samples = lost.other_samples.saturating_add(sample.count);
                vec![into.placeholder(Self::OTHER)]
            } else if stack.len() > most_frames {
                lost.cut_stacks += usize::from(is_new);
                let end = into.placeholder(Self::BROKEN);
                let kept = stack.iter().take(most_frames.saturating_sub(1));
                let kept = kept.map(|index| copy.location(&mut into, *index));
                let mut stack: Vec<usize> = kept.collect();
                stack.push(end);
                stack
            } else {
                let kept = stack.iter().map(|index| copy.location(&mut into, *index));
                kept.collect()
            };
            let thread = into.thread(&self.threads[sample.thread]);
            let wait = copy.wait(&mut into, sample);
            into.add(Sample {
                stack,
                thread,
                wait,
                ..*sample
            });
        }
        (into.finish(), lost)
    }

    /// The stacks with the most samples; none where all of them are few enough. One place is left for [`Profile::OTHER`].
    fn commonest_stacks(&self, most: usize) -> Option<HashSet<&[usize]>> {
        let mut counts: HashMap<&[usize], u64> = HashMap::new();
        for sample in &self.samples {
            let count = counts.entry(&sample.stack).or_default();
            *count = count.saturating_add(sample.count);
        }
        if counts.len() <= most {
            return None;
        }
        let mut stacks: Vec<(&[usize], u64)> = counts.into_iter().collect();
        stacks.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let kept = stacks.into_iter().take(most.saturating_sub(1));
        Some(kept.map(|(stack, _)| stack).collect())
    }
}
