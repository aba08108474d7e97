//! The answers to one ask over a trial, within bounds.

use std::collections::HashMap;
use std::time::Duration;

use crate::how::{How, kept_every};
use crate::read::{MOST_READ, Reading, read};
use crate::series::Series;

/// Longest wait for an answer.
pub const WITHIN: Duration = Duration::from_secs(1);
/// Largest answer.
pub const MOST_ANSWER_BYTES: usize = 4 << 20;
/// Most counters of an ask that are kept: the ones with the largest change.
pub(crate) const MOST_SERIES: usize = 2_000;
/// Most values that are kept of an ask.
const MOST_VALUES: usize = 500_000;
/// Most counters that are followed during a trial.
const MOST_FOLLOWED: usize = MOST_READ;
/// The maximum number of recorded reasons for missing answers.
const MOST_PROBLEMS: usize = 100;
/// With at most this many answers, counters are dropped instead of answers to save space.
const FEW_ANSWERS: usize = 8;
/// A row counts for at most this many times the usual time between two answers.
const MOST_PERIODS: f64 = 2.0;

/// One answer, or the reason for its absence.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// On the trial's clock.
    pub t_ms: f64,
    /// The value of each counter, `None` where it was not in the answer; or why there is no answer.
    pub values: Result<Vec<Option<f64>>, String>,
}

/// All answers to one ask in a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The name of the ask.
    pub name: String,
    /// The counters, with their units.
    pub series: Vec<(Series, Option<String>)>,
    /// Number of counters dropped because there were too many.
    pub left_out: u64,
    /// Number of queries.
    pub asked: u64,
    /// Number of missing answers.
    pub missed: u64,
    /// In order of time.
    pub answers: Vec<Answer>,
}

impl Recorded {
    /// Why the first missing answer is missing.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        let mut answers = self.answers.iter();
        answers.find_map(|answer| answer.values.as_ref().err().map(String::as_str))
    }

    /// Returns a warning if the system was asked and never answered.
    #[must_use]
    pub fn unanswered(&self) -> Option<String> {
        let problem = self.problem().unwrap_or("no answer came in time");
        (self.asked > 0 && self.missed == self.asked).then(|| {
            let name = &self.name;
            format!("The system did not say what it counts as `{name}`: {problem}.")
        })
    }

    /// Drops half of the answers, or half of the counters if few answers are left.
    pub(crate) fn shrink(&mut self) {
        if self.answers.len() > FEW_ANSWERS {
            return thin_to(self, self.answers.len() / 2);
        }
        let most = self.series.len() / 2;
        self.left_out += (self.series.len() - most) as u64;
        keep_largest(self, most);
    }
}

/// Records answers as they arrive.
#[derive(Debug)]
pub struct Recorder {
    how: How,
    every: Duration,
    recorded: Recorded,
    places: HashMap<Series, usize>,
    /// Number of counters beyond the maximum.
    unfollowed: u64,
    /// For states: the time that rows existed so far, and the time of the last answer.
    states: Vec<f64>,
    last: Option<Duration>,
    kept: Option<Duration>,
}

impl Recorder {
    /// For an ask of this name over a hold of this length.
    #[must_use]
    pub fn new(name: &str, how: How, hold: Duration) -> Self {
        Self {
            every: kept_every(hold),
            recorded: Recorded {
                name: name.to_owned(),
                series: Vec::new(),
                left_out: 0,
                asked: 0,
                missed: 0,
                answers: Vec::new(),
            },
            how,
            places: HashMap::new(),
            unfollowed: 0,
            states: Vec::new(),
            last: None,
            kept: None,
        }
    }

    /// Records an answer at the moment `at`, or the reason for its absence. `is_last` marks the last answer.
    pub fn take(&mut self, at: Duration, answer: Result<&str, String>, is_last: bool) {
        self.recorded.asked += 1;
        let reading = answer.and_then(|text| read(&self.how, text).map_err(|e| e.to_string()));
        match reading {
            Ok(reading) => self.take_reading(at, &reading, is_last),
            Err(problem) => {
                self.recorded.missed += 1;
                if self.recorded.missed as usize <= MOST_PROBLEMS {
                    self.push(at, Err(problem));
                }
            }
        }
    }

