//! What users speak with a system, and what a request says in it, where that is not HTTP. It knows no
//! bytes: how it is said is a client's business.

use serde::{Deserialize, Serialize};

use crate::template::Template;

/// What the users of a workload speak.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speech<T = Template> {
    /// HTTP; which version is the study's business.
    Http,
    /// Redis and what speaks like it (RESP2).
    Redis(SignIn<T>),
    /// SMTP, which delivers mail.
    Smtp {
        /// Who signs in, if anybody does.
        sign_in: SignIn<T>,
        /// Whether it goes over to TLS on the open connection.
        starttls: bool,
    },
}

/// Who opens a connection, where the protocol asks for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SignIn<T = Template> {
    /// The name.
    pub username: Option<T>,
    /// The password.
    pub password: Option<T>,
    /// The database, by its name or number.
    pub database: Option<T>,
}

/// What a request says in another protocol than HTTP.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said<T = Template> {
    /// A command, word by word; at least one.
    Words(Vec<T>),
    /// A mail.
    Mail {
        /// Who sends it, as the envelope says.
        from: T,
        /// Who gets it, as the envelope says; at least one.
        to: Vec<T>,
        /// All of it: headers, an empty line, and the text.
        text: T,
    },
}

impl<T> Speech<T> {
    /// The name of the protocol, as workloads have it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Redis(_) => "redis",
            Self::Smtp { .. } => "smtp",
        }
    }

    /// Whether it is HTTP.
    #[must_use]
    pub fn is_http(&self) -> bool {
        matches!(self, Self::Http)
    }

    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Speech<U>, E> {
        Ok(match self {
            Self::Http => Speech::Http,
            Self::Redis(sign_in) => Speech::Redis(sign_in.try_map(map)?),
            Self::Smtp { sign_in, starttls } => Speech::Smtp {
                sign_in: sign_in.try_map(map)?,
                starttls: *starttls,
            },
        })
    }
}

impl<T> SignIn<T> {
    fn try_map<U, E>(&self, map: &mut impl FnMut(&T) -> Result<U, E>) -> Result<SignIn<U>, E> {
        let mut one = |template: &Option<T>| template.as_ref().map(&mut *map).transpose();
        Ok(SignIn {
            username: one(&self.username)?,
            password: one(&self.password)?,
            database: one(&self.database)?,
        })
    }
}

impl<T> Said<T> {
    /// All that it renders, in order.
    pub fn templates(&self) -> impl Iterator<Item = &T> {
        let (first, more, last): (_, &[T], _) = match self {
            Self::Words(words) => (None, words, None),
            Self::Mail { from, to, text } => (Some(from), to, Some(text)),
        };
        first.into_iter().chain(more).chain(last)
    }

    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Said<U>, E> {
        let mut all = |templates: &[T]| templates.iter().map(&mut *map).collect::<Result<_, E>>();
        Ok(match self {
            Self::Words(words) => Said::Words(all(words)?),
            Self::Mail { from, to, text } => Said::Mail {
                to: all(to)?,
                from: map(from)?,
                text: map(text)?,
            },
        })
    }
}

impl Said {
    /// As a person reads it: the words, or the first line of what is said.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Words(words) => {
                let words: Vec<&str> = words.iter().map(Template::source).collect();
                words.join(" ")
            }
            Self::Mail { to, .. } => {
                let to: Vec<&str> = to.iter().map(Template::source).collect();
                format!("mail to {}", to.join(", "))
            }
        }
    }
}
