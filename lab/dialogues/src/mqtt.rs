//! MQTT 3.1.1 and 5: publishes, subscribes, and waits for messages. A received message is the response.

mod packet;

use std::collections::{HashSet, VecDeque};
use std::fmt::Write as _;
use std::time::Duration;

use lab_workload::{MqttRequest, ProtocolRequest, SignIn, Speech, Template, UserScope, Workload};

use lab_client::dialogue::{Dialogue, Out, Reply, Turn};
use lab_client::{RequestId, Side, Unmade};

use crate::raw::{SentBytes, spelled};
use packet::{Packet, REFUSED, kind, matches, put, put_ack, put_text, reason};

/// The most unread messages of a user, and their bytes. The oldest are dropped.
const MAX_UNREAD: usize = 1_000;
const MAX_UNREAD_BYTES: usize = 1 << 20;
/// Longest topic, name, or password: their length has two bytes.
const MAX_TEXT: usize = u16::MAX as usize;

/// The MQTT dialogue.
pub struct Mqtt {
    is_five: bool,
    sign_in: SignIn,
    client_id: Option<Template>,
    /// By the request's index.
    requests: Vec<Option<Planned>>,
}

/// A request, prepared.
enum Planned {
    Publish {
        topic: Template,
        payload: SentBytes,
        /// The first byte of the packet.
        first: u8,
        receive: Option<Template>,
    },
    /// Subscribes, at this quality of service; without one, unsubscribes.
    Subscribe(Vec<Template>, Option<u8>),
    Receive(Template),
}

/// A request, and its progress.
#[derive(Default)]
pub struct MqttExchange {
    /// The first byte of the packet to send; 0 for none.
    first: u8,
    /// Its content up to the packet's number, and from there on.
    before: Vec<u8>,
    after: Vec<u8>,
    /// The quality of service of the message; for other packets 1.
    qos: u8,
    /// The filter of the message to wait for.
    receive: Option<Box<str>>,
    text: String,
    progress: Progress,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    Unsent,
    /// The answer to this packet is due, and the message if one is awaited.
    Sent { id: u16, is_acknowledged: bool },
}

/// A connection.
#[derive(Default)]
pub struct MqttLine {
    last_id: u16,
    unread: VecDeque<(Box<str>, Box<[u8]>)>,
    unread_bytes: usize,
    /// The keep-alive that the broker requires.
    keep_alive: Option<Duration>,
    /// Unread messages dropped since the last `receive`.
    dropped: u64,
    /// Whether the request in progress awaits a message in answer to its own.
    awaits_answer: bool,
    /// Numbers of messages of quality 2 that the server has not released.
    unreleased: HashSet<u16>,
}

impl Mqtt {
    /// Prepares the requests of a workload.
    #[must_use]
    pub fn new(workload: &Workload) -> Self {
        let (sign_in, client_id, is_five) = match &workload.speech {
            Speech::Mqtt {
                sign_in,
                client_id,
                is_five,
            } => (sign_in.clone(), client_id.clone(), *is_five),
            _ => (SignIn::default(), None, false),
        };
        let planned = |request: &lab_workload::Request| match request.said.as_deref() {
            Some(ProtocolRequest::Mqtt(mqtt)) => Some(Planned::new(mqtt, workload)),
            _ => None,
        };
        Self {
            is_five,
            sign_in,
            client_id,
            requests: workload.requests().map(planned).collect(),
        }
    }

    /// Writes the first packet of a connection (section 3.1).
    fn connect(&self, scope: &mut UserScope, packet: &mut Vec<u8>) -> Result<(), Unmade> {
        let mut texts = [const { None }; 3];
        let templates = [
            &self.client_id,
            &self.sign_in.username,
            &self.sign_in.password,
        ];
        for (template, text) in templates.into_iter().zip(&mut texts) {
            if let Some(template) = template {
                let mut rendered = String::new();
                template.render(scope, &mut rendered)?;
                *text = Some(checked(rendered)?);
            }
        }
        let [client_id, username, password] = texts;
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        // A clean session, so that users of earlier trials leave no messages.
        let flags = 0x02 | flag(username.is_some(), 0x80) | flag(password.is_some(), 0x40);
        put(packet, kind::CONNECT << 4, |out| {
            put_text(out, b"MQTT");
            // No keep-alive, unless the broker requires one: a user may think for any time.
            out.extend_from_slice(&[if self.is_five { 5 } else { 4 }, flags, 0, 0]);
            if self.is_five {
                // The broker leaves longer messages out.
                out.extend_from_slice(&[5, packet::MAX_PACKET_PROPERTY]);
                out.extend_from_slice(&(packet::MAX_PACKET as u32).to_be_bytes());
            }
            put_text(out, client_id.unwrap_or_default().as_bytes());
            for text in username.iter().chain(&password) {
                put_text(out, text.as_bytes());
            }
        });
        Ok(())
    }

