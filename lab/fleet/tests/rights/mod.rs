//! Rights of an agent's token: its own subjects, and no others.

use std::sync::Arc;
use std::time::Duration;

use async_nats::ConnectErrorKind::{AuthorizationViolation, Io};
use async_nats::{Client, ConnectOptions};
use base64::Engine as _;
use lab_fleet::Token;
use tokio::sync::mpsc::Sender;

use super::json_of;

/// Tries the subjects of others, one by one, with the token of an agent named bob.
pub(super) fn each_speaks_for_itself_alone(token: &Token) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let (tell, mut told) = tokio::sync::mpsc::channel(64);
        let client = tokio::time::timeout(Duration::from_secs(60), connected(token, tell)).await;
        let client = client.expect("the hub knows bob in time");
        let own = "plimsoll.hello.bob";
        let others = [
            "plimsoll.hello.eve",
            "plimsoll.3.a.eve.ask",
            "plimsoll.3.c.me.run.eve.up",
        ];
        for subject in [own].iter().chain(&others) {
            client.publish(*subject, "hello".into()).await.unwrap();
        }
        let heard = [
            "plimsoll.hello.*",
            "plimsoll.3.a.eve.ask",
            "plimsoll.3.c.>",
            "_INBOX.>",
            ">",
        ];
        let mut subscribed = Vec::new();
        for subject in heard {
            subscribed.push(client.subscribe(subject).await.unwrap());
        }
        let mut left: Vec<&str> = others.iter().chain(&heard).copied().collect();
        let all = async {
            while !left.is_empty() {
                let event = told.recv().await.unwrap().to_lowercase();
                assert!(!event.contains("hello.bob"), "{event}");
                left.retain(|subject| !event.contains(&format!("\"{subject}\"").to_lowercase()));
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(60), all).await;
        assert!(in_time.is_ok(), "not refused: {left:?}");
    });
}

/// Connects with the token; sends the server's events on this connection to `tell`.
async fn connected(token: &Token, tell: Sender<String>) -> Client {
    let token = json_of(token);
    let text = |key: &str| token[key].as_str().unwrap().to_owned();
    let mut roots = rustls::RootCertStore::empty();
    let authority = base64::engine::general_purpose::STANDARD.decode(text("authority"));
    roots.add(authority.unwrap().into()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider);
    let tls = tls.with_safe_default_protocol_versions().unwrap();
    let tls = tls.with_root_certificates(roots).with_no_client_auth();
    let connect = || {
        let tell = tell.clone();
        ConnectOptions::with_nkey(text("seed"))
            .require_tls(true)
            .tls_client_config(tls.clone())
            .event_callback(move |event| {
                let tell = tell.clone();
                async move {
                    // The receiver is gone once all is refused.
                    let _heard = tell.send(event.to_string()).await;
                }
            })
            .connect(text("url"))
    };
    loop {
        match connect().await {
            Ok(client) => return client,
            // The hub is still reloading its configuration, or had no CPU for a handshake in its two seconds.
            Err(error) if matches!(error.kind(), AuthorizationViolation | Io) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}
