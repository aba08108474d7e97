//! Protocols with sequential requests on a user's connection, without I/O: each is a
//! [`lab_client::dialogue::Dialogue`], from which `lab-client` builds a client.

mod grpc;
mod imap;
mod postgres;
mod redis;
mod smtp;
mod websocket;

pub use grpc::{Grpc, GrpcExchange, GrpcLine, GrpcMessages};
pub use imap::{Imap, ImapAnswer, ImapExchange, ImapResult};
pub use postgres::{
    Postgres, PostgresAnswer, PostgresExchange, PostgresReady, PostgresResult, Prepared,
};
pub use redis::{Redis, RedisExchange, ReplyReader};
pub use smtp::{Smtp, SmtpExchange, SmtpReplies};
pub use websocket::{WebSocket, WebSocketExchange, WebSocketLine, WebSocketMessages};
