//! Remote load generators, for a trial: started, watched, and recorded. It judges nothing.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use lab_archive::{Agent, ArchiveError, ClockLine, TrialWriter};
use lab_driver::remote::{RemoteGenerators, Seen, SeenOffset};
use lab_driver::{Assignment, Driver, DriverError, DriverEvent, Mix};
use lab_host::machine::boot_id;
use lab_workload::LoadKind;

use crate::ConductError;
use crate::health::ThreadTimes;
use crate::stop::Stop;

/// The remote generators of a run's load.
#[derive(Debug, Clone)]
pub struct LoadGenerators(Arc<dyn RemoteGenerators>);

impl LoadGenerators {
    /// Uses these agents as generators.
    #[must_use]
    pub fn new(agents: Arc<dyn RemoteGenerators>) -> Self {
        Self(agents)
    }

    /// Starts a driver with remote workers. A sequence has one generator.
    pub(crate) fn start(
        &self,
        mix: Mix,
        events: SyncSender<DriverEvent>,
    ) -> Result<Driver, DriverError> {
        let mut peers = self.0.open()?;
        if matches!(mix.first().kind, LoadKind::Sequence { .. }) {
            peers.truncate(1);
        }
        Driver::start_peers(mix, peers, events)
    }

    /// Refuses a system that they can't reach.
    pub(crate) fn reach(&self, drive: &Assignment) -> Result<(), Stop> {
        let own = boot_id().unwrap_or_default();
        let away = self.seen().into_iter().find(|one| one.boot_id != own);
        let host = drive.base.host.as_str();
        let here = host == "localhost" || host.starts_with("127.") || host.contains("::1");
        match away {
            Some(agent) if here => Err(Stop::Fatal(ConductError::Unsupported(format!(
                "agent {} on {} can't reach the system at {}, an address of this machine for itself: attach \
                 one that runs already, by an address that all machines reach, or have an agent start it (`on`)",
                agent.name, agent.host, drive.base
            )))),
            _ => Ok(()),
        }
    }

    /// Workers over all of them.
    pub(crate) fn workers(&self) -> usize {
        let seen = self.seen();
        seen.iter().map(|one| one.workers as usize).sum()
    }

    /// Observations of each since the last trial was opened.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.seen()
    }
}

/// CPU times of their workers so far; `None` until each has reported.
pub(crate) fn times(seen: &[Seen]) -> Option<Vec<ThreadTimes>> {
    let told = |one: &Seen| one.times.len() == one.workers as usize;
    let all = || seen.iter().flat_map(|one| &one.times);
    let time = |(cpu, waited): &(u64, Option<u64>)| {
        let waited = waited.map(Duration::from_nanos);
        ThreadTimes::new(Duration::from_nanos(*cpu), waited)
    };
    seen.iter().all(told).then(|| all().map(time).collect())
}

/// For the record of the trial.
pub(crate) fn agent(seen: &Seen) -> Agent {
    let best = seen.offsets.iter().min_by_key(|one| one.bound);
    Agent {
        name: seen.name.clone(),
        host: seen.host.clone(),
        version: seen.version.clone(),
        boot_id: seen.boot_id.clone(),
        workers: seen.workers,
        weight: seen.weight,
        offset_ms: best.map(|best| best.offset as f64 / 1e6),
        bound_ms: seen
            .offsets
            .iter()
            .map(|one| ms(one.bound))
            .reduce(f64::max),
        apart_ms: best.map(|_| ms(apart(&seen.offsets))),
        drift_ppm: drift(&seen.offsets),
    }
}

/// The least-squares slope of the line through all measurements, in millionths. `None` if the whole line rises by less
/// than the error of a measurement: it is not significant then.
fn drift(offsets: &[SeenOffset]) -> Option<f64> {
    let (first, last) = (offsets.first()?, offsets.last()?);
    let from_first = |one: &SeenOffset| {
        let at = one.at.saturating_sub(first.at) as f64;
        (at, one.offset.saturating_sub(first.offset) as f64)
    };
    let count = offsets.len() as f64;
    let sums = offsets.iter().map(from_first);
    let (at, off) = sums.fold((0.0, 0.0), |(at, off), one| (at + one.0, off + one.1));
    let (at, off) = (at / count, off / count);
    let parts = offsets.iter().map(from_first);
    let (above, below) = parts.fold((0.0, 0.0), |(above, below), one| {
        let aside = one.0 - at;
        (above + aside * (one.1 - off), below + aside * aside)
    });
    let slope = (below > 0.0).then(|| above / below)?;
    let bound = offsets.iter().map(|one| one.bound).max()?;
    let rise = slope.abs() * last.at.saturating_sub(first.at) as f64;
    (rise > bound as f64).then_some(slope * 1e6)
}

/// The largest gap between the offsets that two successive measurements allow.
fn apart(offsets: &[SeenOffset]) -> u64 {
    let pairs = offsets.windows(2).map(|pair| {
        let between = pair[0].offset.abs_diff(pair[1].offset);
        between.saturating_sub(pair[0].bound.saturating_add(pair[1].bound))
    });
    pairs.max().unwrap_or(0)
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// Writes the known clock offsets; `zero` is the trial's 0 in ns of the monotonic clock.
pub(crate) fn write_clocks(
    agents: &[Seen],
    zero: u64,
    writer: &mut TrialWriter,
) -> Result<(), ArchiveError> {
    for seen in agents {
        for one in &seen.offsets {
            writer.clock(&ClockLine {
                t_ms: (i128::from(one.at) - i128::from(zero)) as f64 / 1e6,
                agent: seen.name.clone(),
                offset_ms: one.offset as f64 / 1e6,
                bound_ms: ms(one.bound),
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(offset: i64, bound: u64) -> SeenOffset {
        SeenOffset {
            at: 0,
            offset,
            bound,
        }
    }

    #[test]
    fn a_clock_that_stood_still_shows_beyond_the_bounds() {
        let still = [offset(1_000, 50), offset(1_080, 40), offset(-4_000, 60)];
        assert_eq!(apart(&still[..2]), 0);
        assert_eq!(apart(&still), 4_980);
        assert_eq!(apart(&[]), 0);
    }

    #[test]
    fn a_clock_that_goes_faster_shows_as_a_line() {
        let second = 1_000_000_000;
        let at = |seconds: u64, offset: i64| SeenOffset {
            at: seconds * second,
            offset,
            bound: 60_000,
        };
        // 20 ppm: 20 us a second, and an error of up to 5 us around it.
        let line: Vec<SeenOffset> = (0..60)
            .map(|n| at(n, 5_000_000 + 20_000 * n as i64 + 5_000 * (n as i64 % 2)))
            .collect();
        let found = drift(&line).unwrap();
        assert!((found - 20.0).abs() < 0.2, "{found}");
        // The change in two seconds is less than the error of each.
        assert_eq!(drift(&line[..3]), None);
        assert_eq!((drift(&line[..1]), drift(&[])), (None, None));
    }

    #[test]
    fn workers_count_when_all_have_told() {
        let seen = |times: &[(u64, Option<u64>)]| Seen {
            workers: 1,
            times: times.to_vec(),
            ..Seen::default()
        };
        assert_eq!(times(&[seen(&[(5, None)]), seen(&[])]), None);
        let both = times(&[seen(&[(5, None)]), seen(&[(6, Some(1))])]);
        assert_eq!(both.map(|times| times.len()), Some(2));
    }
}
