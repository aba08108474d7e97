//! Imports descriptions of services (OpenAPI 3, and Swagger 2): each callable operation becomes a step.
//!
//! Operations that create an item precede those that read, change, and remove it, and provide its id. Nothing is
//! changed or removed that the session didn't create.

mod body;
mod call;
mod documents;
mod operation;
mod order;
mod parse;
mod refs;
mod sample;
mod style;
mod xml;

use crate::draft::{Draft, Step, Wait};
use crate::error::{ImportError, otherwise};
use crate::secret::Secrets;
use crate::{Imported, draft};
pub use documents::{Files, NoFiles};
use lab_units::names::Names;
pub use parse::MAX_BYTES;

use documents::Documents;
use order::Made;
use refs::{Server, Spec};
use sample::Sampler;

/// Think time before a step; descriptions have none.
const WAIT: std::time::Duration = std::time::Duration::from_secs(2);

/// Options for the import of a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenApiOptions {
    /// The name of the workload.
    pub name: String,
    /// The URL of the description, for a server without a host.
    pub from: Option<String>,
}

/// Converts a description to a workload.
///
/// # Errors
/// When the text is no description, exceeds a limit, or has no callable operation.
pub fn import(
    text: &str,
    options: &OpenApiOptions,
    files: &dyn Files,
) -> Result<Imported, ImportError> {
    let mut said = Vec::new();
    let documents = Documents::read(text, files, &mut said)?;
    let spec = Spec::new(&documents).map_err(|error| otherwise(text).unwrap_or(error))?;
    let mut secrets = Secrets::default();
    let from = options.from.as_deref();
    let operations = operation::all(&spec, from, &mut said)?;
    let server = spec.server(from);
    let sampler = Sampler::new(&spec);
    let mut names = Names::default();
    let mut made = Made::default();
    let mut steps = Vec::new();
    let mut parameters = Vec::new();
    let mut step_names = Names::default();
    for operation in order::ordered(operations, &mut said) {
        let mut maker = call::Maker {
            spec: &spec,
            sampler: &sampler,
            server: &server,
            secrets: &mut secrets,
            names: &mut names,
            parameters: &mut parameters,
            made: &mut made,
            said: &mut said,
        };
        let Some((set, request)) = maker.request(&operation) else {
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
        (server, &spec),
        (steps, parameters, secrets),
        said,
    ))
}

fn finish(
    options: &OpenApiOptions,
    (server, spec): (Server, &Spec<'_>),
    (steps, parameters, secrets): (Vec<Step>, Vec<(String, String)>, Secrets),
    said: Vec<String>,
) -> Imported {
    let asked = secrets.asked();
    let mut head = vec![
        format!(
            "Imported by plimsoll from the description of {}.",
            spec.title()
        ),
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
        server: server.origin,
        asked,
        said,
    }
}
