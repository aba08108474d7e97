//! The wire form of a workload: the validated structure, its templates as text.
//!
//! Templates are sent as written, each with its context, and compiled again by the same parser: minijinja's compiled
//! form can't be sent, and a single compiler always agrees with itself. Validated values are not checked again, except
//! that captures have a variable. It does not know the format of workload files.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::{Body, Piece, Request, Step, Workload};
use crate::scope::Slot;
use crate::speech::ProtocolRequest;
use crate::template::{Symbols, Template, TemplateError, TemplateSource};

/// The version of [`Message`]'s serialised form.
pub const SCHEMA: &str = "plimsoll.workload/1";

/// Most variables of a workload; their slots are 16-bit numbers, and users are many.
pub const MAX_VARIABLES: usize = 1_000;

/// A workload as sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Message {
    schema: String,
    /// Parsed only after the version is checked.
    workload: Box<RawValue>,
}

/// Why a message has no valid workload.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// Another version of the program sent it.
    #[error("the workload is of version `{0}`, and this program knows `{SCHEMA}`")]
    Version(String),
    /// It does not have the form of its version.
    #[error("the workload is not understood: {0}")]
    Form(#[from] serde_json::Error),
    /// One of its templates is invalid.
    #[error("a template of the workload is not understood: {0}")]
    Template(#[from] TemplateError),
    /// A variable's slot is out of range, or there are too many.
    #[error("the workload names variables that it doesn't have")]
    Variables,
    /// A file's index is out of range.
    #[error("the workload names files that it doesn't have")]
    Files,
}

impl Message {
    /// The message for `workload`.
    ///
    /// # Errors
    /// When a parameter is a number that JSON can't represent.
    pub fn new(workload: &Workload) -> Result<Self, MessageError> {
        let sources = workload.try_map(|template| Ok::<_, MessageError>(template.to_source()))?;
        Ok(Self {
            schema: SCHEMA.to_owned(),
            workload: serde_json::value::to_raw_value(&sources)?,
        })
    }

    /// The workload.
    ///
    /// # Errors
    /// When the message has another version, or is invalid.
    pub fn workload(&self) -> Result<Workload, MessageError> {
        if self.schema != SCHEMA {
            return Err(MessageError::Version(self.schema.clone()));
        }
        let sources: Workload<TemplateSource> = serde_json::from_str(self.workload.get())?;
        let count = sources.variables.len();
        let has = |slot: &Slot| usize::from(*slot) < count;
        let columns = sources.rows().flat_map(|data| &data.columns);
        if !columns.map(|(_, slot)| slot).all(&has) {
            return Err(MessageError::Variables);
        }
        let takes = sources.session.steps.iter().filter_map(Step::take);
        if !takes.map(|take| &take.slot).all(&has) {
            return Err(MessageError::Variables);
        }
        let captures = sources.requests().flat_map(|request| &request.captures);
        if count > MAX_VARIABLES || !captures.map(|capture| &capture.slot).all(&has) {
            return Err(MessageError::Variables);
        }
        let measures = sources.session.steps.iter().flat_map(|step| &step.measures);
        if !measures.map(|measure| &measure.slot).all(has) {
            return Err(MessageError::Variables);
        }
        let files = sources.files.len();
        if !sources.requests().flat_map(files_of).all(|at| at < files) {
            return Err(MessageError::Files);
        }
        let given = Arc::clone(&sources.inputs);
        let symbols = Symbols {
            variables: &sources.variables,
            parameters: &sources.parameters,
            keys: given.keys(),
            is_repeatable: false,
        };
        sources.try_map(|source| Ok(Template::from_source(source, symbols)?))
    }
}

/// The indices of the files that a request carries.
fn files_of<T>(request: &Request<T>) -> impl Iterator<Item = usize> {
    let pieces = match &request.body {
        Body::Pieces(pieces) => &pieces[..],
        _ => &[],
    };
    let in_body = pieces.iter().filter_map(|piece| match piece {
        Piece::File(place) => Some(*place),
        Piece::Text(_) => None,
    });
    let raw = request.said.as_deref().and_then(|said| match said {
        ProtocolRequest::Raw(raw) => raw.file(),
        ProtocolRequest::Mqtt(mqtt) => mqtt.file(),
        _ => None,
    });
    in_body.chain(raw)
}