    /// Acknowledges a message, and returns true if it is new.
    fn acknowledge(line: &mut MqttLine, (id, qos): (u16, u8), say: &mut Vec<u8>) -> bool {
        match qos {
            0 => true,
            1 => {
                put_ack(say, kind::PUBACK, id);
                true
            }
            _ => {
                put_ack(say, kind::PUBREC, id);
                line.unreleased.insert(id)
            }
        }
    }

    /// Handles a packet that is no answer to a request. Returns an error if the connection ends with it.
    fn unasked(
        &self,
        line: &mut MqttLine,
        packet: &Packet<'_>,
        say: &mut Vec<u8>,
    ) -> Result<(), String> {
        match *packet {
            Packet::Publish {
                topic,
                id,
                qos,
                payload,
            } => {
                if Self::acknowledge(line, (id, qos), say) {
                    line.keep(topic, payload);
                }
            }
            Packet::Ack {
                kind: kind::PUBREL,
                id,
                ..
            } => {
                line.unreleased.remove(&id);
                put_ack(say, kind::PUBCOMP, id);
            }
            // A request of quality 2 that was given up: the broker keeps its message until it is released.
            Packet::Ack {
                kind: kind::PUBREC,
                id,
                code: ..REFUSED,
            } => put_ack(say, kind::PUBREL, id),
            Packet::Disconnect { code } => return Err(self.disconnected(code)),
            // Answers to requests that were given up.
            Packet::Ack { .. } | Packet::Pong => {}
            Packet::ConnAck { .. } => return Err("a second CONNACK".to_owned()),
        }
        Ok(())
    }

    /// Describes the broker's last packet.
    fn disconnected(&self, code: u8) -> String {
        format!("the broker disconnects: {}", reason(code, self.is_five))
    }

    /// Sends the request's packet with the next number.
    fn send(line: &mut MqttLine, talk: &mut MqttExchange, say: &mut Vec<u8>) {
        let mut id = 0;
        if talk.qos > 0 {
            id = line.last_id.checked_add(1).unwrap_or(1);
            line.last_id = id;
        }
        if talk.first > 0 {
            put(say, talk.first, |out| {
                out.extend_from_slice(&talk.before);
                if talk.qos > 0 {
                    out.extend_from_slice(&id.to_be_bytes());
                }
                out.extend_from_slice(&talk.after);
            });
        }
        talk.progress = Progress::Sent {
            id,
            is_acknowledged: talk.first == 0 || talk.qos == 0,
        };
    }

    /// Handles an acknowledgement of the request's packet; returns the refusal if it is one.
    ///
    /// # Errors
    /// Describes an acknowledgement of another kind of packet.
    fn acknowledged(
        &self,
        talk: &mut MqttExchange,
        (kind, code): (u8, u8),
        say: &mut Vec<u8>,
    ) -> Result<Option<Box<str>>, String> {
        let Progress::Sent {
            id,
            is_acknowledged,
        } = &mut talk.progress
        else {
            return Ok(None);
        };
        let is_own = match (talk.first >> 4, talk.qos) {
            (kind::PUBLISH, 1) => kind == kind::PUBACK,
            (kind::PUBLISH, _) => kind == kind::PUBREC || kind == kind::PUBCOMP,
            (kind::SUBSCRIBE, _) => kind == kind::SUBACK,
            _ => kind == kind::UNSUBACK,
        };
        if !is_own {
            return Err(format!("a packet of type {kind} answers another request"));
        }
        if code >= REFUSED {
            *is_acknowledged = true;
            let why = format!("the broker refuses: {}", reason(code, self.is_five));
            return Ok(Some(why.into()));
        }
        // The quality of service asked for is the packet's last byte.
        if kind == kind::SUBACK && talk.after.last().is_some_and(|asked| code < *asked) {
            *is_acknowledged = true;
            return Ok(Some(format!("the broker grants only QoS {code}").into()));
        }
        match kind {
            kind::PUBREC => put_ack(say, kind::PUBREL, *id),
            _ => *is_acknowledged = true,
        }
        Ok(None)
    }

