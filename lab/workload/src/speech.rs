//! The protocol of users, and the requests of protocols other than HTTP. It knows no bytes: the clients encode
//! requests.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::mqtt::MqttRequest;
use crate::raw::RawRequest;
use crate::template::Template;
use lab_filters::Descriptors;

/// The names of gRPC status codes, by number.
pub const GRPC_STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The protocol of a workload's users.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speech<T = Template> {
    /// HTTP; the study chooses the version.
    Http,
    /// WebSocket: messages both ways on a connection that HTTP opens.
    WebSocket {
        /// Path of the handshake.
        path: T,
        /// Headers of the handshake, in file order.
        headers: Vec<(String, T)>,
        /// The required subprotocol, if any.
        subprotocol: Option<String>,
    },
    /// gRPC: calls of methods that descriptors describe.
    Grpc {
        /// The callable methods.
        descriptors: Descriptors,
        /// Metadata of all calls, in file order.
        metadata: Vec<(String, T)>,
    },
    /// Redis and what speaks like it (RESP2).
    Redis(SignIn<T>),
    /// SMTP, which delivers mail.
    Smtp {
        /// The credentials, if any.
        sign_in: SignIn<T>,
        /// True if it upgrades the open connection to TLS.
        starttls: bool,
    },
    /// IMAP, which reads mail.
    Imap {
        /// The credentials.
        sign_in: SignIn<T>,
        /// True if it upgrades the open connection to TLS.
        starttls: bool,
    },
    /// PostgreSQL.
    Postgres {
        /// The credentials and the database.
        sign_in: SignIn<T>,
        /// True if it upgrades the open connection to TLS.
        starttls: bool,
    },
    /// MQTT.
    Mqtt {
        /// The credentials.
        sign_in: SignIn<T>,
        /// The name of the client; the broker chooses one if there is none.
        client_id: Option<T>,
        /// True for version 5, false for 3.1.1.
        is_five: bool,
    },
    /// Bytes over TCP, which the requests define.
    Tcp,
    /// Bytes over UDP, which the requests define.
    Udp,
}

/// The credentials of a connection, if the protocol needs them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SignIn<T = Template> {
    /// The name.
    pub username: Option<T>,
    /// The password.
    pub password: Option<T>,
    /// The database, by its name or number.
    pub database: Option<T>,
}

/// A request of a protocol other than HTTP.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProtocolRequest<T = Template> {
    /// A message; without a text the request only receives.
    Message {
        /// Its text.
        text: Option<T>,
        /// True if it is binary.
        binary: bool,
    },
    /// Closes the connection with this WebSocket code.
    Close(u16),
    /// A call of a method.
    Call(Call<T>),
    /// A command, word by word; at least one.
    Words(Vec<T>),
    /// A mail.
    Mail {
        /// The sender in the envelope.
        from: T,
        /// The recipients in the envelope; at least one.
        to: Vec<T>,
        /// The whole message: headers, an empty line, and the text.
        text: T,
    },
    /// A line, and its literal.
    Line {
        /// The line.
        line: T,
        /// A text of any length, as its last argument.
        text: Option<T>,
    },
    /// A statement of SQL.
    Statement {
        /// Its text.
        sql: T,
        /// The values of `$1`, `$2`, … in it.
        values: Vec<T>,
        /// The query protocol.
        way: Way,
    },
    /// A request of MQTT.
    Mqtt(MqttRequest<T>),
    /// Bytes over TCP or UDP.
    Raw(RawRequest<T>),
}

/// A call of a method, or messages on an open one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call<T = Template> {
    /// Its name, `package.Service/Method`; the descriptors contain it.
    pub method: String,
    /// The messages, as JSON, each of the method's input type.
    pub messages: Vec<T>,
    /// Metadata, in file order.
    pub metadata: Vec<(String, T)>,
    /// The deadline of the call.
    pub deadline: Option<Duration>,
    /// True if later requests send more on it: the first one without this ends it.
    pub stays_open: bool,
}

/// The query protocol of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// As a text.
    Simple,
    /// As a text with values, which is parsed each time.
    Parsed,
    /// Parsed once on each connection.
    Prepared,
}

impl<T> Speech<T> {
    /// The name of the protocol in workloads.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::WebSocket { .. } => "websocket",
            Self::Grpc { .. } => "grpc",
            Self::Redis(_) => "redis",
            Self::Smtp { .. } => "smtp",
            Self::Imap { .. } => "imap",
            Self::Postgres { .. } => "postgresql",
            Self::Mqtt { .. } => "mqtt",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }

    /// Returns true if it is HTTP.
    #[must_use]
    pub fn is_http(&self) -> bool {
        matches!(self, Self::Http)
    }

    /// Returns true if it requires HTTP/2.
    #[must_use]
    pub fn is_over_http2(&self) -> bool {
        matches!(self, Self::Grpc { .. })
    }

    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Speech<U>, E> {
        Ok(match self {
            Self::Http => Speech::Http,
            Self::WebSocket {
                path,
                headers,
                subprotocol,
            } => {
                let headers = named(headers, map)?;
                Speech::WebSocket {
                    path: map(path)?,
                    headers,
                    subprotocol: subprotocol.clone(),
                }
            }
            Self::Grpc {
                descriptors,
                metadata,
            } => Speech::Grpc {
                descriptors: descriptors.clone(),
                metadata: named(metadata, map)?,
            },
            Self::Redis(sign_in) => Speech::Redis(sign_in.try_map(map)?),
            Self::Smtp { sign_in, starttls } => Speech::Smtp {
                sign_in: sign_in.try_map(map)?,
                starttls: *starttls,
            },
            Self::Imap { sign_in, starttls } => Speech::Imap {
                sign_in: sign_in.try_map(map)?,
                starttls: *starttls,
            },
            Self::Postgres { sign_in, starttls } => Speech::Postgres {
                sign_in: sign_in.try_map(map)?,
                starttls: *starttls,
            },
            Self::Mqtt {
                sign_in,
                client_id,
                is_five,
            } => Speech::Mqtt {
                sign_in: sign_in.try_map(map)?,
                client_id: client_id.as_ref().map(map).transpose()?,
                is_five: *is_five,
            },
            Self::Tcp => Speech::Tcp,
            Self::Udp => Speech::Udp,
        })
    }
}

