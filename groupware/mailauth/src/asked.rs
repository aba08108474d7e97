//! The checks: the three methods by `mail-auth`, and their outcomes as our types.

use std::time::Duration;

use groupware_proto_mime::{Finding, Findings, Outcome};
use mail_auth::dmarc::verify::DmarcParameters;
use mail_auth::spf::verify::SpfParameters;
use mail_auth::{
    AuthenticatedMessage, DkimOutput, DkimResult, DmarcOutput, DmarcResult, MessageAuthenticator,
    SpfOutput, SpfResult,
};

use crate::budget::Budget;
use crate::message::{BodyHashes, SIGNATURES};
use crate::{ResolverError, Transport, message, resolver};

/// The time limit for all checks of a message, with all DNS queries.
const WITHIN: Duration = Duration::from_secs(10);
/// The limit of DNS queries for SPF. The method's own limit (RFC 7208, 4.6.4) is ten terms, each of which may name ten
/// hosts.
const SPF_QUESTIONS: u32 = 40;
/// One query for a key per signature.
const DKIM_QUESTIONS: u32 = SIGNATURES as u32;
/// The limit of queries for the DMARC policies of the domains in a message: at most eight for each domain.
const DMARC_QUESTIONS: u32 = 25;

/// The maximum number of DNS queries for one message. A query without an answer is repeated once. The resolver follows
/// an answer with another name, and has its own limit for that.
pub const QUESTIONS: u32 = SPF_QUESTIONS + DKIM_QUESTIONS + DMARC_QUESTIONS;

/// Checks messages that a server receives. It belongs to the runtime that uses it first.
pub struct MailAuth {
    authenticator: MessageAuthenticator,
    /// The name of the server.
    server: String,
    within: Duration,
}

impl MailAuth {
    /// Creates the checks for a server of this name with these resolvers; without any, with those of the system
    /// (`/etc/resolv.conf`).
    ///
    /// # Errors
    /// When the system's resolvers can't be read.
    pub fn new(server: &str, resolvers: &[std::net::SocketAddr]) -> Result<Self, ResolverError> {
        Ok(Self {
            authenticator: resolver::authenticator(resolvers)?,
            server: server.to_owned(),
            within: WITHIN,
        })
    }

    /// Sets another time limit.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// Checks a message whose body has these hashes.
    pub async fn findings(
        &self,
        came: Transport<'_>,
        message: &[u8],
        hashes: &BodyHashes,
    ) -> Findings {
        let Some(message) = message::parse(message, hashes) else {
            return late(came, None, Outcome::None);
        };
        match tokio::time::timeout(self.within, self.ask(came, &message)).await {
            Ok(findings) => findings,
            Err(_) => late(came, Some(&message), Outcome::TempError),
        }
    }

    async fn ask(&self, came: Transport<'_>, message: &AuthenticatedMessage<'_>) -> Findings {
        let for_keys = Budget::of(DKIM_QUESTIONS);
        let (spf, dkim) = tokio::join!(
            self.spf(came),
            self.authenticator.verify_dkim(for_keys.bound(message))
        );
        let dmarc = self.dmarc(came, message, (&spf, &dkim)).await;
        let spf = spf_finding(came, &spf);
        let dkim = dkim.iter().map(dkim_finding).collect();
        let dmarc = Finding::new(dmarc, from_domain(message));
        Findings { spf, dkim, dmarc }
    }

