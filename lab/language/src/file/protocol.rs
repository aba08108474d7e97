//! The raw form of a workload's protocol, and of its requests in other protocols than HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::shapes::Time;
use crate::error::Problems;
use crate::node::{Node, Value};
use crate::source::Span;
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Json, OneOrMany, Scalar, Table};

/// A protocol.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ProtocolFile {
    /// Its name alone.
    #[schemars(with = "String")]
    Name(At<Scalar>),
    /// With what its connections are opened with.
    Full(Box<SpeakingFile>),
}

/// A protocol, and what its connections are opened with. Texts may name variables: `{{ name }}`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SpeakingFile {
    /// Its name: `grpc`, `http`, `imap`, `postgresql`, `redis`, `smtp`, `websocket`.
    #[schemars(with = "String")]
    pub(crate) name: At<Scalar>,
    /// Of WebSocket: the path of the handshake; `/` unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) path: Option<At<Scalar>>,
    /// Of gRPC: what describes its services: a `.proto` file, or a compiled set of descriptors; or a list of
    /// files. From the workload's folder, as are the files that a `.proto` file imports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) descriptors: Option<OneOrMany>,
    /// Of WebSocket: headers of the handshake. Of gRPC: metadata of all calls.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) headers: Table<At<Scalar>>,
    /// Of WebSocket: what both sides must speak on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) subprotocol: Option<At<Scalar>>,
    /// Who signs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) username: Option<At<Scalar>>,
    /// The password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) password: Option<At<Scalar>>,
    /// The database, by its name or number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) database: Option<At<Scalar>>,
    /// Of SMTP, IMAP, and PostgreSQL: whether each connection goes over to TLS before anything else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) starttls: Option<At<Scalar>>,
}

/// What a request of PostgreSQL says. Texts may name variables: `{{ name }}`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub(crate) struct StatementFile {
    /// Of PostgreSQL, in the place of `request`: SQL, such as `SELECT name FROM users WHERE id = $1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) query: Option<At<Scalar>>,
    /// The same, parsed once on each connection, so that it is the same for all users.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) prepared: Option<At<Scalar>>,
    /// What stands for `$1`, `$2`, … in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) values: Option<At<Vec<At<Scalar>>>>,
}

/// What a request of gRPC says besides its method, and how one of WebSocket ends.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub(crate) struct CallFile {
    /// Of gRPC, in the place of `json`: the messages of a method that takes a stream of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<At<Vec<At<Json>>>>,
    /// Of gRPC: how long the call may take, such as `500ms`; the server is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) deadline: Option<At<Scalar>>,
    /// Of gRPC: `true` where the next request of this method says more on the same call. The call ends with the
    /// first that doesn't say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) stays_open: Option<At<Scalar>>,
    /// Of WebSocket, in the place of `request`: the connection is closed, with this code, or `true` for 1000. The
    /// next request opens another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) close: Option<At<Scalar>>,
}

/// A mail to deliver. Texts may name variables: `{{ name }}`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct MailFile {
    /// Who sends it: the address of the envelope, and of the header `From` where there is no `message`.
    #[schemars(with = "String")]
    pub(crate) from: At<Scalar>,
    /// Who gets it, one or several.
    pub(crate) to: OneOrMany,
    /// Its subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) subject: Option<At<Scalar>>,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) text: Option<At<Scalar>>,
    /// In the place of subject and text: all of it, headers first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) message: Option<At<Scalar>>,
}

impl Container for ProtocolFile {}

impl ProtocolFile {
    pub(crate) fn name(&self) -> &At<Scalar> {
        match self {
            Self::Name(name) => name,
            Self::Full(full) => &full.name,
        }
    }
}

impl Decode for ProtocolFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return At::decode(node, problems).map(Self::Name);
        };
        let mut fields = Fields::of(node, "a protocol", problems)?;
        let name = fields.required("name", problems);
        let path = fields.optional("path", problems);
        let descriptors = fields.optional("descriptors", problems);
        let headers = fields.optional("headers", problems);
        let subprotocol = fields.optional("subprotocol", problems);
        let username = fields.optional("username", problems);
        let password = fields.optional("password", problems);
        let database = fields.optional("database", problems);
        let starttls = fields.optional("starttls", problems);
        fields.finish(problems);
        Some(Self::Full(Box::new(SpeakingFile {
            name: name?,
            path,
            descriptors,
            headers: headers.unwrap_or_default(),
            subprotocol,
            username,
            password,
            database,
            starttls,
        })))
    }
}

impl StatementFile {
    pub(crate) fn from_fields(fields: &mut Fields, problems: &mut Problems) -> Self {
        Self {
            query: fields.optional("query", problems),
            prepared: fields.optional("prepared", problems),
            values: fields.optional("values", problems),
        }
    }

    /// Returns its first key and that key's place; `None` if it has none.
    pub(crate) fn place(&self) -> Option<(&'static str, &Span)> {
        let query = self.query.as_ref().map(|at| ("query", &at.span));
        let prepared = self.prepared.as_ref().map(|at| ("prepared", &at.span));
        let values = self.values.as_ref().map(|at| ("values", &at.span));
        query.or(prepared).or(values)
    }
}

impl CallFile {
    pub(crate) fn from_fields(fields: &mut Fields, problems: &mut Problems) -> Self {
        Self {
            messages: fields.optional("messages", problems),
            deadline: fields.optional("deadline", problems),
            stays_open: fields.optional("stays_open", problems),
            close: fields.optional("close", problems),
        }
    }

    /// Returns its first key and that key's place; `None` if it has none.
    pub(crate) fn place(&self) -> Option<(&'static str, &Span)> {
        let messages = self.messages.as_ref().map(|at| ("messages", &at.span));
        let deadline = self.deadline.as_ref().map(|at| ("deadline", &at.span));
        let open = self.stays_open.as_ref().map(|at| ("stays_open", &at.span));
        messages.or(deadline).or(open)
    }
}

impl Container for MailFile {}

impl Decode for MailFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a mail", problems)?;
        let from = fields.required("from", problems);
        let to = fields.required("to", problems);
        let subject = fields.optional("subject", problems);
        let text = fields.optional("text", problems);
        let message = fields.optional("message", problems);
        fields.finish(problems);
        Some(Self {
            from: from?,
            to: to?,
            subject,
            text,
            message,
        })
    }
}
