//! Signs the requests of a user: renders the texts, and returns the headers. [`lab_filters::sign`] computes the
//! signature.

use std::borrow::Cow;
use std::sync::Arc;

use lab_filters::sign::{Header, HmacSign, Moment, Outgoing, PARTS, Sign, names_with_parts};

use crate::attached::Attached;
use crate::model::{Body, Piece, Request};
use crate::render_error::RenderError;
use crate::scope::{Slot, UserScope};
use crate::template::Template;

/// Signs a request.
#[derive(Debug)]
pub struct Signer {
    sign: Sign<Template>,
    /// Names that its templates may use.
    names: Arc<[String]>,
    /// The parts of a request that the texts of `hmac` name.
    named: [bool; PARTS.len()],
    /// SHA-256 of a body that is a single file.
    body_sha256: Option<Box<str>>,
}

impl Signer {
    /// The signer of a request, if it is signed.
    #[must_use]
    pub fn new(request: &Request, files: &[Attached], variables: &[String]) -> Option<Box<Self>> {
        let sign = request.sign.as_deref()?.clone();
        let named = PARTS.map(|part| match &sign {
            Sign::Hmac(hmac) => hmac.parts().any(|text| text.names(part)),
            Sign::AwsSigv4(_) | Sign::HttpSignature(_) | Sign::Oauth1(_) => false,
        });
        let body_sha256 = match &request.body {
            Body::Pieces(pieces) => match pieces[..] {
                [Piece::File(place)] => files.get(place),
                _ => None,
            },
            _ => None,
        };
        Some(Box::new(Self {
            sign,
            names: names_with_parts(variables).into(),
            named,
            body_sha256: body_sha256.map(|file| file.sha256.as_str().into()),
        }))
    }

    /// The headers of the signature. `is_file` is true if the request carries its file, which a redirect may drop.
    ///
    /// # Errors
    /// When a template can't be rendered, or a key can't sign.
    pub fn headers<'a>(
        &'a self,
        mut request: Outgoing<'a>,
        is_file: bool,
        scope: &mut UserScope,
    ) -> Result<Vec<Header>, RenderError> {
        request.body_sha256 = self.body_sha256.as_deref().filter(|_| is_file);
        let headers = match &self.sign {
            Sign::Hmac(hmac) => self.by_hmac(hmac, &request, scope)?,
            other => {
                let rendered = other.try_map(&mut |text| rendered(text, scope))?;
                let nonce = match other {
                    Sign::Oauth1(_) => nonce(scope),
                    _ => String::new(),
                };
                let key = named_key(&self.sign, scope)?;
                let moment = Moment {
                    seconds: scope.now_seconds(),
                    nonce: &nonce,
                    key: key.as_deref(),
                };
                rendered.headers(&request, moment).map_err(failed)?
            }
        };
        let is_sound = |value: &str| match value.is_ascii() {
            true => !value.bytes().any(|b| b.is_ascii_control() && b != b'\t'),
            false => !value.contains(|c: char| c.is_control() && c != '\t'),
        };
        match headers.iter().find(|(_, value)| !is_sound(value)) {
            None => Ok(headers),
            Some((name, _)) => Err(failed(format!(
                "the value of header `{name}` holds a control character"
            ))),
        }
    }

    fn by_hmac(
        &self,
        hmac: &HmacSign<Template>,
        request: &Outgoing<'_>,
        scope: &mut UserScope,
    ) -> Result<Vec<Header>, RenderError> {
        let mut values = Vec::with_capacity(PARTS.len());
        for (part, is_named) in PARTS.into_iter().zip(self.named) {
            values.push(match part {
                _ if !is_named => String::new(),
                "timestamp" => scope.now_seconds().to_string(),
                "nonce" => nonce(scope),
                _ => request.part(part).map_err(failed)?,
            });
        }
        let last = Slot::try_from(self.names.len().saturating_sub(1)).unwrap_or(Slot::MAX);
        scope.with_more(&self.names, values.into_iter(), |scope| {
            let key = match named_key(&self.sign, scope)? {
                Some(key) => key,
                None => rendered(&hmac.key, scope)?.into_owned().into_bytes(),
            };
            let over = rendered(&hmac.over, scope)?;
            scope.set_text(last, &hmac.signature(&key, &over).map_err(failed)?);
            let headers = hmac.headers.iter();
            let header = |(name, value): (&String, _)| {
                Ok((name.clone(), rendered(value, scope)?.into_owned()))
            };
            headers.map(header).collect()
        })
    }
}

/// The key that a signature names; `None` if its text is the key itself.
fn named_key(sign: &Sign<Template>, scope: &UserScope) -> Result<Option<Vec<u8>>, RenderError> {
    let name = sign.key().and_then(|(key, ..)| key.as_literal());
    let key = name.and_then(|name| scope.named_key(name));
    key.transpose().map_err(failed)
}

/// A unique text of the user's own stream.
fn nonce(scope: &mut UserScope) -> String {
    let [first, second] = [(); 2].map(|()| scope.choice().bits());
    format!("{first:016x}{second:016x}")
}

fn rendered<'t>(
    template: &'t Template,
    scope: &mut UserScope,
) -> Result<Cow<'t, str>, RenderError> {
    if let Some(text) = template.as_literal() {
        return Ok(text.into());
    }
    let mut text = String::new();
    template.render(scope, &mut text)?;
    Ok(text.into())
}

fn failed(cause: String) -> RenderError {
    RenderError::Failed {
        template: "sign".to_owned(),
        cause,
    }
}
