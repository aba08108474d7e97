//! Protocols in which a user says one thing after the other on a connection, without I/O: each is a
//! [`lab_client::dialogue::Dialogue`], of which `lab-client` makes a client.

mod grpc;
mod imap;
mod postgres;
mod redis;
mod smtp;
mod websocket;

pub use grpc::{Grpc, GrpcLine, GrpcMessages, GrpcTalk};
pub use imap::{Imap, ImapAnswer, ImapTalk, ImapTold};
pub use postgres::{Postgres, PostgresAnswer, PostgresReady, PostgresTalk, PostgresTold, Prepared};
pub use redis::{Redis, RedisTalk, ReplyReader};
pub use smtp::{Smtp, SmtpReplies, SmtpTalk};
pub use websocket::{WebSocket, WebSocketLine, WebSocketMessages, WebSocketTalk};
