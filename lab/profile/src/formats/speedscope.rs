//! The file format of speedscope (<https://www.speedscope.app/file-format-schema.json>).

use serde::Serialize;

use super::{Stacks, stacks};
use crate::model::Profile;

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: &'static str,
    shared: Shared<'a>,
    profiles: Vec<Sampled>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
}

/// The stacks of a group of threads.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// The profile as JSON for speedscope: a profile for each group of threads, weighted with CPU time.
///
/// # Errors
/// None in practice: every value has a JSON form.
pub fn speedscope(profile: &Profile, title: &str) -> serde_json::Result<String> {
    let frames = profile.functions.iter().map(|function| Frame {
        name: &function.name,
        file: &function.file,
    });
    serde_json::to_string(&File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        name: title,
        exporter: "plimsoll",
        shared: Shared {
            frames: frames.collect(),
        },
        profiles: stacks(profile).into_iter().map(sampled).collect(),
    })
}

fn sampled((name, stacks): (String, Stacks)) -> Sampled {
    let weights: Vec<u64> = stacks.values().map(|weight| weight.ns).collect();
    Sampled {
        kind: "sampled",
        name,
        unit: "nanoseconds",
        start_value: 0,
        end_value: weights
            .iter()
            .fold(0, |sum: u64, ns| sum.saturating_add(*ns)),
        samples: stacks.into_keys().collect(),
        weights,
    }
}