    /// Handles a packet during a request; returns the reply once it is complete.
    fn progress(
        &self,
        line: &mut MqttLine,
        talk: &mut MqttExchange,
        packet: &Packet<'_>,
        out: &mut Out,
    ) -> Result<Option<Reply>, String> {
        let Progress::Sent { id: own, .. } = talk.progress else {
            return Ok(None);
        };
        match *packet {
            Packet::Publish {
                topic,
                id,
                qos,
                payload,
            } if talk
                .receive
                .as_deref()
                .is_some_and(|filter| matches(filter, topic)) =>
            {
                if Self::acknowledge(line, (id, qos), &mut out.say) {
                    out.body.clear();
                    out.body.extend_from_slice(payload);
                    talk.receive = None;
                }
            }
            Packet::Ack { kind, id, code } if id == own && own > 0 && kind != kind::PUBREL => {
                if let Some(refused) = self.acknowledged(talk, (kind, code), &mut out.say)? {
                    return Ok(Some(refusal(refused)));
                }
            }
            Packet::Disconnect { code } => {
                return Ok(Some(Reply {
                    ends: true,
                    ..refusal(self.disconnected(code).into())
                }));
            }
            ref packet => self.unasked(line, packet, &mut out.say)?,
        }
        Ok(talk.is_done().then(Reply::default))
    }
}

fn refusal(why: Box<str>) -> Reply {
    Reply {
        refused: Some(why),
        ..Reply::default()
    }
}

/// Returns a text that fits its length of two bytes.
fn checked(text: String) -> Result<String, Unmade> {
    match text.len() <= MAX_TEXT {
        true => Ok(text),
        false => {
            let what = format!(
                "a topic, client ID, user name, or password has at most {MAX_TEXT} bytes; this one has {}",
                text.len()
            );
            Err(Unmade::Failed(what.into()))
        }
    }
}

impl Planned {
    fn new(request: &MqttRequest, workload: &Workload) -> Self {
        match request {
            MqttRequest::Publish {
                topic,
                payload,
                qos,
                retain,
                receive,
            } => Self::Publish {
                topic: topic.clone(),
                payload: SentBytes::new(payload, workload),
                first: kind::PUBLISH << 4 | qos << 1 | u8::from(*retain),
                receive: receive.clone(),
            },
            MqttRequest::Subscribe { topics, qos } => Self::Subscribe(topics.clone(), Some(*qos)),
            MqttRequest::Unsubscribe { topics } => Self::Subscribe(topics.clone(), None),
            MqttRequest::Receive { topic } => Self::Receive(topic.clone()),
        }
    }
}

impl MqttExchange {
    fn begin(&mut self) {
        self.first = 0;
        self.qos = 0;
        self.before.clear();
        self.after.clear();
        self.receive = None;
        self.progress = Progress::Unsent;
    }

    fn is_done(&self) -> bool {
        let is_acknowledged = matches!(
            self.progress,
            Progress::Sent {
                is_acknowledged: true,
                ..
            }
        );
        is_acknowledged && self.receive.is_none()
    }

    /// Renders a topic or a filter.
    fn rendered(&mut self, template: &Template, scope: &mut UserScope) -> Result<(), Unmade> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        template.render(scope, &mut text)?;
        self.text = checked(text)?;
        Ok(())
    }

    fn awaits(&mut self, filter: &Template, scope: &mut UserScope) -> Result<(), Unmade> {
        self.rendered(filter, scope)?;
        self.receive = Some(self.text.as_str().into());
        Ok(())
    }
}

impl MqttLine {
    /// Keeps a message for a later request.
    fn keep(&mut self, topic: &str, payload: &[u8]) {
        let size = |(topic, payload): &(Box<str>, Box<[u8]>)| topic.len() + payload.len();
        let message = (topic.into(), payload.into());
        self.unread_bytes += size(&message);
        self.unread.push_back(message);
        let is_over =
            |line: &Self| line.unread.len() > MAX_UNREAD || line.unread_bytes > MAX_UNREAD_BYTES;
        while self.unread.len() > 1 && is_over(self) {
            self.dropped += 1;
            let oldest = self.unread.pop_front();
            self.unread_bytes -= oldest.as_ref().map_or(0, size);
        }
    }

