//! Measures with parts: `response_time{step:Log in}.p99.9`, `error_rate{population:readers}`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use lab_counts::{Aggregate, Metric, Scope};
use serde::{Deserialize, Serialize};

/// A metric of a part of the load, or a quantile beside the usual ones.
///
/// Copies refer to one text, which lives as long as the program: a program reads few of them.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub struct Named(&'static Parts);

struct Parts {
    metric: Metric,
    scope: Scope,
    aggregate: Aggregate,
    text: String,
    words: String,
}

/// All that were read, by text.
static READ: Mutex<BTreeMap<String, Named>> = Mutex::new(BTreeMap::new());

impl Named {
    /// One of each form.
    pub const EXAMPLES: [&'static str; 5] = [
        "response_time.p99.9",
        "response_time{step:Log in}.p50",
        "service_time{tag:checkout}.mean",
        "error_rate{population:readers}",
        "transaction_time{transaction:Checkout}.p95",
    ];

    /// What a key of a study and an argument may be, as a regular expression.
    pub const PATTERN: &'static str = r"^(response_time|service_time|first_event|between_events|transaction_time|transaction_elapsed|error_rate|throughput)(\{(step|stage|population|tag|transaction):[^}]+\})?(\.(mean|p[0-9]+(\.[0-9]+)?))?$";

    /// Reads `metric{scope}.figure`; `None` of anything else. A rate has no figure of its own: `error_rate{step:Log in}`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.get(text) {
            return Some(*known);
        }
        let parts: &'static Parts = Box::leak(Box::new(Parts::parse(text)?));
        let named = Self(parts);
        read.insert(text.to_owned(), named);
        Some(named)
    }

    /// As written.
    #[must_use]
    pub fn text(self) -> &'static str {
        &self.0.text
    }

    /// In words: `p50 response in “Log in”`.
    #[must_use]
    pub fn words(self) -> &'static str {
        &self.0.words
    }

    /// What it measures.
    #[must_use]
    pub fn metric(self) -> Metric {
        self.0.metric
    }

    /// The part of the load that it is about.
    #[must_use]
    pub fn scope(self) -> &'static Scope {
        &self.0.scope
    }

    /// Which figure of the metric.
    #[must_use]
    pub fn aggregate(self) -> Aggregate {
        self.0.aggregate
    }
}

impl Parts {
    fn parse(text: &str) -> Option<Self> {
        let end = text.find(['{', '.']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        // Resends are counted for all steps together, and are a measure of their own; numbers in responses decide nothing.
        let metric = Metric::named(name)?;
        if matches!(metric, Metric::Resends | Metric::Measure) {
            return None;
        }
        let (scope, figure) = match rest.strip_prefix('{') {
            Some(inside) => {
                let (inside, figure) = inside.rsplit_once('}')?;
                (scope(inside)?, figure)
            }
            None => (Scope::All, rest),
        };
        let aggregate = aggregate(metric, figure)?;
        let fits = match &scope {
            Scope::Transaction(_) => metric.suits_transactions(),
            Scope::Step(_) => !metric.is_of_transactions(),
            _ => !metric.is_of_transactions() && !is_of_events(metric),
        };
        fits.then(|| Self {
            words: format!("{}{}", words(metric, aggregate), scope.words()),
            metric,
            scope,
            aggregate,
            text: text.to_owned(),
        })
    }
}

fn is_of_events(metric: Metric) -> bool {
    matches!(metric, Metric::FirstEvent | Metric::BetweenEvents)
}

fn scope(inside: &str) -> Option<Scope> {
    let (kind, name) = inside.split_once(':')?;
    let name = name.trim().to_owned();
    match kind.trim() {
        _ if name.is_empty() => None,
        "step" => Some(Scope::Step(name)),
        "stage" => Some(Scope::Stage(name)),
        "population" => Some(Scope::Population(name)),
        "tag" => Some(Scope::Tag(name)),
        "transaction" => Some(Scope::Transaction(name)),
        _ => None,
    }
}

/// The figure behind the scope: `.mean`, `.p99.9`; none of a rate.
fn aggregate(metric: Metric, figure: &str) -> Option<Aggregate> {
    if !metric.is_time() {
        return figure.is_empty().then_some(Aggregate::Rate);
    }
    let figure = figure.strip_prefix('.')?;
    if figure == "mean" {
        return Some(Aggregate::Mean);
    }
    let digits = figure.strip_prefix('p')?;
    let is_number = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let percent: f64 = digits.parse().ok().filter(|_| is_number)?;
    (percent > 0.0 && percent < 100.0).then_some(Aggregate::Percentile(percent))
}

fn words(metric: Metric, aggregate: Aggregate) -> String {
    let figure = match aggregate {
        Aggregate::Percentile(percent) => format!("p{percent} "),
        Aggregate::Mean => "mean ".to_owned(),
        _ => String::new(),
    };
    let metric = match metric {
        Metric::ResponseTime => "response",
        Metric::ServiceTime => "service time",
        Metric::FirstEvent => "time to the first event",
        Metric::BetweenEvents => "time between events",
        Metric::TransactionTime => "time",
        Metric::TransactionElapsed => "elapsed time",
        Metric::ErrorRate => "error rate",
        Metric::Resends => "resends",
        Metric::Throughput => "throughput",
        Metric::Measure => "number",
    };
    format!("{figure}{metric}")
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Named {}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().fmt(f)
    }
}

impl From<Named> for &'static str {
    fn from(named: Named) -> Self {
        named.text()
    }
}

impl TryFrom<String> for Named {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("no measure has this name")
    }
}

impl schemars::JsonSchema for Named {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Named".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": Self::PATTERN })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read() {
        let named = Named::parse("response_time{step:a.b}c}.p99.9").unwrap();
        assert_eq!(named.scope(), &Scope::Step("a.b}c".into()));
        assert_eq!(named.aggregate(), Aggregate::Percentile(99.9));
        assert_eq!(named.words(), "p99.9 response in “a.b}c”");
        let rate = Named::parse("error_rate{tag:pay}").unwrap();
        assert_eq!(rate.words(), "error rate of steps tagged “pay”");
        for wrong in [
            "",
            "response_time",
            "response_time{step:a}",
            "response_time{step:}.p50",
            "response_time{user:a}.p50",
            "response_time{step:a.p50",
            "response_time.p100",
            "response_time.p0",
            "response_time.pinf",
            "response_time.p1e1",
            "error_rate{step:a}.p50",
            "first_event.p50",
            "transaction_time.p50",
            "transaction_time{step:a}.p50",
            "response_time{transaction:a}.p50",
            "cpu.p50",
        ] {
            assert_eq!(Named::parse(wrong), None, "{wrong}");
        }
    }
}
