//! The work during ramp and hold besides the driver: samples of counters, the generator's health, windows for the
//! archive, and the progress. It waits for nothing and judges nothing.

use std::collections::VecDeque;
use std::time::Duration;

use lab_archive::{ArchiveError, TrialWriter, Warning};
use lab_driver::{Window, WorkerThread};
use lab_machine::{Row, next_due};
use lab_monitor::{FilesUsed, Monitor};

use crate::event::{Event, Phase};
use crate::generators::{self, LoadGenerators};
use crate::health::{Health, nice, thread_times};
use crate::progress::Rolling;
use crate::record;
use crate::scrape::Scraper;

/// Longest interval between two checks of the interrupt and the system.
pub(crate) const EVENT_WAIT: Duration = Duration::from_millis(100);
/// Counters are sampled this often, or sixty times a hold if that is more often.
const SAMPLE: Duration = Duration::from_secs(1);
const SAMPLES_PER_HOLD: u32 = 60;
/// The shortest sampling interval: a sample costs a millisecond or more, depending on the system's threads, and would
/// load the generator.
const SAMPLE_AT_LEAST: Duration = Duration::from_millis(20);
/// Interval of progress events.
const TELL: Duration = Duration::from_secs(1);

/// A server with so many responses, all errors, for long enough will only return errors.
const HOPELESS_ERRORS: u64 = 20;
const HOPELESS_AFTER: Duration = Duration::from_secs(10);

/// The state of ramp and hold. All times are on the trial's clock.
#[derive(Debug)]
pub(crate) struct Measuring {
    monitor: Monitor,
    /// Names of all counters: those of remote hosts, host by host, then the local ones.
    names: Vec<String>,
    /// The remote counters, in the order of the names.
    there: Vec<RemoteCounters>,
    /// Number of local counters that are omitted, since another machine's take their place.
    left_out: usize,
    /// Local counters that wait for the remote ones.
    pending: Option<(Duration, Vec<Option<f64>>)>,
    scraper: Option<Scraper>,
    /// The remote generators, if the workers are there.
    generators: Option<LoadGenerators>,
    columns: Columns,
    /// Open files of the generator before its load.
    files_before: f64,
    peaks: Peaks,
    /// The generator's workers.
    threads: Vec<WorkerThread>,
    rolling: Rolling,
    /// Steps of the session; the probe, if any, follows them.
    steps: usize,
    hold_at: Duration,
    end_at: Duration,
    every: Duration,
    sample_at: Duration,
    report_at: Duration,
    holding: bool,
    last_end: Duration,
    health: Health,
    unanswered: Option<lab_archive::Unanswered>,
}

/// The counters of a remote host.
#[derive(Debug)]
struct RemoteCounters {
    /// Number of counters; 0 for a host without any.
    count: usize,
    /// Rows that wait for the local ones.
    rows: VecDeque<Row>,
}

impl RemoteCounters {
    /// Drops rows that are too old for a row at this time; returns true if a near row exists, or none is expected.
    fn has(&mut self, at: Duration, near: Duration) -> bool {
        while self.rows.front().is_some_and(|row| row.at + near < at) {
            self.rows.pop_front();
        }
        self.count == 0 || self.is_near(at, near)
    }

    fn is_near(&self, at: Duration, near: Duration) -> bool {
        self.rows.front().is_some_and(|row| row.at <= at + near)
    }

    /// Its part of the row at this time; empty values if it has not arrived.
    fn take(&mut self, at: Duration, near: Duration) -> Vec<Option<f64>> {
        let row = self.is_near(at, near).then(|| self.rows.pop_front());
        let mut values = row.flatten().map_or(Vec::new(), |row| row.values);
        values.resize(self.count, None);
        values
    }
}

/// The columns of counters for the generator's own limits.
#[derive(Debug)]
struct Columns {
    resident: Option<usize>,
    generator_files: Option<usize>,
    time_wait: Option<usize>,
}

impl Columns {
    fn of(names: &[String]) -> Self {
        let find = |name: &str| names.iter().position(|column| column == name);
        Self {
            resident: find("generator.rss_mb"),
            generator_files: find("generator.open_files"),
            // If the host is remote, this machine is the generator's.
            time_wait: find("generator_host.tcp_time_wait").or_else(|| find("host.tcp_time_wait")),
        }
    }
}

/// The highest values of all samples.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Peaks {
    /// For the generator process that was nearest to its limit.
    pub(crate) generator_files: Option<FilesUsed>,
    /// For the system, if it is on this machine.
    pub(crate) system_files: Option<FilesUsed>,
    /// For all processes of this machine.
    pub(crate) all_files: Option<FilesUsed>,
    /// Most ports in use for outgoing connections.
    pub(crate) ports: Option<f64>,
}

impl Peaks {
    fn add(&mut self, columns: &Columns, files_before: f64, row: &[Option<f64>]) {
        let at = |column: Option<usize>| row.get(column?).copied().flatten();
        let opened = at(columns.generator_files).map(|files| (files - files_before).max(0.0));
        let ports = opened
            .zip(at(columns.time_wait))
            .map(|(own, ending)| own + ending);
        raise(&mut self.ports, ports);
    }

