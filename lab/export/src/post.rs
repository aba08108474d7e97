//! Sends a batch of frames to a destination, once.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use prost::Message;
use rustls_native_certs::CertificateResult;
use ureq::Agent;
use ureq::http::StatusCode;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::destination::{Destination, Kind, Target};
use crate::encode::{influx, openmetrics, otlp, prometheus};
use crate::error::SendError;
use crate::figure::Frame;

/// Longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of a response that are read.
const ANSWER_BYTES: u64 = 64 << 10;
/// Most characters of it in a message.
const TOLD_CHARS: usize = 200;
/// Longest wait that a receiver may request.
const LONGEST_WAIT_S: u64 = 60;

/// The outcome of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BatchOutcome {
    /// Accepted.
    Taken,
    /// Accepted except for so many figures, and why.
    But(u64, String),
    /// Permanently rejected, and why.
    Refused(String),
    /// Temporarily rejected, and why; perhaps with a requested wait.
    NotNow(String, Option<Duration>),
}

/// A connection to a destination.
pub(crate) struct Post {
    kind: Kind,
    way: Way,
}

enum Way {
    Server {
        agent: Agent,
        url: String,
        headers: Vec<(String, String)>,
    },
    File {
        file: File,
        path: String,
    },
}

impl Post {
    /// Creates the file, if it is one, and does not exist yet; sends nothing.
    pub(crate) fn new(destination: &Destination) -> Result<Self, SendError> {
        let way = match &destination.place {
            Target::File(path) => {
                let path_text = path.display().to_string();
                let file = File::create_new(path).map_err(|source| SendError::File {
                    path: path_text.clone(),
                    source,
                });
                Way::File {
                    file: file?,
                    path: path_text,
                }
            }
            Target::Server {
                url,
                headers,
                is_encrypted,
            } => Way::Server {
                agent: agent(*is_encrypted)?,
                url: url.clone(),
                headers: headers.clone(),
            },
        };
        Ok(Self {
            kind: destination.kind,
            way,
        })
    }

    /// Sends frames. An empty list checks whether the receiver would accept some.
    pub(crate) fn send(&mut self, frames: &[Frame]) -> Result<BatchOutcome, SendError> {
        let body = match self.kind {
            Kind::Prometheus => prometheus::body(frames, prometheus::Histograms::Classic),
            Kind::PrometheusNative => prometheus::body(frames, prometheus::Histograms::Native),
            Kind::Otlp => otlp::body(frames),
            Kind::Influx => influx::body(frames),
            Kind::OpenMetrics => openmetrics::body(frames),
        };
        match &mut self.way {
            Way::File { file, path } => {
                written(file, path, &body)?;
                Ok(BatchOutcome::Taken)
            }
            Way::Server {
                agent,
                url,
                headers,
            } => Ok(posted(agent, self.kind, url, headers, &body)),
        }
    }

    /// Completes the output after the last frames.
    pub(crate) fn close(&mut self) -> Result<(), SendError> {
        match &mut self.way {
            Way::File { file, path } if self.kind == Kind::OpenMetrics => {
                written(file, path, openmetrics::END.as_bytes())
            }
            _ => Ok(()),
        }
    }
}

fn written(file: &mut File, path: &str, bytes: &[u8]) -> Result<(), SendError> {
    file.write_all(bytes).map_err(|source| SendError::File {
        path: path.to_owned(),
        source,
    })
}

/// No redirect is followed: a token is sent to no other server.
fn agent(is_encrypted: bool) -> Result<Agent, SendError> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_global(Some(PATIENCE))
        .user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")));
    if !is_encrypted {
        return Ok(config.build().into());
    }
    Ok(config.tls_config(trusted()?).build().into())
}

/// The trusted authorities: those of this machine, including a company's, or those that `SSL_CERT_FILE` names, or the
/// web's common ones if it has none.
///
/// # Errors
/// [`SendError::Authorities`].
pub fn trusted() -> Result<TlsConfig, SendError> {
    trusting(&rustls_native_certs::load_native_certs())
}

/// An explicitly named authority excludes the web's, even if its file is missing.
fn trusting(found: &CertificateResult) -> Result<TlsConfig, SendError> {
    if let (true, Some(error)) = (found.certs.is_empty(), found.errors.first()) {
        return Err(SendError::Authorities(error.to_string()));
    }
    let own = found.certs.iter();
    let own: Vec<_> = own
        .map(|one| Certificate::from_der(one).to_owned())
        .collect();
    let roots = match own.is_empty() {
        true => RootCerts::WebPki,
        false => RootCerts::new_with_certs(&own),
    };
    Ok(TlsConfig::builder().root_certs(roots).build())
}