    /// Takes the oldest unread message of a filter.
    fn take(&mut self, filter: &str, body: &mut Vec<u8>) -> bool {
        let at = self
            .unread
            .iter()
            .position(|(topic, _)| matches(filter, topic));
        let Some((topic, payload)) = at.and_then(|at| self.unread.remove(at)) else {
            return false;
        };
        self.unread_bytes -= topic.len() + payload.len();
        body.extend_from_slice(&payload);
        true
    }

    /// Drops the unread messages of a filter.
    fn forget(&mut self, filter: &str) {
        self.unread.retain(|(topic, _)| !matches(filter, topic));
        let sizes = self
            .unread
            .iter()
            .map(|(topic, payload)| topic.len() + payload.len());
        self.unread_bytes = sizes.sum();
    }
}

impl Dialogue for Mqtt {
    type Line = MqttLine;
    type ExchangeState = MqttExchange;

    const READS_BETWEEN: bool = true;

    fn open(&self, scope: &mut UserScope, talk: &mut MqttExchange) -> Result<(), Unmade> {
        talk.begin();
        talk.first = kind::CONNECT << 4;
        self.connect(scope, &mut talk.before)
    }

    fn ask(
        &self,
        request: RequestId,
        scope: &mut UserScope,
        talk: &mut MqttExchange,
    ) -> Result<(), Unmade> {
        talk.begin();
        let Some(planned) = &self.requests[request as usize] else {
            return Ok(());
        };
        match planned {
            Planned::Receive(filter) => talk.awaits(filter, scope)?,
            Planned::Publish {
                topic,
                payload,
                first,
                receive,
            } => {
                talk.rendered(topic, scope)?;
                put_text(&mut talk.before, talk.text.as_bytes());
                talk.first = *first;
                talk.qos = first >> 1 & 3;
                if self.is_five {
                    talk.after.push(0);
                }
                payload.render(scope, &mut talk.text, &mut talk.after)?;
                if talk.after.len() > packet::MAX_PACKET - 2 * MAX_TEXT {
                    let what = format!("{} bytes are too many for a message", talk.after.len());
                    return Err(Unmade::Failed(what.into()));
                }
                if let Some(filter) = receive {
                    talk.awaits(filter, scope)?;
                }
            }
            Planned::Subscribe(topics, qos) => {
                let kind = if qos.is_some() {
                    kind::SUBSCRIBE
                } else {
                    kind::UNSUBSCRIBE
                };
                // Both have reserved flags (sections 3.8.1 and 3.10.1).
                talk.first = kind << 4 | 2;
                talk.qos = 1;
                if self.is_five {
                    talk.after.push(0);
                }
                for topic in topics {
                    talk.rendered(topic, scope)?;
                    put_text(&mut talk.after, talk.text.as_bytes());
                    talk.after.extend(qos);
                }
            }
        }
        Ok(())
    }

