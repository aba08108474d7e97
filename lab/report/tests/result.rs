//! `result.json` matches its schema, `docs/result.schema.json`: no more keys, none that is never filled, and the
//! numbers as they were computed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use lab_analysis::Analysis;
use lab_archive::{Clocks, OtherProgram, TrialEnd, TrialEnvironment};
use lab_history::Recorded;
use lab_report::write::{json, result_schema};
use serde_json::Value;

use crate::support::{Made, Shape, WORKLOAD};
use crate::{
    answers, counted, cpu, formats, line, parts, populations, profiles, search, stages, transfer,
    unmeasured, waits,
};

/// Definitions, and keys of definitions, that need no example: those of agents, remote hosts, HTTP/2, retries,
/// operations cut at a time limit, safe lines, repeated trials, signed requests, scripts, and comparisons of several runs.
const WITHOUT_EXAMPLE: &[&str] = &[
    ".load_line_differences",
    "AsIs",
    "Bound",
    "Comparison.run_spread",
    "Connections",
    "Demand.not_compared",
    "Duet.elsewhere",
    "Duet.stayed",
    "DuetRecord",
    "ErrorExample.trace",
    "Generator.nice",
    "LineDifference",
    "LoadLine.ceiling",
    "LoadLine.safe",
    "PartCounters",
    "PopulationAnalysis.after_ms",
    "PopulationAnalysis.arrivals_per_s",
    "PopulationSummary.after_ms",
    "PopulationSummary.arrivals_per_s",
    "ProfileDifference.common",
    "PublishedTable.as_is",
    "RunSpread",
    "SafeLine",
    "StepAnalysis.bound",
    "StepAnalysis.phases_ms",
    "StepAnalysis.plain_body_bytes",
    "StepAnalysis.retries",
    "StepSummary.bound",
    "StepSummary.phases_ms",
    "StudyFacts.decides",
    "StudyFacts.limits_set",
    "StudyFacts.unseeded_steps",
    "Summary.aborted",
    "Summary.disturbed",
    "Summary.repeats",
    "ThresholdResult.beyond",
    "TrialAnalysis.aborted",
    "TrialAnalysis.attempt_of",
    "TrialAnalysis.connections",
    "TrialAnalysis.not_counted",
    "TrialAnalysis.parts",
    "TrialAnalysis.repeated_by",
    "TrialAnalysis.test_failed",
];

/// Requests that fail, listen for events, begin traces, and measure numbers in responses.
fn eventful() -> Made {
    let shape = Shape {
        events: true,
        traced: true,
        fails_every: 10,
        queued: Some(12_500),
        loop_lag_us: Some(200),
        probe: Some((5_000, 7)),
        ..Shape::default()
    };
    Made {
        workload: WORKLOAD.replace(
            "request: POST /login",
            "request: POST /login\n      events: { count: 2 }",
        ) + "probe: { every: 1s, request: GET /health }\n",
        ..Made::both(&shape)
    }
}

/// Users from one up, at enough levels for the scalability law.
fn levels() -> Made {
    let users = "[1, 2, 5, 10, 20, 40, 80]".to_owned();
    Made {
        overrides: vec![("matrix.users".to_owned(), users)],
        shapes: vec![Shape::default(); 7],
        ..Made::default()
    }
}

/// Pairs of trials at the same time, beside other programs. One lacks a side.
fn duet() -> Made {
    let study = "study: tiny\ntitle: Two variants at once\nworkload: tiny\n\
                 variants: { a: { groupware: { http_threads: 2 } }, b: { groupware: { http_threads: 3 } } }\n\
                 load: { users: 100, ramp: 6s, hold: 4 cycles }\ntrials: 9\nduet: true\n";
    let shape = Shape {
        circumstances: TrialEnvironment {
            clocks: Some(Clocks {
                wall_start_ms: 0,
                wall_end_ms: 30_000,
                monotonic_ms: 30_000.0,
            }),
            others_during: vec![OtherProgram {
                name: "rustc".to_owned(),
                cpu_percent: 100.0,
            }],
            ..TrialEnvironment::default()
        },
        ..Shape::default()
    };
    let mut shapes = vec![shape; 18];
    shapes[2].end = TrialEnd::AgentLost {
        message: "it stopped answering".to_owned(),
    };
    Made {
        study: study.to_owned(),
        shapes,
        ..Made::default()
    }
}

static EXAMPLES: LazyLock<Vec<Analysis>> = LazyLock::new(examples);

fn examples() -> Vec<Analysis> {
    let mut examples: Vec<Analysis> = [
        Made::default(),
        formats::calendar(),
        formats::factors(),
        line::one(&line::TRIED),
        formats::sequence(),
        formats::arrivals(),
        populations::made(),
        stages::made(stages::STEPS),
        parts::tagged(),
        parts::transacted([10, 1, 1]),
        parts::numbered(),
        unmeasured::spoiled(6, 2, 1.1),
        answers::made(answers::VARIANTS, 6, 1.2, 0.01),
        answers::decided_by("response_time{step:Write}.p90", 8),
        duet(),
        eventful(),
        levels(),
    ]
    .iter()
    .map(Made::analysis)
    .collect();
    examples.extend(search::made().iter().map(Made::analysis));
    examples.extend([
        cpu::analysis(),
        profiles::analysis(),
        transfer::analysis(true),
        line::variants(0.8),
        parts::queued(),
        waits::analysis(),
        waits::few(),
    ]);
    examples.extend(counted::analyses());
    examples
}