    /// Checks whether the domain in `From` is confirmed by SPF or DKIM.
    async fn dmarc(
        &self,
        came: Transport<'_>,
        message: &AuthenticatedMessage<'_>,
        (spf, dkim): (&SpfOutput, &[DkimOutput<'_>]),
    ) -> Outcome {
        let budget = Budget::of(DMARC_QUESTIONS);
        let asked = DmarcParameters {
            message,
            dkim_output: dkim,
            dkim2_output: None,
            rfc5321_mail_from_domain: &sender_domain(came),
            spf_output: spf,
        };
        let verified = self.authenticator.verify_dmarc(budget.bound(asked));
        let output = verified.await;
        let is_open = matches!(spf.result(), SpfResult::TempError)
            || dkim
                .iter()
                .any(|it| matches!(it.result(), DkimResult::TempError(_)));
        match dmarc_outcome(message, &output, is_open) {
            Outcome::Pass => Outcome::Pass,
            // The skipped queries might have confirmed it.
            _ if budget.is_exceeded() => Outcome::PermError,
            other => other,
        }
    }

    /// Checks SPF. For a message without a sender, the client's name is checked (RFC 7208, 2.4). Exceeding the limit of
    /// queries has the same result as exceeding the method's own limit (4.6.4).
    async fn spf(&self, came: Transport<'_>) -> SpfOutput {
        let budget = Budget::of(SPF_QUESTIONS);
        let Transport {
            client,
            helo,
            sender,
        } = came;
        let asked = match sender.is_empty() {
            true => SpfParameters::verify_ehlo(client, helo, &self.server),
            false => SpfParameters::verify_mail_from(client, helo, &self.server, sender),
        };
        let output = self.authenticator.verify_spf(budget.bound(asked)).await;
        match budget.is_exceeded() {
            true => output.with_result(SpfResult::PermError),
            false => output,
        }
    }
}

/// Returns the domain that SPF checks.
fn sender_domain(came: Transport<'_>) -> String {
    let domain = came.sender.rsplit_once('@').map(|(_, domain)| domain);
    domain.unwrap_or(came.helo).to_lowercase()
}

/// Returns the domain in `From`, the first of several.
fn from_domain<'a>(message: &'a AuthenticatedMessage<'_>) -> &'a str {
    let domain = message.from().rsplit_once('@').map(|(_, domain)| domain);
    domain.unwrap_or_default()
}

/// Returns findings for a message that was not checked.
fn late(
    came: Transport<'_>,
    message: Option<&AuthenticatedMessage<'_>>,
    outcome: Outcome,
) -> Findings {
    Findings {
        spf: Finding::new(outcome, mail_from(came)),
        dkim: Vec::new(),
        dmarc: Finding::new(outcome, message.map_or("", from_domain)),
    }
}

/// Returns the domain of the envelope's sender, if there is one.
fn mail_from<'a>(came: Transport<'a>) -> &'a str {
    let domain = came.sender.rsplit_once('@').map(|(_, domain)| domain);
    domain.unwrap_or_default()
}

fn spf_finding(came: Transport<'_>, output: &SpfOutput) -> Finding {
    let outcome = match output.result() {
        SpfResult::Pass => Outcome::Pass,
        SpfResult::Fail => Outcome::Fail,
        SpfResult::SoftFail => Outcome::SoftFail,
        SpfResult::Neutral => Outcome::Neutral,
        SpfResult::TempError => Outcome::TempError,
        SpfResult::PermError => Outcome::PermError,
        SpfResult::None => Outcome::None,
    };
    Finding::new(outcome, mail_from(came))
}

fn dkim_finding(output: &DkimOutput<'_>) -> Finding {
    let outcome = match output.result() {
        DkimResult::Pass => Outcome::Pass,
        DkimResult::Neutral(_) => Outcome::Neutral,
        DkimResult::Fail(_) => Outcome::Fail,
        DkimResult::PermError(_) => Outcome::PermError,
        DkimResult::TempError(_) => Outcome::TempError,
        DkimResult::None => Outcome::None,
    };
    let signature = output.signature();
    Finding::new(outcome, signature.map_or("", |signature| &signature.d))
}

/// Returns whether the domain in `From` is confirmed. If a DNS failure left a result open, the message doesn't fail.
fn dmarc_outcome(
    message: &AuthenticatedMessage<'_>,
    output: &DmarcOutput,
    is_open: bool,
) -> Outcome {
    let mut domains = message
        .froms()
        .iter()
        .map(|from| from.rsplit_once('@').map(|it| it.1));
    let first = domains.next();
    if domains.any(|domain| Some(domain) != first) {
        // Mail programs may show any of the authors.
        return Outcome::PermError;
    }
    let results = [output.dkim_result(), output.spf_result()];
    let is = |wanted: fn(&DmarcResult) -> bool| results.into_iter().any(wanted);
    if is(|it| matches!(it, DmarcResult::Pass)) {
        Outcome::Pass
    } else if is(|it| matches!(it, DmarcResult::TempError(_))) {
        Outcome::TempError
    } else if is(|it| matches!(it, DmarcResult::PermError(_))) {
        Outcome::PermError
    } else if output.dmarc_record().is_none() {
        Outcome::None
    } else if is_open {
        Outcome::TempError
    } else {
        Outcome::Fail
    }
}