    fn turn(
        &self,
        line: &mut MqttLine,
        talk: &mut MqttExchange,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String> {
        if talk.first == kind::CONNECT << 4 {
            return self.greeted(line, talk, heard, out);
        }
        if talk.progress == Progress::Unsent {
            line.awaits_answer = talk.first > 0 && talk.receive.is_some();
            if talk.first == 0 && line.dropped > 0 {
                let dropped = std::mem::take(&mut line.dropped);
                let why = format!("{dropped} messages were dropped unread");
                return Ok(Turn::Done(refusal(why.into())));
            }
            if let Some(filter) = talk.receive.as_deref() {
                match talk.first {
                    // What arrived before can't be the response to what is published now.
                    1.. => line.forget(filter),
                    0 if line.take(filter, &mut out.body) => talk.receive = None,
                    0 => {}
                }
            }
            Self::send(line, talk, &mut out.say);
            if talk.is_done() {
                return Ok(Turn::Done(Reply::default()));
            }
        }
        while let Some(packet) = Packet::take(heard, self.is_five)? {
            if let Some(reply) = self.progress(line, talk, &packet, out)? {
                return Ok(Turn::Done(reply));
            }
        }
        Ok(Turn::Listen)
    }

    fn give_up(&self, line: &mut MqttLine, _: &mut Vec<u8>) -> bool {
        // A late acknowledgement has a number of its own, and a late message is an unread one, unless it is an answer:
        // that would answer the next request.
        !line.awaits_answer
    }

    fn overhear(
        &self,
        line: &mut MqttLine,
        heard: &mut &[u8],
        say: &mut Vec<u8>,
    ) -> Result<(), String> {
        while let Some(packet) = Packet::take(heard, self.is_five)? {
            self.unasked(line, &packet, say)?;
        }
        Ok(())
    }

    fn keep_alive(&self, line: &MqttLine) -> Option<(Duration, &'static [u8])> {
        line.keep_alive.map(|longest| (longest, &packet::PING[..]))
    }

    fn reports_end(&self) -> bool {
        // The subscriptions end with the connection.
        true
    }

    fn keeps(&self, line: &MqttLine) -> bool {
        !line.unread.is_empty()
    }

    fn only_listens(&self, talk: &MqttExchange) -> bool {
        talk.first == 0
    }

    fn spell(&self, side: Side, bytes: &[u8]) -> String {
        self.spelled(side, bytes)
    }
}

impl Mqtt {
    /// Continues the opening of a connection.
    fn greeted(
        &self,
        line: &mut MqttLine,
        talk: &mut MqttExchange,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String> {
        out.say.append(&mut talk.before);
        match Packet::take(heard, self.is_five)? {
            None => Ok(Turn::Listen),
            Some(Packet::ConnAck {
                code: 0,
                keep_alive,
            }) => {
                line.keep_alive = keep_alive;
                Ok(Turn::Done(Reply::default()))
            }
            Some(Packet::ConnAck { code, .. } | Packet::Disconnect { code }) => {
                let why = reason(code, self.is_five);
                let why = format!("the broker refuses the connection: {why}");
                Ok(Turn::Done(refusal(why.into())))
            }
            Some(_) => Err("the broker's first packet isn't a CONNACK".to_owned()),
        }
    }

    /// Returns packets as readable text, one per line.
    fn spelled(&self, side: Side, mut bytes: &[u8]) -> String {
        let mut text = String::new();
        while let Ok(Some((first, content))) = packet::frame(&mut bytes) {
            if !text.is_empty() {
                text.push('\n');
            }
            self.spell_packet(side, first, content, &mut text);
        }
        text
    }

    fn spell_packet(&self, side: Side, first: u8, content: &[u8], text: &mut String) {
        // Writing to memory can't fail.
        let _infallible = match (side, first >> 4) {
            (Side::User, kind::CONNECT) => write!(text, "CONNECT"),
            (Side::User, kind @ (kind::SUBSCRIBE | kind::UNSUBSCRIBE)) => {
                let name = packet::name(kind);
                let head = if self.is_five { 3 } else { 2 };
                let mut rest = content.get(head..).unwrap_or_default();
                let mut topics = Vec::new();
                while let Some(topic) = packet::text(&mut rest) {
                    topics.push(topic);
                    rest = rest
                        .get(usize::from(kind == kind::SUBSCRIBE)..)
                        .unwrap_or_default();
                }
                write!(text, "{name} {}", topics.join(", "))
            }
            _ => match Packet::parse(first, content, self.is_five) {
                Some(Packet::Publish {
                    topic,
                    qos,
                    payload,
                    ..
                }) => {
                    let (topic, payload) = (spelled(topic.as_bytes()), spelled(payload));
                    write!(text, "PUBLISH {topic} (QoS {qos}): {payload}")
                }
                Some(Packet::ConnAck { code, .. }) => write!(text, "CONNACK {code}"),
                Some(Packet::Ack { kind, id, code }) => {
                    let name = packet::name(kind);
                    write!(text, "{name} {id}").and_then(|()| match code {
                        0 => Ok(()),
                        // A granted quality of service, or a remark such as "no matching subscribers".
                        1..REFUSED => write!(text, ": 0x{code:02x}"),
                        code => write!(text, ": {}", reason(code, self.is_five)),
                    })
                }
                Some(Packet::Disconnect { code }) => write!(text, "DISCONNECT {code}"),
                Some(Packet::Pong) => write!(text, "PINGRESP"),
                None => write!(text, "a packet of type {}", first >> 4),
            },
        };
    }
}

/// Reads packets of a server, for tests with any bytes: returns the messages in them.
///
/// # Errors
/// Describes bytes that are no packets.
pub fn mqtt_messages(heard: &mut &[u8], is_five: bool) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut messages = Vec::new();
    while let Some(packet) = Packet::take(heard, is_five)? {
        if let Packet::Publish { topic, payload, .. } = packet {
            messages.push((topic.to_owned(), payload.to_vec()));
        }
    }
    Ok(messages)
}

#[cfg(test)]
mod tests;