    fn with_files(self, monitor: &Monitor) -> Self {
        Self {
            generator_files: monitor.nearest_files("generator"),
            system_files: monitor.nearest_files("system"),
            all_files: monitor.all_files(),
            ..self
        }
    }
}

fn raise(most: &mut Option<f64>, now: Option<f64>) {
    *most = now
        .map(|now| most.map_or(now, |most| most.max(now)))
        .or(*most);
}

/// Results of ramp and hold, besides those already in the archive.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Answered requests, without those of the probe.
    pub(crate) transactions: u64,
    /// Failed ones.
    pub(crate) errors: u64,
    /// Sessions started.
    pub(crate) sessions: u64,
    /// End of the last window.
    pub(crate) elapsed: Duration,
    /// The generator's health.
    pub(crate) health: Health,
    /// Requests without a response at the end.
    pub(crate) unanswered: Option<lab_archive::Unanswered>,
    pub(crate) peaks: Peaks,
}

/// The phases of the trial's load in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spans {
    pub(crate) ramp: Duration,
    pub(crate) hold: Duration,
    /// The length that sets the sampling interval: the hold, except for a sequence, which mostly ends long before its
    /// deadline.
    pub(crate) sampled_as: Duration,
    /// Ramps and holds of the trials that follow.
    pub(crate) after: Duration,
}

impl Measuring {
    pub(crate) fn new(
        monitor: Monitor,
        threads: Vec<WorkerThread>,
        steps: usize,
        files_before: usize,
        spans: Spans,
    ) -> Self {
        let end_at = spans.ramp + spans.hold;
        Self {
            columns: Columns::of(monitor.columns()),
            names: monitor.columns().to_vec(),
            there: Vec::new(),
            left_out: 0,
            pending: None,
            monitor,
            scraper: None,
            generators: None,
            files_before: files_before as f64,
            peaks: Peaks::default(),
            threads,
            rolling: Rolling::new(end_at, spans.after),
            steps,
            hold_at: spans.ramp,
            end_at,
            every: sample_interval(spans.sampled_as),
            sample_at: Duration::ZERO,
            report_at: TELL,
            holding: false,
            last_end: Duration::ZERO,
            health: Health::default(),
            unanswered: None,
        }
    }

    /// The generator's workers are pinned to so many cores, round-robin.
    pub(crate) fn pinned_to(&mut self, cores: usize) {
        self.health = Health::pinned_to(cores);
    }

    /// The generator's workers are remote, each on a core of its own.
    pub(crate) fn workers_at(&mut self, generators: &LoadGenerators) {
        self.generators = Some(generators.clone());
    }

    /// Reads another machine's counters from this scraper.
    pub(crate) fn scrape(&mut self, scraper: Scraper) {
        self.scraper = Some(scraper);
    }

    /// A sentence about missing counters.
    pub(crate) fn missed_by_exporter(&self) -> Option<Warning> {
        self.scraper.as_ref()?.missed()
    }

    /// Names of the counters.
    pub(crate) fn columns(&self) -> &[String] {
        &self.names
    }

    /// The sampling interval of counters, and its end.
    pub(crate) fn schedule(&self) -> (Duration, Duration) {
        (self.every, self.end_at)
    }

    /// Adds the names of remote counters, by host; none without remote hosts.
    pub(crate) fn counted_there(&mut self, machines: Vec<Vec<String>>) {
        let there = machines.iter().map(|names| RemoteCounters {
            count: names.len(),
            rows: VecDeque::new(),
        });
        self.there = there.collect();
        let columns = machines.concat();
        let own = self.monitor.columns();
        self.left_out = own.iter().filter(|name| columns.contains(name)).count();
        let left = own[self.left_out..].iter().cloned();
        self.names = columns.into_iter().chain(left).collect();
        self.columns = Columns::of(&self.names);
    }

    /// Adds the rows of remote counters, by host: they belong to the row of the same time.
    pub(crate) fn came(
        &mut self,
        machines: Vec<Vec<Row>>,
        writer: &mut TrialWriter,
    ) -> Result<(), ArchiveError> {
        for (there, rows) in self.there.iter_mut().zip(machines) {
            there.rows.extend(rows);
        }
        self.join(writer)
    }

    /// The largest distance of two readings for the same time: both may be delayed, and more than half an interval
    /// would belong to the next row.
    fn near(&self) -> Duration {
        self.every / 4 * 3
    }

    /// Writes the local and the remote counters of the same time, once both are known.
    fn join(&mut self, writer: &mut TrialWriter) -> Result<(), ArchiveError> {
        let Some((at, own)) = self.pending.take() else {
            return Ok(());
        };
        let near = self.near();
        let mut all = true;
        for there in &mut self.there {
            all &= there.has(at, near);
        }
        if !all {
            self.pending = Some((at, own));
            return Ok(());
        }
        self.write(at, own, writer)
    }

