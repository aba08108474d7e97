//! Connections to the hub, always with TLS to the one certificate in the token.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::watch;

use crate::clock;
use crate::error::FleetError;
use crate::subject;
use crate::token::{Role, Token};

/// Interval of keep-alive pings on both sides.
const PING: Duration = Duration::from_secs(1);
/// Maximum time to connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Maximum time to wait for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The longest wait before reconnecting.
const AGAIN: Duration = Duration::from_millis(500);
/// The maximum time for a hub to accept a token that it has issued.
const KNOWN_WITHIN: Duration = Duration::from_secs(3);
/// The longest absence of a restarting hub, for agents and for conductors.
const AWAY_FOR_AGENTS: Duration = Duration::from_secs(10);
const AWAY_FOR_CONDUCTORS: Duration = Duration::from_secs(2);
/// Messages that may wait in a subscription.
const WAITING: usize = 4096;

/// Purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Commands and reports.
    Messages,
    /// Clock readings, so that nothing else delays them.
    Clocks,
    /// Notices about clients that leave the hub.
    Departures,
}

/// A connection, and whether the hub has refused it since it opened.
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) refused: watch::Receiver<bool>,
}

/// Why a connection failed.
struct Failed {
    error: FleetError,
    /// How long after the first attempt a retry may still succeed.
    tried_for: Duration,
}

impl From<FleetError> for Failed {
    fn from(error: FleetError) -> Self {
        let tried_for = Duration::ZERO;
        Self { error, tried_for }
    }
}

/// Connects, and reconnects when the connection is lost. A hub may need a moment to accept a token that it has just
/// issued. A restarting hub is absent, or aborts handshakes.
pub(crate) async fn connect(token: &Token, purpose: Purpose) -> Result<Connected, FleetError> {
    let begun = clock::now();
    loop {
        match connect_once(token, purpose).await {
            Ok(connected) => return Ok(connected),
            Err(failed) if clock::now() < begun + failed.tried_for => {
                tokio::time::sleep(AGAIN).await;
            }
            Err(failed) => return Err(failed.error),
        }
    }
}

/// Publishes if connected. Without a connection, the message would wait for it, and so would the publisher; every
/// message sent here is repeated.
pub(crate) async fn say(client: &Client, subject: String, message: Bytes) {
    if client.connection_state() == State::Connected {
        // Handled like a message lost in transit.
        let _said_again = client.publish(subject, message).await;
    }
}

async fn connect_once(token: &Token, purpose: Purpose) -> Result<Connected, Failed> {
    let (refuse, refused) = watch::channel(false);
    let seed = match purpose {
        Purpose::Departures => token.watch.clone().unwrap_or_default(),
        Purpose::Messages | Purpose::Clocks => token.seed.clone(),
    };
    let client = ConnectOptions::with_nkey(seed)
        .name(format!("{} {}", token.name, purpose.words()))
        .require_tls(true)
        .tls_client_config(tls(token)?)
        .ignore_discovered_servers()
        .max_reconnects(None)
        .ping_interval(PING)
        .connection_timeout(CONNECT_WITHIN)
        .request_timeout(Some(ANSWER_WITHIN))
        .subscription_capacity(WAITING)
        .custom_inbox_prefix(inbox(token))
        .reconnect_delay_callback(|attempt| {
            let doubled = Duration::from_millis(20) * 2u32.saturating_pow(attempt.min(6) as u32);
            doubled.min(AGAIN)
        })
        .event_callback(move |event| {
            let refuse = refuse.clone();
            async move {
                let is_error = matches!(event, Event::ServerError(_) | Event::ClientError(_));
                if is_error && is_refusal(&event.to_string()) {
                    refuse.send_replace(true);
                }
            }
        })
        .connect(token.url.as_str())
        .await
        .map_err(|error| failure(token, &error))?;
    Ok(Connected { client, refused })
}