/// Maps named values.
fn named<T, U, E>(
    values: &[(String, T)],
    map: &mut impl FnMut(&T) -> Result<U, E>,
) -> Result<Vec<(String, U)>, E> {
    let one = |(name, value): &(String, T)| Ok((name.clone(), map(value)?));
    values.iter().map(one).collect()
}

/// No credentials.
impl<T> Default for SignIn<T> {
    fn default() -> Self {
        Self {
            username: None,
            password: None,
            database: None,
        }
    }
}

impl<T> SignIn<T> {
    fn try_map<U, E>(&self, map: &mut impl FnMut(&T) -> Result<U, E>) -> Result<SignIn<U>, E> {
        let mut one = |template: &Option<T>| template.as_ref().map(&mut *map).transpose();
        Ok(SignIn {
            username: one(&self.username)?,
            password: one(&self.password)?,
            database: one(&self.database)?,
        })
    }
}

impl<T> ProtocolRequest<T> {
    /// All its templates, in order.
    pub fn templates(&self) -> impl Iterator<Item = &T> {
        let metadata: &[(String, T)] = match self {
            Self::Call(call) => &call.metadata,
            _ => &[],
        };
        let mut filter = None;
        let (first, more, last): (_, &[T], _) = match self {
            Self::Message { text, .. } => (text.as_ref(), &[], None),
            Self::Close(_) => (None, &[], None),
            Self::Call(call) => (None, &call.messages, None),
            Self::Words(words) => (None, words, None),
            Self::Mail { from, to, text } => (Some(from), to, Some(text)),
            Self::Line { line, text } => (Some(line), &[], text.as_ref()),
            Self::Statement { sql, values, .. } => (Some(sql), values, None),
            Self::Raw(raw) => (raw.template(), &[], None),
            Self::Mqtt(mqtt) => {
                let (first, more, last, after) = mqtt.templates();
                filter = after;
                (first, more, last)
            }
        };
        let metadata = metadata.iter().map(|(_, value)| value);
        let last = last.into_iter().chain(filter);
        first.into_iter().chain(more).chain(last).chain(metadata)
    }

    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<ProtocolRequest<U>, E> {
        let mut all = |templates: &[T]| templates.iter().map(&mut *map).collect::<Result<_, E>>();
        Ok(match self {
            Self::Close(code) => ProtocolRequest::Close(*code),
            Self::Call(call) => ProtocolRequest::Call(call.try_map(map)?),
            Self::Message { text, binary } => ProtocolRequest::Message {
                text: text.as_ref().map(&mut *map).transpose()?,
                binary: *binary,
            },
            Self::Words(words) => ProtocolRequest::Words(all(words)?),
            Self::Mail { from, to, text } => ProtocolRequest::Mail {
                to: all(to)?,
                from: map(from)?,
                text: map(text)?,
            },
            Self::Line { line, text } => ProtocolRequest::Line {
                line: map(line)?,
                text: text.as_ref().map(&mut *map).transpose()?,
            },
            Self::Statement { sql, values, way } => ProtocolRequest::Statement {
                values: all(values)?,
                sql: map(sql)?,
                way: *way,
            },
            Self::Raw(raw) => ProtocolRequest::Raw(raw.try_map(map)?),
            Self::Mqtt(mqtt) => ProtocolRequest::Mqtt(mqtt.try_map(map)?),
        })
    }
}

impl Call {
    /// A call without messages.
    #[must_use]
    pub fn of(method: &str) -> Self {
        Self {
            method: method.to_owned(),
            messages: Vec::new(),
            metadata: Vec::new(),
            deadline: None,
            stays_open: false,
        }
    }
}

impl<T> Call<T> {
    fn try_map<U, E>(&self, map: &mut impl FnMut(&T) -> Result<U, E>) -> Result<Call<U>, E> {
        let messages = self.messages.iter().map(&mut *map);
        Ok(Call {
            messages: messages.collect::<Result<_, E>>()?,
            metadata: named(&self.metadata, map)?,
            method: self.method.clone(),
            deadline: self.deadline,
            stays_open: self.stays_open,
        })
    }
}

impl ProtocolRequest {
    /// A readable line: the words, or the first line of the text.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Message { text: None, .. } => "listen".to_owned(),
            Self::Message {
                text: Some(text), ..
            } => {
                let words: Vec<&str> = text.source().split_whitespace().collect();
                words.join(" ")
            }
            Self::Close(code) => format!("close {code}"),
            Self::Call(call) => call.method.clone(),
            Self::Words(words) => {
                let words: Vec<&str> = words.iter().map(Template::source).collect();
                words.join(" ")
            }
            Self::Mail { to, .. } => {
                let to: Vec<&str> = to.iter().map(Template::source).collect();
                format!("mail to {}", to.join(", "))
            }
            Self::Line { line, .. } => line.source().trim().to_owned(),
            Self::Statement { sql, .. } => {
                let words: Vec<&str> = sql.source().split_whitespace().collect();
                words.join(" ")
            }
            Self::Raw(raw) => raw.line(),
            Self::Mqtt(mqtt) => mqtt.line(),
        }
    }
}
