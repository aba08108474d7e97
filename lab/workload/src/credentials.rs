//! The credentials of a request, in the header `Authorization`, and the effect of a refusal on them.

use lab_filters::auth::{Answer, Digest};
use lab_filters::sha256;
use serde::{Deserialize, Serialize};

use crate::render_error::RenderError;
use crate::scope::UserScope;
use crate::slot::Slot;
use crate::template::Template;

/// The credentials of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credentials<T = Template> {
    /// The bearer token in this variable.
    Bearer(Slot),
    /// The answer to the challenge of the server.
    Digest(Digest<T>),
}

/// The challenge that a user answers.
#[derive(Debug)]
pub struct HeldChallenge {
    answer: Answer,
    /// The client's nonce, which follows from the user and the server's nonce.
    cnonce: String,
    /// How many requests have answered it.
    count: u32,
}

impl HeldChallenge {
    /// Continues the count of another challenge with the same nonce, so that no count is used twice.
    pub fn go_on_from(&mut self, other: &Self) {
        if self.answer.nonce == other.answer.nonce {
            self.count = self.count.max(other.count);
        }
    }
}

impl<T> Credentials<T> {
    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Credentials<U>, E> {
        Ok(match self {
            Self::Bearer(slot) => Credentials::Bearer(*slot),
            Self::Digest(digest) => Credentials::Digest(digest.try_map(map)?),
        })
    }
}

impl Credentials {
    /// The value of `Authorization` for a request with this method and target; `None` while there is no challenge to
    /// answer.
    ///
    /// # Errors
    /// [`RenderError::EmptyList`] without a token, and what can't be rendered.
    pub fn header(
        &self,
        request: (&str, &str),
        scope: &mut UserScope,
        challenge: Option<&mut HeldChallenge>,
    ) -> Result<Option<String>, RenderError> {
        let value = match self {
            Self::Bearer(slot) => {
                let token = scope.text(*slot).ok_or_else(|| scope.missing(*slot))?;
                format!("Bearer {token}")
            }
            Self::Digest(who) => {
                let Some(HeldChallenge {
                    answer,
                    cnonce,
                    count,
                }) = challenge
                else {
                    return Ok(None);
                };
                *count = count.saturating_add(1);
                let who = who.try_map(&mut |text| {
                    let mut rendered = String::new();
                    text.render(scope, &mut rendered).map(|()| rendered)
                })?;
                answer.header(&who, request, (*count, &cnonce[..32]))
            }
        };
        match value.contains(|c: char| c.is_control()) {
            false => Ok(Some(value)),
            true => Err(failed("a credential holds a control character".to_owned())),
        }
    }

    /// Handles a response 401 with these challenges: forgets the token, or returns the challenge that the user answers
    /// from now on and for which the request is sent again. `is_answer` says whether the request has already answered a
    /// challenge of its own.
    ///
    /// # Errors
    /// The reason why no challenge can be answered.
    pub fn refused(
        &self,
        challenges: &str,
        is_answer: bool,
        scope: &mut UserScope,
    ) -> Result<Option<Box<HeldChallenge>>, String> {
        match self {
            Self::Bearer(slot) => {
                scope.clear(*slot);
                Ok(None)
            }
            Self::Digest(_) => {
                let answer = Answer::to(challenges)?;
                if is_answer && !answer.is_stale {
                    return Ok(None);
                }
                let cnonce = sha256(format!("{}:{}", scope.identity(), answer.nonce).as_bytes());
                Ok(Some(Box::new(HeldChallenge {
                    answer,
                    cnonce,
                    count: 0,
                })))
            }
        }
    }
}

fn failed(cause: String) -> RenderError {
    RenderError::Failed {
        template: "auth".to_owned(),
        cause,
    }
}
