//! How users reach a system, as a study file writes it.

use lab_language::{
    At, Container, Decode, Fields, Problems, Scalar,
    node::{Node, Value},
};
use schemars::JsonSchema;
use serde::Serialize;

/// TLS to the system: whom to trust, and what to show. The authorities of this machine (or those that
/// `SSL_CERT_FILE` names) are trusted in any case. Files lie beside the study; those of a `command` may
/// lie in `{{ scratch }}`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct TlsFile {
    /// A PEM file with the certificate of the system's authority, or with the system's own where that
    /// is signed by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) ca: Option<At<Scalar>>,
    /// A PEM file with the certificate that users show (and its chain); `key` goes with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) certificate: Option<At<Scalar>>,
    /// A PEM file with the private key of that certificate. It is read when a trial starts, and never
    /// archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) key: Option<At<Scalar>>,
    /// The name that the system is asked for (SNI) and that its certificate must hold; its host's
    /// unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) server_name: Option<At<Scalar>>,
    /// Whether any certificate is taken. The report says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) insecure: Option<At<Scalar>>,
}

/// How users speak HTTP.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum HttpFile {
    /// The version alone: each user has a connection of its own.
    Version(At<Scalar>),
    /// With more.
    Full(Box<SpeechFile>),
}

/// Which version of HTTP, and on whose connections.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SpeechFile {
    /// `1`: HTTP/1.1; `2`: HTTP/2; `auto`: over TLS what the server takes, HTTP/2 first, and HTTP/1.1
    /// without TLS.
    pub(crate) version: At<Scalar>,
    /// `user`: each user has a connection of its own; `machine`: all users have some together, of which
    /// each carries many requests at a time with `version: 2`, and one with `version: 1`. `user` unless
    /// said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) share: Option<At<Scalar>>,
    /// How many connections the users share, 1 to 1,000,000; 1 unless said. Each worker thread of the
    /// generator has one at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connections: Option<At<Scalar>>,
}

impl Container for HttpFile {}

impl Decode for HttpFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return At::decode(node, problems).map(Self::Version);
        };
        let mut fields = Fields::of(node, "how users speak HTTP", problems)?;
        let version = fields.required("version", problems);
        let share = fields.optional("share", problems);
        let connections = fields.optional("connections", problems);
        fields.finish(problems);
        Some(Self::Full(Box::new(SpeechFile {
            version: version?,
            share,
            connections,
        })))
    }
}

impl Decode for TlsFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "the TLS of a system", problems)?;
        let file = Self {
            ca: fields.optional("ca", problems),
            certificate: fields.optional("certificate", problems),
            key: fields.optional("key", problems),
            server_name: fields.optional("server_name", problems),
            insecure: fields.optional("insecure", problems),
        };
        fields.finish(problems);
        Some(file)
    }
}
