//! Signatures of requests.

use lab_workload::sign::Sign;
use lab_workload::template::Escape;
use lab_workload::{KeyKind, Speech, Template};

use super::header::header_problem;
use super::names::unknown_name;
use super::request::Compiler;
use crate::nearest;
use lab_units::nearest::one_of;

use crate::file::{RequestFile, SignFile, WorkloadFile};
use lab_units::parts::{At, Scalar};

impl Compiler<'_> {
    /// Reports a problem if a workload of another protocol has `sign` or `auth`.
    pub(super) fn refuse_sign(&mut self, file: &WorkloadFile) -> Option<()> {
        let sign = file.sign.as_ref().map(|at| (&at.span, "sign"));
        let auth = file.auth.as_ref().map(|at| (&at.span, "auth"));
        let Some((span, key)) = sign.or(auth) else {
            return Some(());
        };
        let message = format!("`{key}` belongs to requests of HTTP");
        match self.speech {
            Speech::Http => Some(()),
            Speech::Grpc { .. } | Speech::WebSocket { .. } if key == "auth" => {
                let help = "obtain a token before the run, and show it by \
                            `headers: { Authorization: \"Bearer {{ secret('TOKEN') }}\" }`";
                self.refuse_here(span, &message, help)
            }
            _ => self.refuse(span, &message),
        }
    }

    /// Compiles the requests that a step lists, with its `sign` and `auth` as defaults.
    pub(super) fn listed<T>(
        &mut self,
        step: &RequestFile,
        compile: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let (sign, auth) = (self.sign(step.sign.as_ref())?, self.auth(step)?);
        let sign = std::mem::replace(&mut self.sign, sign);
        let auth = std::mem::replace(&mut self.credentials, auth);
        let compiled = compile(self);
        (self.sign, self.credentials) = (sign, auth);
        Some(compiled)
    }

    /// Checks the key that a signature names; `None` if a problem was reported.
    fn check_key(&mut self, sign: &Sign<At<Scalar>>) -> Option<()> {
        let Some((at, wanted, user)) = sign.key() else {
            return Some(());
        };
        let text = at.text();
        if text.contains("{{") {
            return Some(());
        }
        let Some(key) = self.keys.iter().find(|key| key.name == text) else {
            let is_itself =
                self.keys.is_empty() && (wanted == KeyKind::Secret || text.contains("-----BEGIN "));
            if is_itself {
                return Some(());
            }
            let names: Vec<&str> = self.keys.iter().map(|key| key.name.as_str()).collect();
            let (message, help) = match names.is_empty() {
                // It may be a key itself, and is not shown.
                false if nearest(&text, &names).is_none() => (
                    "this is no name of a key".to_owned(),
                    format!("the keys of the workload are {}", one_of(&names)),
                ),
                false => unknown_name("key", &text, &names),
                true => (
                    format!("there is no key `{text}`"),
                    format!(
                        "name it at the top of the workload: `keys: {{ {text}: {{ file: {text}.pem }} }}`"
                    ),
                ),
            };
            return self.refuse_here(&at.span, &message, &help);
        };
        match key.mismatch(wanted, user) {
            None => Some(()),
            Some(message) => self.refuse_here(
                &at.span,
                &message,
                "name another one of the `keys`, or another algorithm",
            ),
        }
    }

    /// Returns a request's signature: its own, or that of its step or workload; `None` if a problem was reported.
    pub(super) fn sign(
        &mut self,
        file: Option<&At<SignFile>>,
    ) -> Option<Option<Box<Sign<Template>>>> {
        let Some(file) = file else {
            return Some(self.sign.clone());
        };
        let sign = match &file.value {
            SignFile::None(word) if word.text() == "none" => return Some(None),
            SignFile::None(word) => {
                let message = format!("`{}` signs nothing", word.text());
                let help = "write `none`, or what signs: `sign: { hmac: { … } }`";
                return self.refuse_here(&word.span, &message, help);
            }
            SignFile::By(sign) => sign,
        };
        if let Some(message) = sign.problem() {
            return self.refuse_here(
                &file.span,
                &message,
                "see “Signed requests” in the documentation",
            );
        }
        let mut names = sign.own_headers();
        if let Some((message, help)) = names.find_map(|name| header_problem(name, "")) {
            return self.refuse_here(&file.span, &message, help);
        }
        self.check_key(sign)?;
        let escape = match **sign {
            Sign::Hmac(_) => Escape::Signed,
            _ => Escape::None,
        };
        let mut compile = |text: &_| self.template("sign", text, escape).ok_or(());
        let sign = sign.try_map(&mut compile).ok()?;
        if self.is_repeatable && sign.has_time(Template::names) {
            let message = "this signature has the time of day, which the seed doesn't repeat";
            let help = "sign by `hmac` without `timestamp`, or leave out `repeatable`";
            return self.refuse_here(&file.span, message, help);
        }
        Some(Some(Box::new(sign)))
    }
}
