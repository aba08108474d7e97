//! A client of the admin interface of a running server, over HTTP. Only this module of the operator commands handles
//! the token.

use std::fs;
use std::net::IpAddr;
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::{Request, Uri};
use ureq::tls::{RootCerts, TlsConfig, parse_pem};

use crate::exit::{Exit, Failure};
use crate::operating::ServerArgs;

/// The environment variable with the admin token, in place of a file.
pub(crate) const TOKEN: &str = "PLIMSOLL_ADMIN_TOKEN";
/// The token file of a server that was started here with default settings.
const TOKEN_FILE: &str = "plimsoll-data/admin-token";
/// The maximum bytes of an answer.
const ANSWER_BYTES: u64 = 64 << 20;
/// The maximum bytes of a file with a token or certificates.
const FILE_BYTES: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(600);

/// A server, with the right to administer it.
pub(crate) struct Admin {
    agent: Agent,
    base: String,
    authorization: String,
}

/// The server's answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        serde_json::from_slice(&self.body)
            .map_err(|_| Failure::text(Exit::Internal, "the server's answer can't be read"))
    }

    /// Returns the answer, or the failure that it reports.
    pub(crate) fn good(self) -> Result<Self, Failure> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        let told: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let message = told["message"].as_str().unwrap_or("it said no more");
        let text = format!("the server refused ({}): {message}", self.status);
        let exit = match self.status {
            400..500 => Exit::BadInput,
            _ => Exit::Internal,
        };
        let failure = Failure::text(exit, text);
        Err(match self.status {
            401 => failure.hint(format!(
                "give the server's admin token by --admin-token-file or ${TOKEN}"
            )),
            _ => failure,
        })
    }
}

impl Admin {
    pub(crate) fn new(args: &ServerArgs) -> Result<Self, Failure> {
        let base = args.server.trim_end_matches('/').to_owned();
        check(&base)?;
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(PATIENCE))
            .user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")));
        if let Some(file) = &args.ca {
            let pem = read(file)?;
            let found = parse_pem(&pem).filter_map(|item| match item {
                Ok(ureq::tls::PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            });
            let certificates: Vec<_> = found.collect();
            if certificates.is_empty() {
                let text = format!("{} has no certificate in it", file.display());
                return Err(Failure::text(Exit::BadInput, text));
            }
            let roots = RootCerts::new_with_certs(&certificates);
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Ok(Self {
            agent: config.build().into(),
            base,
            authorization: format!("Bearer {}", token(args)?),
        })
    }

    /// Sends a request. Only a failure to reach the server is an error here.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &[u8]) -> Result<Answer, Failure> {
        let request = self.request(method, path, body)?;
        let mut response = self.agent.run(request).map_err(|e| self.unreachable(&e))?;
        let status = response.status().as_u16();
        let read = response.body_mut().with_config().limit(ANSWER_BYTES);
        let body = read.read_to_vec().map_err(|e| self.unreachable(&e))?;
        Ok(Answer { status, body })
    }

    /// Sends a request with a long and slow answer; returns the reader of its body.
    pub(crate) fn download(&self, path: &str) -> Result<impl std::io::Read + use<>, Failure> {
        let request = self.request("GET", path, ())?;
        let config = self.agent.configure_request(request);
        let request = config.timeout_global(None).build();
        let mut response = self.agent.run(request).map_err(|e| self.unreachable(&e))?;
        let status = response.status().as_u16();
        if status != 200 {
            let read = response.body_mut().with_config().limit(ANSWER_BYTES);
            let body = read.read_to_vec().map_err(|e| self.unreachable(&e))?;
            Answer { status, body }.good()?;
        }
        Ok(response.into_body().into_reader())
    }

    fn request<B>(&self, method: &str, path: &str, body: B) -> Result<Request<B>, Failure> {
        Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("authorization", &self.authorization)
            .body(body)
            .map_err(|error| Failure::new(Exit::BadInput, &error))
    }

    fn unreachable(&self, cause: &dyn std::fmt::Display) -> Failure {
        let text = format!("cannot reach {}: {cause}", self.base);
        Failure::text(Exit::Internal, text).hint("is the server running? --server says where it is")
    }

    /// Sends a request that must succeed, and parses the JSON of its answer.
    pub(crate) fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask("GET", path, b"")?.good()?.json()
    }
}

/// Permits only addresses over which no third party can read the token.
fn check(base: &str) -> Result<(), Failure> {
    let bad = || Failure::text(Exit::BadInput, format!("{base} is no address of a server"));
    let uri: Uri = base.parse().map_err(|_| bad())?;
    let host = uri.host().ok_or_else(bad)?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_here = host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match uri.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if is_here => Ok(()),
        Some("http") => Err(Failure::text(
            Exit::BadInput,
            format!("the admin token is not sent to {host} over plain HTTP"),
        )
        .hint("use https://, or a tunnel to loopback")),
        _ => Err(bad()),
    }
}

fn read(file: &std::path::Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::text(
            Exit::BadInput,
            format!("cannot read {}: {error}", file.display()),
        )
    };
    if fs::metadata(file).map_err(failed)?.len() > FILE_BYTES {
        let text = format!("{} is too long", file.display());
        return Err(Failure::text(Exit::BadInput, text));
    }
    fs::read(file).map_err(failed)
}

fn token(args: &ServerArgs) -> Result<String, Failure> {
    let from = |file: &std::path::Path| {
        let text = String::from_utf8(read(file)?).unwrap_or_default();
        Ok::<_, Failure>(text.trim().to_owned())
    };
    let token = match (&args.admin_token_file, std::env::var(TOKEN)) {
        (Some(file), _) => from(file)?,
        (None, Ok(token)) if !token.is_empty() => token,
        _ => {
            let file = std::path::Path::new(TOKEN_FILE);
            if !file.exists() {
                let text = "there is no admin token";
                return Err(Failure::text(Exit::BadInput, text).hint(format!(
                    "a server keeps it in its data folder, as admin-token: name that file by \
                     --admin-token-file, or set ${TOKEN}"
                )));
            }
            from(file)?
        }
    };
    match !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(token),
        false => Err(Failure::text(
            Exit::BadInput,
            "the admin token can't be sent",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_not_sent_where_others_read_it() {
        for good in [
            "http://127.0.0.1:8340",
            "http://[::1]:1",
            "http://localhost:8340",
            "https://mail.example",
        ] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "http://mail.example",
            "http://192.0.2.1:8340",
            "ftp://localhost",
            "x",
            "",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