    fn take_reading(&mut self, at: Duration, reading: &Reading, is_last: bool) {
        let mut values = self.values(reading);
        if let Some(period) = self.how.rows_ms {
            values = self.add_states(at, &values, period as f64);
            // The sums are cumulative, so intermediate ones can be dropped without loss.
            let is_due = |kept: Duration| at.saturating_sub(kept) + self.period() / 2 >= self.every;
            if !is_last && !self.kept.is_none_or(is_due) {
                return;
            }
        }
        self.kept = Some(at);
        self.push(at, Ok(values));
    }

    fn period(&self) -> Duration {
        Duration::from_millis(self.how.rows_ms.unwrap_or_default())
    }

    fn push(&mut self, at: Duration, values: Result<Vec<Option<f64>>, String>) {
        let t_ms = at.as_secs_f64() * 1e3;
        self.recorded.answers.push(Answer { t_ms, values });
    }

    /// Returns the values in the order of `series`, to which new counters are appended.
    fn values(&mut self, reading: &Reading) -> Vec<Option<f64>> {
        let mut values = vec![None; self.recorded.series.len()];
        let mut unfollowed = reading.left_out;
        for (series, value) in &reading.values {
            if let Some(place) = self.places.get(series) {
                values[*place] = Some(*value);
            } else if values.len() < MOST_FOLLOWED {
                self.places.insert(series.clone(), values.len());
                let unit = match self.how.rows_ms {
                    Some(_) => Some("ms".to_owned()),
                    None => self.how.unit(&series.column),
                };
                self.recorded.series.push((series.clone(), unit));
                values.push(Some(*value));
            } else {
                unfollowed += 1;
            }
        }
        self.unfollowed = self.unfollowed.max(unfollowed);
        values
    }

    /// Returns the total time for which rows with each counter's labels existed. A row counts as the time since the
    /// previous answer.
    fn add_states(&mut self, at: Duration, rows: &[Option<f64>], period: f64) -> Vec<Option<f64>> {
        let since = self
            .last
            .map_or(0.0, |last| at.saturating_sub(last).as_secs_f64() * 1e3);
        let time = since.min(MOST_PERIODS * period);
        self.last = Some(at);
        self.states.resize(rows.len(), 0.0);
        for (sum, rows) in self.states.iter_mut().zip(rows) {
            *sum += rows.unwrap_or_default() * time;
        }
        self.states.iter().copied().map(Some).collect()
    }

    /// Returns the recorded data.
    #[must_use]
    pub fn finish(self) -> Recorded {
        let mut recorded = self.recorded;
        let all = recorded.series.len();
        // Counters that appeared later are missing in earlier answers.
        for values in recorded
            .answers
            .iter_mut()
            .filter_map(|one| one.values.as_mut().ok())
        {
            values.resize(all, None);
        }
        recorded.left_out = self.unfollowed;
        if all > MOST_SERIES {
            recorded.left_out += (all - MOST_SERIES) as u64;
            keep_largest(&mut recorded, MOST_SERIES);
        }
        thin(&mut recorded);
        recorded
    }
}

/// Keeps the counters with the largest changes, ranked within each column.
fn keep_largest(recorded: &mut Recorded, most: usize) {
    let changed = |place: usize| {
        let values = || {
            let answers = recorded.answers.iter();
            answers.filter_map(|one| one.values.as_ref().ok()?[place])
        };
        let first = values().next().unwrap_or_default();
        values().next_back().unwrap_or_default() - first
    };
    let mut by_column: HashMap<&str, Vec<(usize, f64)>> = HashMap::new();
    for (place, (series, _)) in recorded.series.iter().enumerate() {
        let column = by_column.entry(&series.column).or_default();
        column.push((place, changed(place).abs()));
    }
    let mut ranked: Vec<(usize, usize)> = Vec::new();
    for column in by_column.values_mut() {
        column.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let places = column.iter().map(|(place, _)| *place);
        ranked.extend(places.enumerate());
    }
    ranked.sort_unstable();
    let mut kept: Vec<usize> = ranked.iter().map(|(_, place)| *place).take(most).collect();
    kept.sort_unstable();
    recorded.series = kept
        .iter()
        .map(|place| recorded.series[*place].clone())
        .collect();
    for values in recorded
        .answers
        .iter_mut()
        .filter_map(|one| one.values.as_mut().ok())
    {
        *values = kept.iter().map(|place| values[*place]).collect();
    }
}

/// Drops answers evenly, except the first and the last, until the rest is small enough.
fn thin(recorded: &mut Recorded) {
    thin_to(
        recorded,
        (MOST_VALUES / recorded.series.len().max(1)).max(2),
    );
}

