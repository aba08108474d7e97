//! The part of a load that a figure covers.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// The part of a trial's load that a figure covers.
///
/// In serialized form six optional members, of which at most one is set: `step`, `stage`, `population`, `tag`,
/// `transaction`, `measure`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Members", into = "Members")]
pub enum Scope {
    /// All of it, without the probe.
    #[default]
    All,
    /// One step.
    Step(String),
    /// One stage of the load.
    Stage(String),
    /// The users of one population.
    Population(String),
    /// All steps with this tag.
    Tag(String),
    /// The transactions of this name.
    Transaction(String),
    /// The numbers of the measure of this name.
    Measure(String),
}

impl Scope {
    /// The kind of the scope and its name: `("step", "Log in")`; `None` for all.
    #[must_use]
    pub fn named(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::All => None,
            Self::Step(name) => Some(("step", name)),
            Self::Stage(name) => Some(("stage", name)),
            Self::Population(name) => Some(("population", name)),
            Self::Tag(name) => Some(("tag", name)),
            Self::Transaction(name) => Some(("transaction", name)),
            Self::Measure(name) => Some(("measure", name)),
        }
    }

    /// Text after the whole: ` in “Log in”`, ` of population “readers”`; empty for all.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::All => String::new(),
            Self::Step(step) => format!(" in “{step}”"),
            Self::Stage(stage) => format!(" in stage “{stage}”"),
            Self::Population(population) => format!(" of population “{population}”"),
            Self::Tag(tag) => format!(" of steps tagged “{tag}”"),
            Self::Transaction(name) => format!(" of transaction “{name}”"),
            Self::Measure(name) => format!(" of “{name}”"),
        }
    }

    /// The step, if it is one.
    #[must_use]
    pub fn step(&self) -> Option<&str> {
        match self {
            Self::Step(name) => Some(name),
            Self::All
            | Self::Stage(_)
            | Self::Population(_)
            | Self::Tag(_)
            | Self::Transaction(_)
            | Self::Measure(_) => None,
        }
    }
}

impl JsonSchema for Scope {
    fn schema_name() -> Cow<'static, str> {
        "Scope".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Members::json_schema(generator)
    }
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Members {
    #[serde(default)]
    step: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    population: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transaction: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measure: Option<String>,
}

impl From<Members> for Scope {
    fn from(members: Members) -> Self {
        let Members {
            step,
            stage,
            population,
            tag,
            transaction,
            measure,
        } = members;
        let step = step.map(Self::Step);
        let stage = stage.map(Self::Stage);
        let population = population.map(Self::Population);
        let of = step.or(stage).or(population);
        let of = of.or(tag.map(Self::Tag));
        let of = of.or(transaction.map(Self::Transaction));
        of.or(measure.map(Self::Measure)).unwrap_or_default()
    }
}

impl From<Scope> for Members {
    fn from(scope: Scope) -> Self {
        let mut members = Self::default();
        match scope {
            Scope::All => {}
            Scope::Step(name) => members.step = Some(name),
            Scope::Stage(name) => members.stage = Some(name),
            Scope::Population(name) => members.population = Some(name),
            Scope::Tag(name) => members.tag = Some(name),
            Scope::Transaction(name) => members.transaction = Some(name),
            Scope::Measure(name) => members.measure = Some(name),
        }
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_the_member_that_it_names() {
        let forms = [
            (Scope::All, r#"{"step":null}"#),
            (Scope::Step("a".into()), r#"{"step":"a"}"#),
            (Scope::Stage("a".into()), r#"{"step":null,"stage":"a"}"#),
            (
                Scope::Population("a".into()),
                r#"{"step":null,"population":"a"}"#,
            ),
            (Scope::Tag("a".into()), r#"{"step":null,"tag":"a"}"#),
            (
                Scope::Transaction("a".into()),
                r#"{"step":null,"transaction":"a"}"#,
            ),
            (Scope::Measure("a".into()), r#"{"step":null,"measure":"a"}"#),
        ];
        for (scope, json) in forms {
            assert_eq!(serde_json::to_string(&scope).unwrap(), json);
            assert_eq!(serde_json::from_str::<Scope>(json).unwrap(), scope);
        }
        assert_eq!(serde_json::from_str::<Scope>("{}").unwrap(), Scope::All);
    }
}