fn posted(
    agent: &Agent,
    kind: Kind,
    url: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> BatchOutcome {
    let mut request = agent.post(url);
    for (name, value) in of_kind(kind) {
        request = request.header(*name, *value);
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let mut answer = match request.send(body) {
        Ok(answer) => answer,
        Err(error) => return BatchOutcome::NotNow(error.to_string(), None),
    };
    let wait = answer.headers().get("retry-after");
    let wait = wait.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let wait = wait.map(|seconds| Duration::from_secs(seconds.min(LONGEST_WAIT_S)));
    let status = answer.status();
    let read = answer.body_mut().with_config().limit(ANSWER_BYTES);
    let text = read.read_to_vec().unwrap_or_default();
    judged(kind, status, &text, wait)
}

fn of_kind(kind: Kind) -> &'static [(&'static str, &'static str)] {
    match kind {
        Kind::Prometheus | Kind::PrometheusNative => &[
            ("Content-Type", "application/x-protobuf"),
            ("Content-Encoding", "snappy"),
            ("X-Prometheus-Remote-Write-Version", "0.1.0"),
        ],
        Kind::Otlp => &[("Content-Type", "application/x-protobuf")],
        Kind::Influx | Kind::OpenMetrics => &[("Content-Type", "text/plain; charset=utf-8")],
    }
}

/// Follows the rules of OTLP and remote write, which agree on retryable errors.
fn judged(kind: Kind, status: StatusCode, text: &[u8], wait: Option<Duration>) -> BatchOutcome {
    if status.is_success() {
        let partial = (kind == Kind::Otlp)
            .then(|| otlp::Response::decode(text).ok()?.partial)
            .flatten();
        return match partial {
            Some(part) if part.rejected > 0 => {
                BatchOutcome::But(part.rejected.unsigned_abs(), told(part.message.as_bytes()))
            }
            _ => BatchOutcome::Taken,
        };
    }
    let why = match told(text) {
        said if said.is_empty() => format!("it answers {status}"),
        said => format!("it answers {status}: {said}"),
    };
    match status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        true => BatchOutcome::NotNow(why, wait),
        false => BatchOutcome::Refused(why),
    }
}

/// The start of a response, as a line without control characters.
fn told(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    line.chars()
        .filter(|char| !char.is_control() && *char != char::REPLACEMENT_CHARACTER)
        .take(TOLD_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use rustls_native_certs::load_certs_from_paths;

    use super::*;

    fn came(kind: Kind, status: u16, text: &[u8]) -> BatchOutcome {
        judged(kind, StatusCode::from_u16(status).unwrap(), text, None)
    }

    #[test]
    fn what_a_server_can_not_do_now_is_tried_again() {
        for status in [429, 500, 502, 503, 504] {
            let came = came(Kind::Prometheus, status, b"busy");
            assert!(matches!(came, BatchOutcome::NotNow(why, None) if why.contains("busy")));
        }
        for status in [301, 400, 401, 404, 413] {
            let came = came(Kind::Influx, status, b"no\nsuch \x1b[31m thing");
            assert!(
                matches!(came, BatchOutcome::Refused(why) if why.ends_with("no such [31m thing"))
            );
        }
    }

    #[test]
    fn a_collector_says_how_many_it_left_out() {
        let partial = otlp::Response {
            partial: Some(otlp::Partial {
                rejected: 3,
                message: "too old".to_owned(),
            }),
        };
        let text = partial.encode_to_vec();
        assert_eq!(
            came(Kind::Otlp, 200, &text),
            BatchOutcome::But(3, "too old".to_owned())
        );
        assert_eq!(came(Kind::Otlp, 200, b""), BatchOutcome::Taken);
        assert_eq!(came(Kind::Prometheus, 204, &text), BatchOutcome::Taken);
    }

    #[test]
    fn an_authority_that_can_not_be_read_is_told_and_not_replaced() {
        let missing = load_certs_from_paths(Some(Path::new("/nowhere/ca.pem")), None);
        let Err(SendError::Authorities(why)) = trusting(&missing) else {
            panic!("it is trusted");
        };
        assert!(why.contains("/nowhere/ca.pem"), "{why}");
        let none = load_certs_from_paths(None, None);
        let web = trusting(&none).expect("the web's usual ones");
        assert!(matches!(web.root_certs(), RootCerts::WebPki));
    }

    proptest! {
        #[test]
        fn any_answer_is_judged(status in 100u16..600, text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let is_taken = !matches!(came(Kind::Otlp, status, &text), BatchOutcome::Refused(_) | BatchOutcome::NotNow(..));
            prop_assert_eq!(is_taken, (200..300).contains(&status));
        }
    }
}
