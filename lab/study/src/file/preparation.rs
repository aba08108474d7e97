//! What a system is given before the load, as a study file writes it.

use lab_language::{
    At, BasicFile, Count, Decode, Fields, Json, OneOrMany, Problems, Scalar, Table, node::Node,
};
use schemars::JsonSchema;
use serde::Serialize;

/// An action on a system before the load: a request or a command. A request is sent once for each user, and may name
/// the variables of the workload's users. A request with `each` is sent for several users at a time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ActionFile {
    /// A program with its arguments, run to its end. Besides the names in a system's command, it may name
    /// `{{ users_file }}`: a file with one JSON object per user, its variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Scalar>>")]
    pub(crate) command: Option<At<Vec<At<Scalar>>>>,
    /// Method and path: `POST /accounts/{{ name }}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) request: Option<At<Scalar>>,
    /// Headers.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<Scalar>")]
    pub(crate) headers: Table<At<Scalar>>,
    /// HTTP Basic credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) basic_auth: Option<BasicFile>,
    /// A JSON body. A string that is one `{{ … }}` and gives a number becomes a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) json: Option<At<Json>>,
    /// A text as the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) text: Option<At<Scalar>>,
    /// Accepted statuses: `200`, `2xx`, `200..204`, or a list. Default: `2xx`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expect: Option<OneOrMany>,
    /// Variables of the workload's users, by name, with the JSON path of their values in the response: one value for
    /// each user of the request.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default, with = "Table<String>")]
    pub(crate) capture: Table<At<Scalar>>,
    /// One user in JSON, if a request is for several. In `json`, the string `{{ each }}` stands for the list of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) each: Option<At<Json>>,
    /// The number of users per request. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) users_per_request: Option<At<Scalar>>,
}

/// The state with which trials begin. It is prepared once: the system is started, provisioned, filled, and stopped, and
/// its folder is kept. Each trial begins with a copy.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct KeepFile {
    /// The folder with the state, within `{{ scratch }}`.
    #[schemars(with = "String")]
    pub(crate) folder: At<Scalar>,
    /// A text, such as `{{ format }}`: trials with the same result begin with the same state, as far as they are
    /// prepared alike. Default: trials whose system is set up alike do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) alike: Option<At<Scalar>>,
}

/// What only a request has.
const OF_A_REQUEST: [&str; 8] = [
    "headers",
    "basic_auth",
    "json",
    "text",
    "expect",
    "capture",
    "each",
    "users_per_request",
];

impl Decode for ActionFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a step of the preparation", problems)?;
        let command = fields.optional("command", problems);
        let request = fields.optional("request", problems);
        let headers: Option<Table<_>> = fields.optional("headers", problems);
        let basic_auth = fields.optional("basic_auth", problems);
        let json = fields.optional("json", problems);
        let text = fields.optional("text", problems);
        let expect = fields.optional("expect", problems);
        let capture: Option<Table<_>> = fields.optional("capture", problems);
        let each = fields.optional("each", problems);
        let users_per_request = fields.optional("users_per_request", problems);
        let named = fields.named(&["command", "request"]);
        let of_a_request = fields.named(&OF_A_REQUEST);
        fields.finish(problems);
        let begins = node.span.first_line();
        match named.as_slice() {
            [_] if command.is_some() => {
                for span in of_a_request {
                    let problem = span.problem("a command has no such key", "it is of a request");
                    problems.push(
                        problem.help(
                            "a command that ends with 0 has done what it was to do".to_owned(),
                        ),
                    );
                }
            }
            [_] => {}
            [] => {
                let message = "a step of the preparation needs `request` or `command`";
                problems.push(begins.problem(message, "it begins here"));
            }
            [_, second, ..] => {
                let message = "a step of the preparation is a `request` or a `command`";
                problems.push(second.problem(message, "the second one"));
            }
        }
        Some(Self {
            command,
            request,
            headers: headers.unwrap_or_default(),
            basic_auth,
            json,
            text,
            expect,
            capture: capture.unwrap_or_default(),
            each,
            users_per_request,
        })
    }
}

impl Decode for KeepFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "the state that is kept", problems)?;
        let folder = fields.required("folder", problems);
        let alike = fields.optional("alike", problems);
        fields.finish(problems);
        Some(Self {
            folder: folder?,
            alike,
        })
    }
}
