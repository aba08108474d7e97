//! The preparation of a system before the load (accounts for its users, an initial state), and the folder
//! of that state that is kept for later trials: as written, and in one cell.
//!
//! Requests name variables of users, which are known when a trial runs. Until then the requests stay as
//! written, beside the values that they may name.

use std::ops::RangeInclusive;

use lab_language::{CellError, Optional, Setting, TextError, machine::argument, units};
use serde::{Deserialize, Serialize};

use crate::model::{Cell, Level};

/// The variable with the rendered `each` texts in a request for several users.
pub const EACH: &str = "each";
/// A further name that a command of a preparation may use.
pub(crate) const USERS_FILE_NAME: &str = "users_file";
/// The placeholder of that name.
pub const USERS_FILE: &str = "{{ users_file }}";
/// Most users of one request.
const MAX_USERS_PER_REQUEST: u64 = 100_000;
/// Most disk that one user takes.
const MAX_DISK_PER_USER: u64 = 1 << 40;

/// The preparation of a system before the load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Preparation {
    /// Gives users their accounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provision: Vec<Action>,
    /// Fills the state that the load begins with, after that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fill: Vec<Action>,
    /// The state to keep; `None` = each trial is prepared from scratch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// Further values that requests may name, in addition to the trial's levels and parameters.
    #[serde(default, skip_serializing_if = "Cell::is_empty")]
    pub values: Cell,
    /// Disk space that the system uses for each user.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disk_per_user: u64,
}

impl Preparation {
    /// Returns true if there are no actions, no kept state, and no disk estimate.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if there are actions for each user.
    #[must_use]
    pub fn is_of_users(&self) -> bool {
        let of_users = |action: &Action| match action {
            Action::Command(words) => words.iter().any(|word| word.contains(USERS_FILE)),
            Action::Request(_) => true,
        };
        self.actions().any(of_users)
    }

    /// Returns all actions, in their order.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.provision.iter().chain(&self.fill)
    }

    /// Returns the preparation with `text` applied to its commands.
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
    /// Trials with the same value begin with the same state; `None` = trials whose system is set
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
    /// The template of one user in a request for several.
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
    /// The user name.
    pub username: String,
    /// The password.
    pub password: String,
}

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// A literal value.
    Literal(String),
    /// A template whose text is used as written.
    Text(String),
    /// A template that becomes a JSON value.
    Json(String),
    /// A JSON list of the `each` texts of the users.
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
