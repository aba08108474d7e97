//! Connections to the hub: always with TLS, to the one certificate that the token names.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::watch;

use crate::clock;
use crate::error::FleetError;
use crate::subject;
use crate::token::{Role, Token};

/// How often either side asks whether the other is there.
const PING: Duration = Duration::from_secs(1);
/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long a question may stand.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The longest wait before the next try to connect again.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a hub may take to know a token that it has given out.
const KNOWN_WITHIN: Duration = Duration::from_secs(3);
/// Messages that may wait for whoever reads a subscription.
const WAITING: usize = 4096;

/// Whom a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// What the owner says and hears.
    Talk,
    /// Clocks, so that nothing else stands before them.
    Clocks,
    /// Who leaves the hub.
    Departures,
}

/// A connection, and whether the hub has refused it since.
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) refused: watch::Receiver<bool>,
}

/// Connects. It connects again by itself when the connection is lost. A hub that has just given the
/// token out may take a moment to know it.
pub(crate) async fn connect(token: &Token, purpose: For) -> Result<Connected, FleetError> {
    let until = clock::now() + KNOWN_WITHIN;
    loop {
        match connect_once(token, purpose).await {
            Err(FleetError::Refused { .. }) if clock::now() < until => {
                tokio::time::sleep(AGAIN).await;
            }
            connected => return connected,
        }
    }
}

async fn connect_once(token: &Token, purpose: For) -> Result<Connected, FleetError> {
    let (refuse, refused) = watch::channel(false);
    let seed = match purpose {
        For::Departures => token.watch.clone().unwrap_or_default(),
        For::Talk | For::Clocks => token.seed.clone(),
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

impl For {
    fn words(self) -> &'static str {
        match self {
            Self::Talk => "talk",
            Self::Clocks => "clocks",
            Self::Departures => "departures",
        }
    }
}

/// Agents ask nobody, and may not.
fn inbox(token: &Token) -> String {
    match token.role {
        Role::Conductor => subject::inbox(&token.name),
        Role::Agent => format!("_INBOX.{}", token.name),
    }
}

fn is_refusal(text: &str) -> bool {
    text.to_lowercase().contains("authorization violation")
}

fn failure(token: &Token, error: &async_nats::ConnectError) -> FleetError {
    use async_nats::ConnectErrorKind::{Authentication, AuthorizationViolation};
    let url = token.url.clone();
    if matches!(error.kind(), AuthorizationViolation | Authentication) {
        let name = token.name.clone();
        return FleetError::Refused { url, name };
    }
    FleetError::Unreachable {
        url,
        why: error.to_string(),
    }
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
