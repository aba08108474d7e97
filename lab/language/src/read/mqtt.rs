//! MQTT: the connections of a workload, and the messages and subscriptions of its requests.

use lab_workload::template::Escape;
use lab_workload::{MqttRequest, ProtocolRequest, RawBytes, Request, Speech, Template};

use super::names::transposed;
use super::request::Compiler;
use crate::file::{BytesFile, MqttFile, PublishFile, RequestFile, SpeakingFile, SubscribeFile};
use crate::text_error::TextError;
use crate::units;
use lab_units::parts::{At, OneOrMany, Scalar};

/// Maximum filters of a subscription.
const MAX_TOPICS: usize = 100;
const ONE: &str = "write one of `publish`, `subscribe`, `unsubscribe`, and `receive`, or `publish` with `receive`";

impl Compiler<'_> {
    /// Reads the connections of MQTT.
    pub(super) fn mqtt(&mut self, file: Option<&SpeakingFile>) -> Option<Speech> {
        let of_others = file.and_then(|file| file.database.as_ref().or(file.starttls.as_ref()));
        if let Some(at) = of_others {
            let help = "leave it out; write `mqtts://host` as the address for TLS";
            return self.refuse_here(&at.span, "MQTT has no such setting", help);
        }
        let (sign_in, _) = self.secured(file)?;
        let version = file.and_then(|file| file.version.as_ref());
        let version = version.map(|at| self.setting("version", at, version_is_five));
        let client_id = file.and_then(|file| file.client_id.as_ref());
        let client_id = client_id.map(|at| self.template("client_id", at, Escape::None));
        Some(Speech::Mqtt {
            sign_in,
            client_id: transposed(client_id)?,
            is_five: version.unwrap_or(Some(true))?,
        })
    }

    /// Reports settings of MQTT in a workload of another protocol.
    pub(super) fn refuse_client(&mut self, file: Option<&SpeakingFile>) -> Option<()> {
        let own = file.and_then(|file| file.version.as_ref().or(file.client_id.as_ref()));
        match own {
            Some(at) => self.refuse(&at.span, "only MQTT has `version` and `client_id`"),
            None => Some(()),
        }
    }

    /// Compiles a request of MQTT.
    pub(super) fn mqtt_request(&mut self, mqtt: &MqttFile, file: &RequestFile) -> Option<Request> {
        let said = match (
            &mqtt.publish,
            &mqtt.subscribe,
            &mqtt.unsubscribe,
            &mqtt.receive,
        ) {
            (Some(publish), None, None, receive) => {
                self.publication(&publish.value, receive.as_ref())
            }
            (None, Some(subscribe), None, None) => self.subscription(&subscribe.value),
            (None, None, Some(topics), None) => {
                let topics = self.topics("unsubscribe", topics);
                topics.map(|topics| MqttRequest::Unsubscribe { topics })
            }
            (None, None, None, Some(receive)) => {
                let topic = self.filter("receive", receive);
                topic.map(|topic| MqttRequest::Receive { topic })
            }
            _ => {
                let (_, place) = mqtt.place()?;
                self.refuse_here(place, "an MQTT request has one of these keys", ONE)
            }
        };
        self.request_with_content(said.map(ProtocolRequest::Mqtt), file)
    }

    fn publication(
        &mut self,
        publish: &PublishFile,
        receive: Option<&At<Scalar>>,
    ) -> Option<MqttRequest> {
        let topic = self.topic(&publish.topic);
        let payload = match &publish.bytes {
            BytesFile {
                text: None,
                hex: None,
                file: None,
            } => Some(RawBytes::Text(Template::literal(""))),
            bytes => self.bytes_in_one_form(bytes, &publish.topic.span),
        };
        let qos = self.qos(publish.qos.as_ref());
        let retain = self.optional("retain", &publish.retain, units::switch);
        let receive = receive.map(|at| self.filter("receive", at));
        Some(MqttRequest::Publish {
            topic: topic?,
            payload: payload?,
            qos: qos?,
            retain: retain?.unwrap_or(false),
            receive: transposed(receive)?,
        })
    }

    /// Compiles the topic of a message: unlike a filter, it has no wildcards.
    fn topic(&mut self, at: &At<Scalar>) -> Option<Template> {
        let topic = self.template("topic", at, Escape::None)?;
        if topic
            .as_literal()
            .is_some_and(|text| text.contains(['+', '#']) || text.is_empty())
        {
            let message = "a topic to publish to can't contain `+` or `#`";
            return self.refuse_here(&at.span, message, "write it in full: `rooms/7/heat`");
        }
        Some(topic)
    }

    fn subscription(&mut self, subscribe: &SubscribeFile) -> Option<MqttRequest> {
        let (topics, qos) = match subscribe {
            SubscribeFile::Topics(topics) => (topics, None),
            SubscribeFile::Full(full) => (&full.topics, full.qos.as_ref()),
        };
        let topics = self.topics("subscribe", topics);
        let qos = self.qos(qos);
        Some(MqttRequest::Subscribe {
            topics: topics?,
            qos: qos?,
        })
    }

    fn topics(&mut self, what: &str, topics: &OneOrMany) -> Option<Vec<Template>> {
        let topics = topics.as_slice();
        if let Some(extra) = topics.get(MAX_TOPICS) {
            let message = format!("a request has at most {MAX_TOPICS} filters");
            return self.refuse_here(
                &extra.span,
                &message,
                "use `+` and `#`, or several requests",
            );
        }
        let all: Vec<Option<Template>> = topics.iter().map(|at| self.filter(what, at)).collect();
        all.into_iter().collect()
    }

    /// Compiles a filter of topics. One without templates is checked now (section 4.7 of MQTT 5.0).
    fn filter(&mut self, what: &str, at: &At<Scalar>) -> Option<Template> {
        let filter = self.template(what, at, Escape::None)?;
        let is_valid = |text: &str| {
            let mut levels = text.split('/').rev();
            let last = levels.next().unwrap_or_default();
            let is_level = |level: &str| level == "+" || !level.contains(['+', '#']);
            !text.is_empty() && (last == "#" || is_level(last)) && levels.all(is_level)
        };
        if filter.as_literal().is_some_and(|text| !is_valid(text)) {
            let message =
                "`+` stands for a whole level of a topic, and `#` for all levels at its end";
            return self.refuse_here(&at.span, message, "write `rooms/+/heat` or `rooms/#`");
        }
        Some(filter)
    }

    fn qos(&mut self, at: Option<&At<Scalar>>) -> Option<u8> {
        let Some(at) = at else { return Some(0) };
        let qos = self.setting("qos", at, |text| units::whole_number(text, 0..=2));
        qos.map(|qos| qos as u8)
    }
}

fn version_is_five(text: &str) -> Result<bool, TextError> {
    match text.trim() {
        "5" | "5.0" => Ok(true),
        "3.1.1" | "4" => Ok(false),
        other => {
            let message = format!("unknown MQTT version `{other}`");
            Err(TextError::new(message, 0..text.len()).help("write `5` or `3.1.1`"))
        }
    }
}