fn thin_to(recorded: &mut Recorded, most: usize) {
    let count = recorded.answers.len();
    if count <= most {
        return;
    }
    let step = count.div_ceil(most - 1);
    let mut at = 0;
    recorded.answers.retain(|_| {
        let is_kept = at % step == 0 || at + 1 == count;
        at += 1;
        is_kept
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::how::Read;

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn counters_are_read_as_often_as_the_hold_is_long() {
        for (hold, every) in [
            (60, 10_000),
            (600, 10_000),
            (30, 5_000),
            (1, 500),
            (10_000, 20_000),
        ] {
            assert_eq!(kept_every(seconds(hold)), Duration::from_millis(every));
        }
    }

    #[test]
    fn late_answers_are_gaps_and_new_counters_come_later() {
        let mut recorder = Recorder::new("db", How::of(Read::Lines), seconds(60));
        recorder.take(seconds(5), Ok("a: 1\n"), false);
        recorder.take(seconds(15), Err("no answer within 1 s".to_owned()), false);
        recorder.take(seconds(25), Ok("b: 2\na: 3\n"), true);
        let recorded = recorder.finish();
        assert_eq!((recorded.asked, recorded.missed), (3, 1));
        assert_eq!(recorded.problem(), Some("no answer within 1 s"));
        let values: Vec<_> = recorded
            .answers
            .iter()
            .map(|one| one.values.clone().ok())
            .collect();
        assert_eq!(
            values,
            [
                Some(vec![Some(1.0), None]),
                None,
                Some(vec![Some(3.0), Some(2.0)])
            ]
        );
    }

    #[test]
    fn states_count_for_the_time_between_answers() {
        let mut how = How::of(Read::Table);
        how.rows_ms = Some(1000);
        let mut recorder = Recorder::new("waits", how, seconds(60));
        for second in 0..=21 {
            let rows = if second % 2 == 0 {
                "event\nlock\nlock\n"
            } else {
                "event\nio\n"
            };
            // Two answers are missing.
            let answer = match second {
                4 | 5 => Err("late".to_owned()),
                _ => Ok(rows),
            };
            recorder.take(seconds(second), answer, second == 21);
        }
        let recorded = recorder.finish();
        let kept = recorded.answers.iter().filter(|one| one.values.is_ok());
        assert_eq!(kept.count(), 4);
        let last = recorded.answers.last().unwrap().values.clone().unwrap();
        let names: Vec<String> = recorded
            .series
            .iter()
            .map(|(series, _)| series.to_string())
            .collect();
        assert_eq!(names, ["time{event=\"lock\"}", "time{event=\"io\"}"]);
        // Even seconds 2 to 20 without 4; second 6 counts twice, not three times.
        assert_eq!(last, [Some(2.0 * 1000.0 * 10.0), Some(1000.0 * 10.0)]);
        assert_eq!(recorded.series[0].1.as_deref(), Some("ms"));
    }

    #[test]
    fn the_largest_counters_of_each_column_are_kept() {
        let table = |scale: usize| {
            let rows = (0..1500).map(|n| format!("q{n},{},{}\n", n * scale, n * scale * 1_000_000));
            format!("query,calls,bytes\n{}", rows.collect::<String>())
        };
        let mut recorder = Recorder::new("db", How::of(Read::Table), seconds(60));
        recorder.take(seconds(0), Ok(&table(1)), false);
        recorder.take(seconds(10), Ok(&table(2)), true);
        let recorded = recorder.finish();
        assert_eq!((recorded.series.len(), recorded.left_out), (2_000, 1_000));
        let of = |column: &str| {
            let series = recorded.series.iter();
            series.filter(|(series, _)| series.column == column).count()
        };
        assert_eq!((of("calls"), of("bytes")), (1_000, 1_000));
        assert!(
            recorded
                .series
                .iter()
                .any(|(series, _)| series.labels[0].1 == "q1499")
        );
    }

    #[test]
    fn many_answers_of_many_counters_are_thinned() {
        let text: String = (0..2_000).map(|n| format!("c{n}: 1\n")).collect();
        let mut recorder = Recorder::new("db", How::of(Read::Lines), seconds(10_000));
        for n in 0..500 {
            recorder.take(seconds(n * 20), Ok(&text), n == 499);
        }
        let recorded = recorder.finish();
        let answers = recorded.answers.len();
        assert!((125..=251).contains(&answers), "{answers}");
        assert!((recorded.answers.last().unwrap().t_ms - 9_980_000.0).abs() < 1e-9);
    }
}
