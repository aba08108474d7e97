//! What a system is given before the load (accounts for its users, a state to begin in), and which
//! folder of that state is kept for the trials that follow: as written, and in one cell.
//!
//! Requests name variables of users, which are known when a trial runs. Until then they stand as they
//! were written, with the values that they may name beside them.

use std::ops::RangeInclusive;

use lab_language::{CellError, Optional, Setting, TextError, machine::argument, units};
use serde::{Deserialize, Serialize};

use crate::model::{Cell, Level};

/// The variable under which a request for several users holds what `each` makes of them.
pub const EACH: &str = "each";
/// What a command of a preparation may name beside the rest.
pub(crate) const USERS_FILE_NAME: &str = "users_file";
/// The same as it stands in its words.
pub const USERS_FILE: &str = "{{ users_file }}";
/// Most users of one request.
const MAX_USERS_PER_REQUEST: u64 = 100_000;
/// Most disk that one user takes.
const MAX_DISK_PER_USER: u64 = 1 << 40;

/// What is done to a system before the load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Preparation {
    /// Gives users their accounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provision: Vec<Action>,
    /// Fills the state that the load begins with, after that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fill: Vec<Action>,
    /// The state that is kept; `None` = each trial is prepared anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// Values that requests may name, beside the trial's levels and parameters.
    #[serde(default, skip_serializing_if = "Cell::is_empty")]
    pub values: Cell,
    /// What the system keeps for each user.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disk_per_user: u64,
}

impl Preparation {
    /// Whether nothing is done, nothing kept, and nothing foreseen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether there is something to do for each user.
    #[must_use]
    pub fn is_of_users(&self) -> bool {
        let of_users = |action: &Action| match action {
            Action::Command(words) => words.iter().any(|word| word.contains(USERS_FILE)),
            Action::Request(_) => true,
        };
        self.actions().any(of_users)
    }

    /// All that is done, in its order.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.provision.iter().chain(&self.fill)
    }

    /// With these texts of its commands.
    pub(crate) fn with_commands(&self, text: &impl Fn(&String) -> String) -> Self {
        let filled = |action: &Action| match action {
            Action::Command(words) => Action::Command(words.iter().map(text).collect()),
            request @ Action::Request(_) => request.clone(),
        };
        Self {
            provision: self.provision.iter().map(filled).collect(),
            fill: self.fill.iter().map(filled).collect(),
            ..self.clone()
        }
    }
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// The state that trials begin with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// A folder within the scratch folder.
    pub folder: String,
    /// Trials for which this is alike begin with the same state; `None` = those whose system is set
    /// up alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike: Option<String>,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A program with its arguments, run to its end.
    Command(Vec<String>),
    /// A request for each user, or for several.
    Request(Box<ActionRequest>),
}

/// A request of a preparation; its texts are templates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRequest {
    /// Upper case.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// In file order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// HTTP Basic credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
    /// The body, piece by piece.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub body: Vec<Piece>,
    /// What a user is in a request for several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Piece>,
    /// At least 1.
    pub users_per_request: u32,
    /// Accepted statuses; never empty.
    pub expect: Vec<RangeInclusive<u16>>,
    /// A variable, and the JSON path of its values in the answer: one for each user of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capture: Vec<(String, String)>,
}

/// HTTP Basic credentials; both are templates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BasicAuth {
    /// Who signs in.
    pub username: String,
    /// With what.
    pub password: String,
}

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// As it is.
    Literal(String),
    /// A template whose text stands as it is.
    Text(String),
    /// A template that becomes a JSON value.
    Json(String),
    /// A JSON list of what `each` makes of the users.
    Each,
}

/// A preparation, its settings still with references to factors.
#[derive(Debug, Clone, Default)]
pub(crate) struct PreparationTemplate {
    pub(crate) provision: Vec<ActionTemplate>,
    pub(crate) fill: Vec<ActionTemplate>,
    pub(crate) folder: Option<Setting>,
    pub(crate) alike: Option<Setting>,
    pub(crate) disk_per_user: Option<Setting>,
}

#[derive(Debug, Clone)]
pub(crate) enum ActionTemplate {
    Command(Vec<Setting>),
    Request(Box<RequestTemplate>),
}

/// A request, with the settings that are no templates of users.
#[derive(Debug, Clone)]
pub(crate) struct RequestTemplate {
    pub(crate) request: ActionRequest,
    pub(crate) users_per_request: Option<Setting>,
}

impl PreparationTemplate {
    pub(crate) fn spec(&self, cell: &Cell) -> Result<Preparation, CellError> {
        let mut cell = cell.clone();
        cell.insert(
            USERS_FILE_NAME.to_owned(),
            Level::Text(USERS_FILE.to_owned()),
        );
        let cell = &cell;
        let folder = self.folder.value(cell, folder)?.filter(|f| !f.is_empty());
        let alike = self.alike.value(cell, argument)?;
        let disk = |text: &str| units::size(text, MAX_DISK_PER_USER);
        Ok(Preparation {
            provision: actions(&self.provision, cell)?,
            fill: actions(&self.fill, cell)?,
            keep: folder.map(|folder| Keep { folder, alike }),
            values: Cell::new(),
            disk_per_user: self.disk_per_user.value(cell, disk)?.unwrap_or(0),
        })
    }
}

fn actions(templates: &[ActionTemplate], cell: &Cell) -> Result<Vec<Action>, CellError> {
    let action = |template: &ActionTemplate| match template {
        ActionTemplate::Command(words) => {
            let words = words.iter().map(|word| word.value(cell, argument));
            words.collect::<Result<_, _>>().map(Action::Command)
        }
        ActionTemplate::Request(template) => {
            let count = |text: &str| units::whole_number(text, 1..=MAX_USERS_PER_REQUEST);
            let users = template.users_per_request.value(cell, count)?;
            let mut request = template.request.clone();
            request.users_per_request = users.map_or(1, |n| n as u32);
            Ok(Action::Request(Box::new(request)))
        }
    };
    templates.iter().map(action).collect()
}

/// Empty where nothing is kept.
fn folder(text: &str) -> Result<String, TextError> {
    let odd = |part: &str| matches!(part, "" | "." | "..") || part.contains(char::is_control);
    if matches!(text, "" | ".") || !text.split('/').any(odd) {
        return Ok(text.to_owned());
    }
    let error = TextError::new(format!("`{text}` is no folder of the state"), 0..text.len());
    Err(error.help("name a folder within `{{ scratch }}`, such as `data`, or all of it: `.`"))
}
