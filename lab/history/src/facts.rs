//! The fields of a `result.json` (schema `plimsoll.result/1`) that a history needs; all others are ignored.

use std::collections::BTreeMap;

use lab_analysis::model::{Decision, Estimate, Measure, Outcome, TimesSummary};
use lab_analysis::sample::{CellSample, Consumer, Counts, Side};
use lab_archive::model::Environment;
use lab_plan::Decides;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A run, from its result.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The name of its archive.
    pub(crate) folder: String,
    pub(crate) result: Facts,
}

impl Recorded {
    /// Parses the bytes of `result.json` in the archive `folder`.
    ///
    /// # Errors
    /// Those of JSON: truncated text, or the output of another version.
    pub fn new(folder: String, result: &[u8]) -> Result<Self, serde_json::Error> {
        let result = serde_json::from_slice(result)?;
        Ok(Self { folder, result })
    }

    /// The name of its study.
    #[must_use]
    pub fn study(&self) -> &str {
        &self.result.study.name
    }

    /// Returns true if a searched text occurs in names, title, verdict sentence, cells, overrides, machine, or version.
    /// Case is ignored.
    #[must_use]
    pub fn mentions(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let (study, machine) = (&self.result.study, &self.result.environment);
        let overrides = study
            .overrides
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        let cells = self.result.cells.iter().map(|cell| cell.label.clone());
        let words = [
            &self.folder,
            &study.name,
            &study.title,
            &study.started,
            &self.result.headline,
            &machine.cpu,
            &machine.kernel,
            &machine.os,
            &machine.plimsoll_version,
        ];
        let mut all = words.into_iter().cloned().chain(overrides).chain(cells);
        all.any(|word| word.to_lowercase().contains(&text))
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Facts {
    pub(crate) study: Study,
    pub(crate) environment: Environment,
    pub(crate) headline: String,
    pub(crate) answer: Option<Answer>,
    pub(crate) summary: Summary,
    #[serde(default)]
    pub(crate) reasons: Vec<Reason>,
    pub(crate) cells: Vec<Cell>,
    #[serde(default)]
    pub(crate) samples: Vec<CellSample>,
    #[serde(default)]
    pub(crate) comparisons: Vec<Comparison>,
    #[serde(default)]
    pub(crate) load_lines: Vec<Line>,
    /// Present in results of a duet, of which only ratios are comparable between runs.
    pub(crate) duet: Option<IgnoredAny>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Study {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) file_sha256: Option<String>,
    pub(crate) speed: f64,
    pub(crate) started: String,
    pub(crate) overrides: Vec<(String, String)>,
    pub(crate) decides: Option<Decides>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Answer {
    pub(crate) decision: Decision,
    pub(crate) decided_by: Vec<Measure>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Summary {
    pub(crate) outcome: Outcome,
    pub(crate) planned: usize,
    pub(crate) complete: usize,
    pub(crate) valid: usize,
}

/// A check that did not pass.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Reason {
    pub(crate) check: String,
    pub(crate) outcome: String,
    pub(crate) evidence: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Cell {
    pub(crate) label: String,
    pub(crate) users: u32,
    pub(crate) throughput_per_s: Option<Estimate>,
    pub(crate) response_ms: TimesSummary,
    response_with_failures_ms: Option<TimesSummary>,
    #[serde(default)]
    deciding: Option<Estimate>,
    pub(crate) probe_ms: Option<TimesSummary>,
    #[serde(default)]
    pub(crate) system: BTreeMap<String, Option<f64>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Comparison {
    pub(crate) a: String,
    pub(crate) b: String,
    pub(crate) metric: Measure,
    pub(crate) ratio: f64,
    pub(crate) interval: Option<(f64, f64)>,
    #[serde(default)]
    pub(crate) decides: bool,
    pub(crate) p: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) users: Option<u32>,
    pub(crate) low: Option<u32>,
    pub(crate) high: Option<u32>,
}

impl Facts {
    /// Returns true if both runs have the same study file with the same settings.
    pub(crate) fn is_same_setup(&self, other: &Self) -> bool {
        let of = |facts: &Self| {
            let study = &facts.study;
            let speed = study.speed.to_bits();
            (study.file_sha256.clone(), study.overrides.clone(), speed)
        };
        of(self) == of(other)
    }

    /// A measure of a cell; `None` if trials are missing whose figures would have differed: the others don't represent
    /// the build.
    pub(crate) fn value(&self, label: &str, measure: Measure) -> Option<Estimate> {
        let cell = self.cells.iter().find(|cell| cell.label == label)?;
        // A cell keeps one figure with parts: that of the measure that its own study names.
        let is_other = match measure {
            Measure::Named(named) => self.study.decides != Some(Decides::Named(named)),
            _ => false,
        };
        let value = cell.value(measure).filter(|_| !is_other);
        value.filter(|_| self.is_complete(label))
    }

    /// The ratio of a cell's measure to that of its baseline in a duet; `None` if trials of either are missing whose
    /// figures would have differed.
    pub(crate) fn ratio(&self, label: &str, measure: Measure) -> Option<Estimate> {
        let mut comparisons = self.comparisons.iter();
        let one = comparisons.find(|one| one.b == label && one.metric == measure)?;
        let bound = |of: fn((f64, f64)) -> f64| one.interval.map(of);
        let complete = self.is_complete(&one.a) && self.is_complete(&one.b);
        complete.then(|| Estimate {
            mean: one.ratio,
            low: bound(|(low, _)| low),
            high: bound(|(_, high)| high),
        })
    }

    /// Returns true if the valid trials of a cell represent the build.
    fn is_complete(&self, label: &str) -> bool {
        let sample = self.samples.iter().find(|one| one.label == label);
        let counts = sample.map(|one| one.counts(Side::Candidate, Consumer::History));
        match counts {
            None | Some(Counts::Included | Counts::Repeat) => true,
            Some(Counts::NoAnswer | Counts::Worse) => false,
        }
    }

    /// The measures that decide: those of the answer, else the one that the study names, else the defaults.
    pub(crate) fn measures(&self) -> Vec<Measure> {
        match (&self.answer, self.study.decides) {
            (Some(answer), _) if !answer.decided_by.is_empty() => answer.decided_by.clone(),
            (_, Some(named)) => vec![named.into()],
            _ => Measure::DECIDING.to_vec(),
        }
    }
}

impl Cell {
    /// A measure's mean over the trials; `None` if a cell has none.
    pub(crate) fn value(&self, measure: Measure) -> Option<Estimate> {
        let counter = |name: &str| {
            let mean = self.system.get(name).copied().flatten()?;
            let (low, high) = (None, None);
            Some(Estimate { mean, low, high })
        };
        // Response times exclude failed requests.
        let times = self.response_with_failures_ms.unwrap_or(self.response_ms);
        match measure {
            Measure::Throughput => self.throughput_per_s,
            Measure::Mean => times.mean,
            Measure::P50 => times.p50,
            Measure::P95 => times.p95,
            Measure::P99 => times.p99,
            Measure::Named(_) => self.deciding,
            Measure::Probe => self.probe_ms?.mean,
            Measure::Cpu => counter("cpu_ms_per_transaction"),
            Measure::Memory => counter("rss_mb_max"),
            Measure::Transfer | Measure::ErrorRate | Measure::Timeouts | Measure::Resends => None,
        }
    }
}
