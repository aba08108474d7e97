//! Imports browser recordings (HAR): one person's session becomes the session of each virtual user.
//!
//! Requests keep their order. A pause of the person starts a step, and is its wait. Values of a response that a later
//! request contains are captured; values with names of secrets are read from the environment; cookies are left to the
//! engine.

mod atoms;
mod body;
mod build;
mod coding;
mod find;
mod moment;
mod noise;
mod read;
mod trace;

use crate::draft::Draft;
use crate::error::ImportError;
use crate::secret::Secrets;
use crate::text::Text;
use crate::{Imported, draft};

pub use noise::Noise;
pub use read::{MAX_BYTES, MAX_ENTRIES};

/// Options for the import of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HarOptions {
    /// The name of the workload.
    pub name: String,
    /// Hosts (`shop.example`, `shop.example:8443`) whose requests are imported; if empty, those of the first page's
    /// server.
    pub hosts: Vec<String>,
    /// Kinds of requests that are skipped.
    pub without: Vec<Noise>,
}

/// Converts a recording to a workload.
///
/// # Errors
/// When the text is no recording, exceeds a limit, or has no request left.
pub fn import(text: &str, options: &HarOptions) -> Result<Imported, ImportError> {
    let (all, odd) = read::read(text)?;
    let (kept, mut said) = noise::sift(all, &options.hosts, &options.without);
    said.extend(odd);
    let Some(first) = kept.first() else {
        return Err(ImportError::Nothing { said });
    };
    let server = first.server();
    let mut secrets = Secrets::default();
    let mut requests: Vec<draft::Request> = Vec::with_capacity(kept.len());
    for one in &kept {
        requests.push(build::request(one, &server, &mut said));
    }
    let sets = trace::trace(&kept, &mut requests, &mut said);
    build::hide_secrets(&mut requests, &mut secrets);
    let says_origin = requests.iter().flat_map(|request| &request.headers);
    let says_origin = says_origin
        .into_iter()
        .any(|(_, value)| *value == Text::code(atoms::ORIGIN));
    let mut parameters = Vec::new();
    if says_origin {
        parameters.push((atoms::ORIGIN.to_owned(), server.clone()));
        said.push(format!(
            "forms say whose page they come from: for another server than {server} add \
             `--set parameters.origin=http://HOST:PORT`"
        ));
    }
    let steps = build::steps(&kept, requests, sets);
    let asked = secrets.asked();
    let draft = Draft {
        name: options.name.clone(),
        head: head(&server, &asked),
        parameters,
        compressed: kept
            .iter()
            .any(|one| one.answered("content-encoding").is_some()),
        // A recording is one visit: the next one has to sign in, too.
        is_new_visitor: kept.iter().any(|one| one.answered("set-cookie").is_some()),
        steps,
    };
    Ok(Imported {
        workload: draft.write(),
        server: Some(server),
        asked,
        said,
    })
}

fn head(server: &str, asked: &[String]) -> Vec<String> {
    let mut head = vec![
        format!("Imported by plimsoll from a recording of {server}."),
        "Each user does what was recorded, one request after the other. Waits are those of the \
         recording, from half to one and a half of each."
            .to_owned(),
    ];
    if !asked.is_empty() {
        head.push(format!(
            "A run needs these in its environment: {}",
            asked.join(", ")
        ));
    }
    head
}
