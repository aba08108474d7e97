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

pub use grpc::{Grpc, GrpcExchange, GrpcLine, GrpcMessages};
pub use imap::{Imap, ImapAnswer, ImapExchange, ImapResult};
pub use mqtt::{Mqtt, MqttExchange, MqttLine, mqtt_messages};
pub use postgres::{
    Postgres, PostgresAnswer, PostgresExchange, PostgresReady, PostgresResult, Prepared,
};
pub use raw::{Raw, RawAnswer, RawExchange, RawLine};
pub use redis::{Redis, RedisExchange, ReplyReader};
pub use smtp::{Smtp, SmtpExchange, SmtpReplies};
pub use websocket::{WebSocket, WebSocketExchange, WebSocketLine, WebSocketMessages};
