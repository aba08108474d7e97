//! CPU time and samples of the system by block of the hold, for the weights of samples and the cost of sampling.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_archive::SampledBlock;

/// The fewest samples that give a weight; neighbouring blocks are joined until they have as many.
const ENOUGH: u64 = 50;
/// The shortest time that gives a weight; neighbouring blocks are joined until they have as much.
const SPAN: Duration = Duration::from_secs(10);

/// All blocks.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    blocks: BTreeMap<u32, Block>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Block {
    from: Option<Duration>,
    off_from: Option<Duration>,
    on: Part,
    off: Part,
    samples: u64,
}

/// Time, and the CPU time of the system in it.
#[derive(Debug, Default, Clone, Copy)]
struct Part {
    time: Duration,
    cpu: Duration,
}

impl Blocks {
    /// Adds the time and CPU time between two moments.
    pub(crate) fn spent(
        &mut self,
        (block, is_on): (u32, bool),
        (from, to): (Duration, Duration),
        cpu: Duration,
    ) {
        let block = self.blocks.entry(block).or_default();
        block.from.get_or_insert(from);
        let part = if is_on {
            &mut block.on
        } else {
            block.off_from.get_or_insert(from);
            &mut block.off
        };
        part.time += to.saturating_sub(from);
        part.cpu += cpu;
    }

    pub(crate) fn sampled(&mut self, block: u32) {
        self.blocks.entry(block).or_default().samples += 1;
    }

    /// The system's CPU time while it was sampled.
    pub(crate) fn sampled_cpu(&self) -> Duration {
        self.blocks.values().map(|block| block.on.cpu).sum()
    }

    pub(crate) fn record(&self) -> Vec<SampledBlock> {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let blocks = self.blocks.values().map(|block| SampledBlock {
            from_ms: ms(block.from.unwrap_or_default()),
            off_from_ms: ms(block.off_from.or(block.from).unwrap_or_default()),
            on_ms: ms(block.on.time),
            on_cpu_ms: ms(block.on.cpu),
            off_ms: ms(block.off.time),
            off_cpu_ms: ms(block.off.cpu),
        });
        blocks.collect()
    }

    /// The CPU time of a sample of each block, in nanoseconds: over at least ten seconds, the CPU time of the
    /// system divided by its samples, so that neither lost samples nor the rate affect it.
    pub(crate) fn weights(&self) -> BTreeMap<u32, f64> {
        let mut spans: Vec<(Vec<u32>, Part, u64)> = Vec::new();
        let is_done =
            |(_, part, samples): &(Vec<u32>, Part, u64)| part.time >= SPAN && *samples >= ENOUGH;
        for (number, block) in &self.blocks {
            match spans.last_mut() {
                Some(span) if !is_done(span) => add(span, *number, block),
                _ => {
                    spans.push((Vec::new(), Part::default(), 0));
                    if let Some(span) = spans.last_mut() {
                        add(span, *number, block);
                    }
                }
            }
        }
        // The last one, if it is too short, belongs to the one before it.
        if spans.len() > 1
            && let Some((numbers, part, samples)) = spans.pop_if(|span| !is_done(span))
            && let Some(last) = spans.last_mut()
        {
            last.0.extend(numbers);
            last.1.cpu += part.cpu;
            last.2 += samples;
        }
        let weights = spans.into_iter().flat_map(|(numbers, part, samples)| {
            let weight = part.cpu.as_secs_f64() * 1e9 / samples.max(1) as f64;
            numbers.into_iter().map(move |number| (number, weight))
        });
        weights.collect()
    }
}

fn add(span: &mut (Vec<u32>, Part, u64), number: u32, block: &Block) {
    span.0.push(number);
    span.1.time += block.on.time + block.off.time;
    span.1.cpu += block.on.cpu;
    span.2 += block.samples;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_up_to_the_cpu_time() {
        let mut blocks = Blocks::default();
        let mut samples = Vec::new();
        for block in 0..21u32 {
            let cpu = Duration::from_millis(100 * u64::from(block + 1));
            let at = |second: u32| Duration::from_secs(u64::from(6 * block + second));
            blocks.spent((block, true), (at(0), at(2)), cpu);
            blocks.spent((block, false), (at(2), at(3)), Duration::from_secs(9));
            blocks.spent((block, true), (at(3), at(6)), Duration::ZERO);
            // None at all in some blocks.
            let count = u64::from(block % 4) * 30;
            for _ in 0..count {
                blocks.sampled(block);
            }
            samples.push((block, count));
        }
        let weights = blocks.weights();
        let sum: f64 = samples
            .iter()
            .map(|(block, count)| weights[block] * *count as f64)
            .sum();
        let cpu = blocks.sampled_cpu().as_secs_f64() * 1e9;
        assert!((sum / cpu - 1.0).abs() < 1e-9, "{sum} {cpu}");
        let record = &blocks.record()[1];
        assert_eq!((record.from_ms, record.off_from_ms), (6000.0, 8000.0));
        assert_eq!((record.on_ms, record.off_ms), (5000.0, 1000.0));
    }

    #[test]
    fn without_samples_there_is_no_weight_to_give() {
        let mut blocks = Blocks::default();
        let span = (Duration::ZERO, Duration::from_secs(5));
        blocks.spent((0, true), span, Duration::from_secs(1));
        assert_eq!(blocks.weights().len(), 1);
        assert!(Blocks::default().weights().is_empty());
    }
}
