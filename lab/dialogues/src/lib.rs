//! Protocols with sequential requests on a user's connection, without I/O: each is a
//! [`lab_client::dialogue::Dialogue`], from which `lab-client` builds a client.

mod grpc;
mod imap;
mod mqtt;
mod postgres;
mod raw;
mod redis;
mod smtp;
mod websocket;

pub use grpc::{Grpc, GrpcLine, GrpcMessages, GrpcTalk};
pub use imap::{Imap, ImapAnswer, ImapTalk, ImapTold};
pub use mqtt::{Mqtt, MqttLine, MqttTalk, mqtt_messages};
pub use postgres::{Postgres, PostgresAnswer, PostgresReady, PostgresTalk, PostgresTold, Prepared};
pub use raw::{Raw, RawAnswer, RawLine, RawTalk};
pub use redis::{Redis, RedisTalk, ReplyReader};
pub use smtp::{Smtp, SmtpReplies, SmtpTalk};
pub use websocket::{WebSocket, WebSocketLine, WebSocketMessages, WebSocketTalk};
