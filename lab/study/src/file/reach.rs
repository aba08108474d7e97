//! How users reach a system, as a study file writes it.

use lab_language::{
    At, Container, Decode, Fields, Problems, Scalar,
    node::{Node, Value},
};
use schemars::JsonSchema;
use serde::Serialize;

/// TLS settings of connections to the system. The authorities of this machine (or those in `SSL_CERT_FILE`) are always
/// trusted. Paths are relative to the study; files of a `command` may be in `{{ scratch }}`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct TlsFile {
    /// A PEM file with the certificate of the system's authority, or with the system's own if it is self-signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) ca: Option<At<Scalar>>,
    /// A PEM file with the certificate that users present (and its chain). Requires `key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) certificate: Option<At<Scalar>>,
    /// A PEM file with the private key of that certificate. It is read when a trial starts, and never archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) key: Option<At<Scalar>>,
    /// The server name for SNI, which the system's certificate must contain. Default: the host's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) server_name: Option<At<Scalar>>,
    /// `true`: users accept any certificate. The report notes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) insecure: Option<At<Scalar>>,
}

/// The users' version of HTTP, and their connections.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum HttpFile {
    /// The version alone: each user has a connection of its own.
    Version(At<Scalar>),
    /// The version with further settings.
    Full(Box<SpeechFile>),
}

/// The version of HTTP, and the connections.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SpeechFile {
    /// `1`: HTTP/1.1. `2`: HTTP/2. `auto`: over TLS the server's choice, preferably HTTP/2; without TLS HTTP/1.1.
    pub(crate) version: At<Scalar>,
    /// `user`: each user has a connection of its own. `machine`: all users share connections, each of which carries
    /// many requests at a time with `version: 2`, and one with `version: 1`. Default: `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) share: Option<At<Scalar>>,
    /// The number of shared connections, 1 to 1,000,000. Default: 1. Each worker thread of the generator has at least
    /// one.
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
