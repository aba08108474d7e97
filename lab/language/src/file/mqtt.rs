//! The raw form of requests of MQTT.

use schemars::JsonSchema;
use serde::Serialize;

use super::raw::BytesFile;
use crate::error::Problems;
use crate::node::{Node, Value};
use crate::source::Span;
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, OneOrMany, Scalar};

/// A request of MQTT: one of these keys, or `publish` and `receive`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub(crate) struct MqttFile {
    /// For MQTT: the message to publish, `{ topic: rooms/7, text: "21.5", qos: 1 }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) publish: Option<At<PublishFile>>,
    /// For MQTT: the topics to subscribe to: a filter such as `rooms/+/heat`, a list of them, or
    /// `{ topics: rooms/#, qos: 1 }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subscribe: Option<At<SubscribeFile>>,
    /// For MQTT: the filters whose subscriptions end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unsubscribe: Option<OneOrMany>,
    /// For MQTT: waits for a message on the topics of this filter. Its content is the response. With `publish`, waits
    /// for one that arrives after the message is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) receive: Option<At<Scalar>>,
}

/// A message to publish. Its content is one of `text`, `hex`, and `file`; without them it is empty.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct PublishFile {
    /// The topic. It may name variables: `{{ name }}`.
    #[schemars(with = "String")]
    pub(crate) topic: At<Scalar>,
    /// The content.
    #[serde(flatten)]
    pub(crate) bytes: BytesFile,
    /// The quality of service: 0 (no answer; the default), 1 (acknowledged), or 2 (exactly once).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u8>")]
    pub(crate) qos: Option<At<Scalar>>,
    /// Whether the broker keeps the message for later subscribers. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<bool>")]
    pub(crate) retain: Option<At<Scalar>>,
}

/// Topics to subscribe to.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SubscribeFile {
    /// The filters alone.
    Topics(OneOrMany),
    /// The filters and the quality of service.
    Full(Box<SubscriptionFile>),
}

/// Topics to subscribe to, with the quality of service.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct SubscriptionFile {
    /// The filter, or a list of filters.
    pub(crate) topics: OneOrMany,
    /// The highest quality of service of messages: 0, 1, or 2. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u8>")]
    pub(crate) qos: Option<At<Scalar>>,
}

impl MqttFile {
    pub(crate) fn from_fields(fields: &mut Fields, problems: &mut Problems) -> Self {
        Self {
            publish: fields.optional("publish", problems),
            subscribe: fields.optional("subscribe", problems),
            unsubscribe: fields.optional("unsubscribe", problems),
            receive: fields.optional("receive", problems),
        }
    }

    /// Returns its first key and that key's place; `None` if it has none.
    pub(crate) fn place(&self) -> Option<(&'static str, &Span)> {
        let publish = self.publish.as_ref().map(|at| ("publish", &at.span));
        let subscribe = self.subscribe.as_ref().map(|at| ("subscribe", &at.span));
        let ends = self.unsubscribe.as_ref();
        let ends = ends.and_then(|topics| topics.as_slice().first());
        let ends = ends.map(|at| ("unsubscribe", &at.span));
        let receive = self.receive.as_ref().map(|at| ("receive", &at.span));
        publish.or(subscribe).or(ends).or(receive)
    }

    /// Returns the file that it sends.
    pub(crate) fn file(&self) -> Option<&At<Scalar>> {
        self.publish.as_ref()?.value.bytes.file.as_ref()
    }
}

impl Container for PublishFile {}

impl Decode for PublishFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "a message to publish", problems)?;
        let topic = fields.required("topic", problems);
        let bytes = BytesFile::from_fields(&mut fields, problems);
        let qos = fields.optional("qos", problems);
        let retain = fields.optional("retain", problems);
        fields.finish(problems);
        Some(Self {
            topic: topic?,
            bytes,
            qos,
            retain,
        })
    }
}

impl Container for SubscribeFile {}

impl Decode for SubscribeFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return OneOrMany::decode(node, problems).map(Self::Topics);
        };
        let mut fields = Fields::of(node, "a subscription", problems)?;
        let topics = fields.required("topics", problems);
        let qos = fields.optional("qos", problems);
        fields.finish(problems);
        Some(Self::Full(Box::new(SubscriptionFile {
            topics: topics?,
            qos,
        })))
    }
}