impl Purpose {
    fn words(self) -> &'static str {
        match self {
            Self::Messages => "talk",
            Self::Clocks => "clocks",
            Self::Departures => "departures",
        }
    }
}

/// Agents ask no questions, and lack the right to.
fn inbox(token: &Token) -> String {
    match token.role {
        Role::Conductor => subject::inbox(&token.name),
        Role::Agent => format!("_INBOX.{}", token.name),
    }
}

fn is_refusal(text: &str) -> bool {
    text.to_lowercase().contains("authorization violation")
}

fn failure(token: &Token, error: &async_nats::ConnectError) -> Failed {
    use async_nats::ConnectErrorKind::{Authentication, AuthorizationViolation};
    let url = token.url.clone();
    if matches!(error.kind(), AuthorizationViolation | Authentication) {
        let name = token.name.clone();
        return Failed {
            error: FleetError::Refused { url, name },
            tried_for: KNOWN_WITHIN,
        };
    }
    let why = error.to_string();
    Failed {
        error: FleetError::Unreachable { url, why },
        tried_for: match token.role {
            _ if is_of_another(error) => Duration::ZERO,
            Role::Agent => AWAY_FOR_AGENTS,
            Role::Conductor => AWAY_FOR_CONDUCTORS,
        },
    }
}

/// Returns true if the certificate belongs to another hub: a restarted hub keeps its certificate.
fn is_of_another(error: &(dyn Error + 'static)) -> bool {
    let refused = |error: &(dyn Error + 'static)| {
        let error = error.downcast_ref::<rustls::Error>();
        error.is_some_and(|error| matches!(error, rustls::Error::InvalidCertificate(_)))
    };
    let mut cause = Some(error);
    while let Some(error) = cause {
        let within = error.downcast_ref::<io::Error>();
        let within = within.and_then(io::Error::get_ref);
        if refused(error) || within.is_some_and(|within| refused(within)) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Trusts the hub's authority and no other.
fn tls(token: &Token) -> Result<ClientConfig, FleetError> {
    let wrong = |error: &dyn std::fmt::Display| FleetError::Tls(error.to_string());
    let authority = BASE64.decode(&token.authority).map_err(|e| wrong(&e))?;
    let mut roots = RootCertStore::empty();
    roots.add(authority.into()).map_err(|e| wrong(&e))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(|e| wrong(&e))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use async_nats::{ConnectError, ConnectErrorKind};
    use rustls::CertificateError;

    use super::*;

    fn token(role: Role) -> Token {
        Token {
            url: "tls://127.0.0.1:4222".to_owned(),
            name: "ada".parse().unwrap(),
            role,
            authority: String::new(),
            seed: String::new(),
            watch: None,
        }
    }

    /// Classifies connection errors as the NATS client reports them.
    fn tried_for(role: Role, kind: ConnectErrorKind, cause: io::Error) -> Duration {
        failure(&token(role), &ConnectError::with_source(kind, cause)).tried_for
    }

    #[test]
    fn a_hub_that_starts_anew_is_waited_for_and_another_one_is_not() {
        let broken_off = || io::Error::new(io::ErrorKind::UnexpectedEof, "tls handshake eof");
        let nobody = || io::Error::from(io::ErrorKind::ConnectionRefused);
        for cause in [broken_off(), nobody()] {
            let waits = tried_for(Role::Agent, ConnectErrorKind::Io, cause);
            assert_eq!(waits, AWAY_FOR_AGENTS);
        }
        let waits = tried_for(Role::Conductor, ConnectErrorKind::Io, broken_off());
        assert_eq!(waits, AWAY_FOR_CONDUCTORS);
        let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let other = io::Error::new(io::ErrorKind::InvalidData, unknown);
        let waits = tried_for(Role::Agent, ConnectErrorKind::Io, other);
        assert_eq!(waits, Duration::ZERO);
        let unknown = tried_for(
            Role::Agent,
            ConnectErrorKind::AuthorizationViolation,
            nobody(),
        );
        assert_eq!(unknown, KNOWN_WITHIN);
    }
}
