//! How users obtain credentials, and which requests send them.

use std::time::Duration;

use lab_workload::auth::{Auth, Oauth2};
use lab_workload::sign::Sign;
use lab_workload::template::Escape;
use lab_workload::{
    Credentials, Request, Slot, Step, TOKEN_STEP, TOKEN_VARIABLES, Template, Tokens,
};

use super::request::Compiler;
use super::variable;
use crate::error::Problems;
use crate::file::{RequestFile, WorkloadFile};
use crate::units;
use lab_units::parts::{At, Scalar};

/// The default time between renewal and expiry of a token.
const RENEW: Duration = Duration::from_secs(30);

/// Returns the variables that hold the tokens of users; `None` if a problem was reported.
pub(super) fn variables(
    file: &WorkloadFile,
    taken: &[String],
    problems: &mut Problems,
) -> Option<&'static [&'static str]> {
    let Some(auth) = &file.auth else {
        return Some(&[]);
    };
    let names: &[&str] = match *auth.value.0 {
        Auth::Oauth2(_) => &TOKEN_VARIABLES,
        Auth::Digest(_) => &[],
    };
    let is_taken = |name: &&&str| taken.iter().any(|one| one == *name);
    if let Some(name) = names.iter().find(is_taken) {
        let message = format!("`{name}` is a variable that `auth` sets");
        let problem = auth.span.first_line().problem(message, "here");
        problems.push(problem.help("give the workload's variable another name"));
        return None;
    }
    Some(names)
}

impl Compiler<'_> {
    /// Reads the credentials that all further requests send. For OAuth 2, returns the token requests; `None` when a
    /// problem was noted.
    pub(super) fn obtained(&mut self, file: &WorkloadFile) -> Option<Option<Tokens<Request>>> {
        let Some(auth) = &file.auth else {
            return Some(None);
        };
        let (credentials, tokens) = match &*auth.value.0 {
            Auth::Digest(digest) => {
                let mut compile = |at: &_| self.template("auth", at, Escape::None).ok_or(());
                (
                    Credentials::Digest(digest.try_map(&mut compile).ok()?),
                    None,
                )
            }
            Auth::Oauth2(oauth2) => {
                if let Some(key) = oauth2.missing() {
                    let grant = oauth2.grant.name();
                    let message = format!("the grant `{grant}` needs the key `{key}`");
                    return self.refuse_here(&auth.span, &message, &format!("add `{key}: …`"));
                }
                if let Some(key) = oauth2.unused() {
                    let grant = oauth2.grant.name();
                    let message = format!("the grant `{grant}` has no use for `{key}`");
                    let help = "leave it out, or name another `grant`: password, refresh_token";
                    return self.refuse_here(&auth.span, &message, help);
                }
                if let Some(name) = oauth2.doubled() {
                    let message = format!("`form` can't have the field `{name}`");
                    let help = "`form` is for further fields: `grant`, `scope`, and credentials are keys of `oauth2`";
                    return self.refuse_here(&auth.span, &message, help);
                }
                let slot = variable::slot(self.variables, TOKEN_VARIABLES[0])?;
                let tokens = self.tokens(oauth2, slot)?;
                (Credentials::Bearer(slot), Some(tokens))
            }
        };
        self.credentials = Some(Box::new(credentials));
        Some(tokens)
    }

    /// Returns true if the workload's users obtain tokens.
    pub(super) fn has_tokens(&self) -> bool {
        matches!(self.credentials.as_deref(), Some(Credentials::Bearer(_)))
    }

    fn tokens(&mut self, auth: &Oauth2<At<Scalar>>, slot: Slot) -> Option<Tokens<Request>> {
        let (method, target) = self.request_line(&auth.token)?;
        if method != "POST" {
            let message = "a token is asked for by POST";
            let help = "write `token: POST /oauth/token`";
            return self.refuse_here(&auth.token.span, message, help);
        }
        let renew = auth.renew.as_ref().map(|at| {
            let renew = |text: &str| units::duration(text, units::MAX_WAIT);
            self.setting("renew", at, renew)
        });
        let mut compile = |at: &_| self.template("auth", at, Escape::Form).ok_or(());
        // The texts of the form; the target is compiled separately.
        let form = auth.try_map(&mut compile).ok()?;
        let refresh = format!("{{{{ {} }}}}", TOKEN_VARIABLES[4]);
        let refresh = Template::parse_with(&refresh, self.symbols(), Escape::Form).ok()?;
        Tokens::new(
            &form,
            &target,
            renew.unwrap_or(Some(RENEW))?,
            (slot, refresh),
        )
    }

    /// Returns the credentials of a step or request with this `auth` key.
    pub(super) fn auth(&mut self, file: &RequestFile) -> Option<Option<Box<Credentials>>> {
        match &file.auth {
            None => Some(self.credentials.clone()),
            Some(word) if word.text() == "none" => Some(None),
            Some(other) => {
                let message = "`auth` of a step or a request is `none`";
                let help = "say at the top of the workload how credentials are obtained";
                self.refuse_here(&other.span, message, help)
            }
        }
    }

    /// Returns the credentials that `auth` gives a request; none if the request has its own.
    pub(super) fn credentials_of(
        &mut self,
        file: &RequestFile,
        sign: Option<&Sign<Template>>,
    ) -> Option<Option<Box<Credentials>>> {
        let mut names = file.headers.iter().map(|(name, _)| name.value.as_str());
        let is_in_header = names.any(|name| name.eq_ignore_ascii_case("authorization"));
        let signed = sign.map(|sign| sign.secret_headers(Template::names));
        let is_signed = signed.is_some_and(|names| names.iter().any(|one| one == "authorization"));
        let has_own = is_in_header || is_signed || file.basic_auth.is_some();
        Some(self.auth(file)?.filter(|_| !has_own))
    }
}

/// Adds the steps of token requests: the first step of the setup, and a name after the steps of the session.
pub(super) fn add_steps(tokens: &Tokens<Request>, setup: &mut Vec<Step>, session: &mut Vec<Step>) {
    setup.insert(0, Step::of(TOKEN_STEP, vec![tokens.obtain.clone()]));
    session.push(Step::of(TOKEN_STEP, Vec::new()));
}
