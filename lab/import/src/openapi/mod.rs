//! Descriptions of services (OpenAPI 3, and Swagger 2): each operation that can be called becomes a step.
//!
//! What makes something comes before what reads, changes, and removes it, and gives its id. Nothing is
//! changed or removed that the session didn't make itself.

mod example;
mod operation;
mod order;
mod refs;

use std::cell::Cell;

use serde_json::Value;

use crate::draft::{Draft, Step, Wait};
use crate::error::{ImportError, otherwise};
use crate::names::Names;
use crate::secret::Secrets;
use crate::{Imported, draft};
use order::Made;
use refs::Spec;

/// Largest description.
pub const MAX_BYTES: usize = 16 << 20;
/// Think time before a step; no description says any.
const WAIT: std::time::Duration = std::time::Duration::from_secs(2);

/// What of a description is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenApiOptions {
    /// The name of the workload.
    pub name: String,
    /// Where the description was fetched from, for a server that it names without host.
    pub from: Option<String>,
}

/// The workload that calls what a description lists.
///
/// # Errors
/// What is no description, exceeds a limit, or has nothing that can be called.
pub fn import(text: &str, options: &OpenApiOptions) -> Result<Imported, ImportError> {
    let root = parse(text)?;
    let spec = Spec::new(&root).map_err(|error| otherwise(text).unwrap_or(error))?;
    let mut said = Vec::new();
    let mut secrets = Secrets::default();
    let operations = operation::all(&spec, &mut said)?;
    let (server, prefix) = spec.server(options.from.as_deref());
    let mut names = Names::default();
    let mut made = Made::default();
    let mut steps = Vec::new();
    let mut parameters = Vec::new();
    let mut step_names = Names::default();
    for operation in order::ordered(operations, &mut said) {
        let mut maker = example::Maker {
            spec: &spec,
            secrets: &mut secrets,
            names: &mut names,
            parameters: &mut parameters,
            made: &mut made,
            said: &mut said,
            room: Cell::default(),
            is_cut: Cell::default(),
        };
        let Some((set, request)) = maker.request(&operation, &prefix) else {
            continue;
        };
        steps.push(Step {
            name: step_names.step(&operation.title()),
            wait: Wait::About(WAIT),
            set,
            requests: vec![request],
        });
    }
    if steps.is_empty() {
        return Err(ImportError::Nothing { said });
    }
    Ok(finish(
        options,
        (server, spec.title()),
        (steps, parameters, secrets),
        said,
    ))
}

fn finish(
    options: &OpenApiOptions,
    (server, title): (Option<String>, String),
    (steps, parameters, secrets): (Vec<Step>, Vec<(String, String)>, Secrets),
    said: Vec<String>,
) -> Imported {
    let asked = secrets.asked();
    let mut head = vec![
        format!("Imported by plimsoll from the description of {title}."),
        "One session calls each operation once, with the examples of the description. Leave out what your \
         users don't do, and give the rest the waits and shares that they have."
            .to_owned(),
    ];
    if !asked.is_empty() {
        head.push(format!(
            "A run needs these in its environment: {}",
            asked.join(", ")
        ));
    }
    let draft = draft::Draft {
        name: options.name.clone(),
        head,
        parameters,
        compressed: false,
        is_new_visitor: false,
        steps,
    };
    Imported {
        workload: Draft::write(&draft),
        server,
        asked,
        said,
    }
}

/// JSON, or else YAML.
fn parse(text: &str) -> Result<Value, ImportError> {
    let size = text.len();
    if size > MAX_BYTES {
        return Err(ImportError::TooLarge {
            size,
            most: MAX_BYTES,
        });
    }
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') {
        return Ok(serde_json::from_str(text)?);
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 64,
            flow_nesting_limit: 64,
            max_nodes: 1_000_000,
            max_events: 3_000_000,
            max_aliases: 10_000,
            max_anchors: 10_000,
            max_merge_keys: 10_000,
            max_recorded_anchor_events: 1_000_000,
            max_total_scalar_bytes: 4 * MAX_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 1_000_000,
            max_replay_stack_depth: 16,
        },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        ImportError::Yaml(
            error
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
        )
    })
}