    /// Writes the rows that wait for remote counters, with those that have arrived.
    pub(crate) fn flush(&mut self, writer: &mut TrialWriter) -> Result<(), ArchiveError> {
        match self.pending.take() {
            Some((at, own)) => self.write(at, own, writer),
            None => Ok(()),
        }
    }

    fn write(
        &mut self,
        at: Duration,
        own: Vec<Option<f64>>,
        writer: &mut TrialWriter,
    ) -> Result<(), ArchiveError> {
        let near = self.near();
        let there = self.there.iter_mut();
        let mut row: Vec<Option<f64>> = there.flat_map(|there| there.take(at, near)).collect();
        row.extend(own);
        self.peaks.add(&self.columns, self.files_before, &row);
        if let Some(rss_mb) = self.columns.resident.and_then(|column| row[column]) {
            self.health.resident(rss_mb);
        }
        writer.monitor_row(record::ms(at), &row)
    }

    /// Time to the next due work, at most [`EVENT_WAIT`].
    pub(crate) fn wait(&self, now: Duration) -> Duration {
        let next = self.sample_at.min(self.report_at);
        let next = if self.holding {
            next
        } else {
            next.min(self.hold_at)
        };
        next.saturating_sub(now).min(EVENT_WAIT)
    }

    /// Does the work due at `now`.
    pub(crate) fn due(
        &mut self,
        now: Duration,
        writer: &mut TrialWriter,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), ArchiveError> {
        if !self.holding && now >= self.hold_at {
            self.holding = true;
            self.health
                .nice(self.threads.first().copied().and_then(nice));
            self.read_health(now);
            events(Event::Phase(Phase::Hold));
        }
        if now > self.end_at {
            self.sample_at = Duration::MAX;
        } else if now >= self.sample_at {
            self.sample(now, writer)?;
            self.sample_at = next_due(self.sample_at, self.every, now, self.end_at);
        }
        if now >= self.report_at {
            events(Event::Progress(self.rolling.figures(now)));
            self.report_at = next_due(self.report_at, TELL, now, Duration::MAX);
        }
        Ok(())
    }

    fn sample(&mut self, now: Duration, writer: &mut TrialWriter) -> Result<(), ArchiveError> {
        if let Some(scraper) = &mut self.scraper {
            scraper.take(|at, answer| {
                let taken = self.monitor.take_remote(at, answer);
                taken.map_err(|error| error.to_string())
            });
        }
        let own = self.monitor.sample(now).split_off(self.left_out);
        if self.holding {
            self.read_health(now);
        }
        self.flush(writer)?;
        self.pending = Some((now, own));
        self.join(writer)
    }

    fn read_health(&mut self, now: Duration) {
        if let Some(generators) = &self.generators {
            let seen = generators.seen();
            let rss_kb: u64 = seen.iter().map(|one| one.rss_kb).sum();
            self.health.resident(rss_kb as f64 / 1024.0);
            return self.health.add(now, generators::times(&seen));
        }
        let times = self.threads.iter().map(|tid| thread_times(*tid)).collect();
        self.health.add(now, times);
    }

    /// Adds a window.
    pub(crate) fn window(
        &mut self,
        window: &Window,
        writer: &mut TrialWriter,
    ) -> Result<(), ArchiveError> {
        self.rolling.add(window, self.steps);
        self.last_end = window.end;
        self.unanswered = record::unanswered(window);
        record::write(writer, window)
    }

    /// The number of failed requests, if for so long there was no success that none will follow.
    pub(crate) fn nothing_but_errors(&self) -> Option<u64> {
        let errors = self.rolling.errors();
        let is_hopeless = self.rolling.transactions() == 0
            && errors >= HOPELESS_ERRORS
            && self.last_end >= HOPELESS_AFTER;
        is_hopeless.then_some(errors)
    }

    pub(crate) fn finish(self) -> Measured {
        Measured {
            transactions: self.rolling.transactions(),
            errors: self.rolling.errors(),
            sessions: self.rolling.sessions(),
            elapsed: self.last_end,
            health: self.health,
            unanswered: self.unanswered,
            peaks: self.peaks.with_files(&self.monitor),
        }
    }
}

fn sample_interval(hold: Duration) -> Duration {
    (hold / SAMPLES_PER_HOLD).clamp(SAMPLE_AT_LEAST, SAMPLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn counters_are_sampled_sixty_times_a_hold_or_every_second() {
        assert_eq!(sample_interval(ms(48_000)), ms(800));
        assert_eq!(sample_interval(ms(2_880_000)), ms(1000));
        assert_eq!(sample_interval(ms(100)), ms(20));
    }

    #[test]
    fn peaks_are_the_most_at_any_sample_and_gaps_are_none() {
        let columns = Columns {
            resident: None,
            generator_files: Some(0),
            time_wait: Some(1),
        };
        let mut peaks = Peaks::default();
        for row in [
            [Some(110.0), Some(5.0)],
            [Some(90.0), Some(50.0)],
            [None, Some(500.0)],
        ] {
            peaks.add(&columns, 10.0, &row);
        }
        assert_eq!(peaks.ports, Some(130.0));
    }
}