/// A schema without additional keys.
fn closed(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(of) => {
            for value in of.values_mut() {
                *value = closed(value.take());
            }
            if of.contains_key("properties") {
                of.entry("additionalProperties")
                    .or_insert(Value::Bool(false));
            }
        }
        Value::Array(of) => of
            .iter_mut()
            .for_each(|value| *value = closed(value.take())),
        _ => {}
    }
    schema
}

/// Keys of objects by the name of the definition that describes them.
type Keys = BTreeMap<String, BTreeSet<String>>;

/// The keys that the definitions of a schema list.
fn documented(schema: &Value) -> Keys {
    let own = |schema: &Value| {
        let keys = schema["properties"]
            .as_object()
            .map(|of| of.keys().cloned());
        keys.into_iter().flatten().collect()
    };
    let definitions = schema["$defs"].as_object().into_iter().flatten();
    let mut keys: Keys = definitions
        .map(|(name, of)| (name.clone(), own(of)))
        .collect();
    keys.insert(String::new(), own(schema));
    keys
}

/// Adds the keys of a value, which `schema` describes within the definition `name`.
fn collect(root: &Value, schema: &Value, name: &str, value: &Value, found: &mut Keys) {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|to| to.strip_prefix("#/$defs/"))
    {
        return collect(root, &root["$defs"][name], name, value, found);
    }
    for branch in schema["anyOf"].as_array().into_iter().flatten() {
        collect(root, branch, name, value, found);
    }
    match value {
        Value::Object(of) => {
            for (key, value) in of {
                if schema["properties"].get(key).is_some() {
                    found
                        .entry(name.to_owned())
                        .or_default()
                        .insert(key.clone());
                    collect(root, &schema["properties"][key], name, value, found);
                } else {
                    collect(root, &schema["additionalProperties"], name, value, found);
                }
            }
        }
        Value::Array(of) => {
            for value in of {
                collect(root, &schema["items"], name, value, found);
            }
        }
        _ => {}
    }
}

#[test]
fn the_schema_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/result.schema.json");
    let text = format!("{:#}\n", result_schema());
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let on_disk = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        on_disk == text,
        "docs/result.schema.json is out of date: run the tests with UPDATE_SCHEMAS=1"
    );
}

#[test]
fn every_result_has_the_keys_of_the_schema() {
    let schema = result_schema();
    let validator = jsonschema::validator_for(&closed(schema.clone())).expect("a schema");
    let mut found = Keys::new();
    for analysis in EXAMPLES.iter() {
        let text = json(analysis).expect("JSON");
        let result: Value = serde_json::from_str(&text).expect("JSON");
        let errors: Vec<String> = validator
            .iter_errors(&result)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", analysis.study.title);
        collect(&schema, &schema, "", &result, &mut found);
    }
    let mut missing = Vec::new();
    for (name, keys) in documented(&schema) {
        let found = found.remove(&name).unwrap_or_default();
        let of = keys.difference(&found).map(|key| format!("{name}.{key}"));
        missing.extend(of.filter(|_| !WITHOUT_EXAMPLE.contains(&name.as_str())));
    }
    missing.retain(|key| !WITHOUT_EXAMPLE.contains(&key.as_str()));
    assert!(
        missing.is_empty(),
        "no example has these keys: {missing:#?}"
    );
}

#[test]
fn numbers_are_read_back_as_they_were() {
    for analysis in EXAMPLES.iter() {
        let text = json(analysis).expect("JSON");
        let result: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(result, serde_json::to_value(analysis).expect("JSON"));
        let trial = &analysis.trials[0];
        let read = |key: &str| &result["trials"][0][key];
        assert_eq!(read("transactions").as_u64(), Some(trial.transactions));
        assert_eq!(read("response_ms")["mean"].as_f64(), trial.response_ms.mean);
        let recorded = Recorded::new("run".to_owned(), text.as_bytes()).expect("a result");
        assert_eq!(recorded.study(), analysis.study.name);
        assert!(recorded.mentions(&analysis.headline));
    }
}

#[test]
fn a_key_that_is_not_in_the_schema_is_found() {
    let validator = jsonschema::validator_for(&closed(result_schema())).expect("a schema");
    let text = json(&Made::default().analysis()).expect("JSON");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert!(validator.is_valid(&result));
    let mut unknown = result.clone();
    unknown["trials"][0]["steps"][0]["another"] = Value::from(1);
    assert!(!validator.is_valid(&unknown));
    let mut lacks = result;
    let trial = lacks["trials"][0].as_object_mut().expect("a trial");
    trial.remove("throughput_per_s");
    assert!(!validator.is_valid(&lacks));
}
