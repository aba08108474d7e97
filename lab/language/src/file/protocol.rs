//! The raw form of a workload's protocol, and of its requests in other protocols than HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::shapes::Time;
use crate::error::Problems;
use crate::node::{Node, Value};
use crate::source::Span;
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Json, OneOrMany, Scalar, Table};

/// The protocol of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ProtocolFile {
    /// The name alone.
    #[schemars(with = "String")]
    Name(At<Scalar>),
    /// The name, and the settings of its connections.
    Full(Box<SpeakingFile>),
}

/// A protocol, and the settings of its connections. Texts may name variables: `{{ name }}`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SpeakingFile {
    /// The name: `grpc`, `http`, `imap`, `mqtt`, `postgresql`, `redis`, `smtp`, `tcp`, `udp`,
    /// `websocket`.
    #[schemars(with = "String")]
    pub(crate) name: At<Scalar>,
    /// For WebSocket: the path of the handshake. Default: `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) path: Option<At<Scalar>>,
    /// For gRPC: the description of its services: a `.proto` file, a compiled set of descriptors, or a list of files.
    /// Paths are relative to the workload's folder, also those that a `.proto` file imports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) descriptors: Option<OneOrMany>,
    /// For WebSocket: headers of the handshake. For gRPC: metadata of all calls.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(default)]
    pub(crate) headers: Table<At<Scalar>>,
    /// For WebSocket: the subprotocol that both sides must use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) subprotocol: Option<At<Scalar>>,
    /// For MQTT: `5` or `3.1.1`. Default: `5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<At<Scalar>>,
    /// For MQTT: the client's name, which differs for each user: `sensor-{{ index }}`. Default: the broker chooses one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) client_id: Option<At<Scalar>>,
    /// The user name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) username: Option<At<Scalar>>,
    /// The password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) password: Option<At<Scalar>>,
    /// The name or number of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) database: Option<At<Scalar>>,
    /// For SMTP, IMAP, and PostgreSQL: `true` switches each connection to TLS before all else. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) starttls: Option<At<Scalar>>,
}

/// The statement of a PostgreSQL request. Texts may name variables: `{{ name }}`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub(crate) struct StatementFile {
    /// For PostgreSQL, in place of `request`: SQL, such as `SELECT name FROM users WHERE id = $1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) query: Option<At<Scalar>>,
    /// Like `query`, but parsed once on each connection; so it must be the same for all users.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) prepared: Option<At<Scalar>>,
    /// The values of `$1`, `$2`, … in the SQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) values: Option<At<Vec<At<Scalar>>>>,
}

/// The parts of a gRPC request besides its method, and the end of a WebSocket connection.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub(crate) struct CallFile {
    /// For gRPC, in place of `json`: the messages of a method that takes a stream of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<At<Vec<At<Json>>>>,
    /// For gRPC: the deadline of the call, such as `500ms`, which is also sent to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) deadline: Option<At<Scalar>>,
    /// For gRPC: `true` keeps the call open for messages of the next request of this method. The first request without
    /// it ends the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) stays_open: Option<At<Scalar>>,
    /// For WebSocket, in place of `request`: closes the connection with this code, or with 1000 if `true`. The next
    /// request opens another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) close: Option<At<Scalar>>,
}

/// A mail to deliver. Texts may name variables: `{{ name }}`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct MailFile {
    /// The sender: the address in the envelope, and in the header `From` unless there is a `message`.
    #[schemars(with = "String")]
    pub(crate) from: At<Scalar>,
    /// The recipient, or a list of recipients.
    pub(crate) to: OneOrMany,
    /// The subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) subject: Option<At<Scalar>>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) text: Option<At<Scalar>>,
    /// In place of subject and text: the whole message, headers first.
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
        let version = fields.optional("version", problems);
        let client_id = fields.optional("client_id", problems);
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
            version,
            client_id,
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
