//! What users speak, and what they say in it, as written.

use schemars::JsonSchema;
use serde::Serialize;

use super::decode::{Container, Decode, Fields};
use super::parts::{At, OneOrMany, Scalar};
use crate::error::Problems;
use crate::node::{Node, Value};

/// A protocol.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ProtocolFile {
    /// Its name alone.
    #[schemars(with = "String")]
    Name(At<Scalar>),
    /// With what its connections are opened with.
    Full(Box<SpeakingFile>),
}

/// A protocol, and what its connections are opened with. Texts may name variables: `{{ name }}`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SpeakingFile {
    /// Its name: `http`, `redis`, `smtp`.
    #[schemars(with = "String")]
    pub(crate) name: At<Scalar>,
    /// Who signs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) username: Option<At<Scalar>>,
    /// The password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) password: Option<At<Scalar>>,
    /// The database, by its name or number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) database: Option<At<Scalar>>,
    /// Of SMTP: whether each connection goes over to TLS before anything else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) starttls: Option<At<Scalar>>,
}

/// A mail to deliver. Texts may name variables: `{{ name }}`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct MailFile {
    /// Who sends it: the address of the envelope, and of the header `From` where there is no `message`.
    #[schemars(with = "String")]
    pub(crate) from: At<Scalar>,
    /// Who gets it, one or several.
    pub(crate) to: OneOrMany,
    /// Its subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) subject: Option<At<Scalar>>,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) text: Option<At<Scalar>>,
    /// In the place of subject and text: all of it, headers first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) message: Option<At<Scalar>>,
}

impl Container for ProtocolFile {}

impl ProtocolFile {
    pub(crate) fn name(&self) -> &At<Scalar> {
        match self {
            Self::Name(name) => name,
            Self::Full(full) => &full.name,
        }
    }
}

impl Decode for ProtocolFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return At::decode(node, problems).map(Self::Name);
        };
        let mut fields = Fields::of(node, "a protocol", problems)?;
        let name = fields.required("name", problems);
        let username = fields.optional("username", problems);
        let password = fields.optional("password", problems);
        let database = fields.optional("database", problems);
        let starttls = fields.optional("starttls", problems);
        fields.finish(problems);
        Some(Self::Full(Box::new(SpeakingFile {
            name: name?,
            username,
            password,
            database,
            starttls,
        })))
    }
}

impl Container for MailFile {}

impl Decode for MailFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a mail", problems)?;
        let from = fields.required("from", problems);
        let to = fields.required("to", problems);
        let subject = fields.optional("subject", problems);
        let text = fields.optional("text", problems);
        let message = fields.optional("message", problems);
        fields.finish(problems);
        Some(Self {
            from: from?,
            to: to?,
            subject,
            text,
            message,
        })
    }
}
