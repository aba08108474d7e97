//! Requests of MQTT. It knows no packets.

use serde::{Deserialize, Serialize};

use crate::raw::RawBytes;
use crate::template::Template;

/// A request of MQTT.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MqttRequest<T = Template> {
    /// Publishes a message; with `receive`, also waits for a message on topics of this filter.
    Publish {
        /// The topic.
        topic: T,
        /// The content.
        payload: RawBytes<T>,
        /// The quality of service, 0 to 2.
        qos: u8,
        /// True if the broker keeps it for later subscribers.
        retain: bool,
        /// The topics of the message to wait for.
        receive: Option<T>,
    },
    /// Subscribes to topics.
    Subscribe {
        /// The filters; at least one.
        topics: Vec<T>,
        /// The highest quality of service, 0 to 2.
        qos: u8,
    },
    /// Ends subscriptions.
    Unsubscribe {
        /// The filters; at least one.
        topics: Vec<T>,
    },
    /// Waits for a message on topics of this filter.
    Receive {
        /// The topics.
        topic: T,
    },
}

impl<T> MqttRequest<T> {
    /// All its templates, in order: one, several, and up to two more.
    pub(crate) fn templates(&self) -> (Option<&T>, &[T], Option<&T>, Option<&T>) {
        match self {
            Self::Publish {
                topic,
                payload,
                receive,
                ..
            } => (Some(topic), &[], payload.template(), receive.as_ref()),
            Self::Subscribe { topics, .. } | Self::Unsubscribe { topics } => {
                (None, topics, None, None)
            }
            Self::Receive { topic } => (Some(topic), &[], None, None),
        }
    }

    /// The index of the file that is sent.
    pub(crate) fn file(&self) -> Option<usize> {
        match self {
            Self::Publish { payload, .. } => payload.file(),
            _ => None,
        }
    }

    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<MqttRequest<U>, E> {
        let mut all = |topics: &[T]| topics.iter().map(&mut *map).collect::<Result<_, E>>();
        Ok(match self {
            Self::Subscribe { topics, qos } => MqttRequest::Subscribe {
                topics: all(topics)?,
                qos: *qos,
            },
            Self::Unsubscribe { topics } => MqttRequest::Unsubscribe {
                topics: all(topics)?,
            },
            Self::Receive { topic } => MqttRequest::Receive { topic: map(topic)? },
            Self::Publish {
                topic,
                payload,
                qos,
                retain,
                receive,
            } => MqttRequest::Publish {
                topic: map(topic)?,
                payload: payload.try_map(map)?,
                qos: *qos,
                retain: *retain,
                receive: receive.as_ref().map(&mut *map).transpose()?,
            },
        })
    }
}

impl MqttRequest {
    /// A readable line.
    pub(crate) fn line(&self) -> String {
        let joined = |topics: &[Template]| {
            let topics: Vec<&str> = topics.iter().map(Template::source).collect();
            topics.join(", ")
        };
        match self {
            Self::Publish { topic, .. } => format!("publish {}", topic.source()),
            Self::Subscribe { topics, .. } => format!("subscribe {}", joined(topics)),
            Self::Unsubscribe { topics } => format!("unsubscribe {}", joined(topics)),
            Self::Receive { topic } => format!("receive {}", topic.source()),
        }
    }
}
