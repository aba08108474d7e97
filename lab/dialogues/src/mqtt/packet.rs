//! Packets of MQTT 3.1.1 and 5, read and written: those that a client needs. Sources: the OASIS standards MQTT 3.1.1 and
//! MQTT 5.0.

use std::time::Duration;

/// Longest packet. The protocol's own bound is 256 MiB.
pub(super) const MAX_PACKET: usize = 16 << 20;
/// The lowest code that is a refusal.
pub(super) const REFUSED: u8 = 0x80;
/// Properties of a connection (sections 3.1.2.11.4 and 3.2.2.3.14 of MQTT 5.0).
pub(super) const MAX_PACKET_PROPERTY: u8 = 0x27;
/// PINGREQ.
pub(super) const PING: [u8; 2] = [0xc0, 0];
const KEEP_ALIVE_PROPERTY: u8 = 0x13;

/// Types of packets (section 2.1.2 of MQTT 5.0).
pub(super) mod kind {
    pub(crate) const CONNECT: u8 = 1;
    pub(crate) const CONNACK: u8 = 2;
    pub(crate) const PUBLISH: u8 = 3;
    pub(crate) const PUBACK: u8 = 4;
    pub(crate) const PUBREC: u8 = 5;
    pub(crate) const PUBREL: u8 = 6;
    pub(crate) const PUBCOMP: u8 = 7;
    pub(crate) const SUBSCRIBE: u8 = 8;
    pub(crate) const SUBACK: u8 = 9;
    pub(crate) const UNSUBSCRIBE: u8 = 10;
    pub(crate) const UNSUBACK: u8 = 11;
    pub(crate) const PINGRESP: u8 = 13;
    pub(crate) const DISCONNECT: u8 = 14;
}

/// Returns the name of a type of acknowledgement or subscription.
pub(super) fn name(kind: u8) -> &'static str {
    match kind {
        kind::PUBACK => "PUBACK",
        kind::PUBREC => "PUBREC",
        kind::PUBREL => "PUBREL",
        kind::PUBCOMP => "PUBCOMP",
        kind::SUBSCRIBE => "SUBSCRIBE",
        kind::SUBACK => "SUBACK",
        kind::UNSUBSCRIBE => "UNSUBSCRIBE",
        kind::UNSUBACK => "UNSUBACK",
        _ => "an acknowledgement",
    }
}

/// A packet from a server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    /// The answer to the connection's first packet, its code, and the keep-alive that the broker requires.
    ConnAck {
        code: u8,
        keep_alive: Option<Duration>,
    },
    /// A message; `id` is 0 at quality of service 0.
    Publish {
        topic: &'a str,
        id: u16,
        qos: u8,
        payload: &'a [u8],
    },
    /// One of the acknowledgements of a message or a subscription, and its code: of several, the highest if one is a
    /// refusal, and else the lowest.
    Ack { kind: u8, id: u16, code: u8 },
    /// The server ends the connection, with this code.
    Disconnect { code: u8 },
    /// The answer to a ping.
    Pong,
}

/// Takes the next packet from the front: its first byte, and its content. `None` if it is not whole.
///
/// # Errors
/// Describes bytes that are no packet.
pub(super) fn frame<'a>(heard: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>, String> {
    let [first, rest @ ..] = *heard else {
        return Ok(None);
    };
    let mut rest = rest;
    let Some(length) = number(&mut rest)? else {
        return Ok(None);
    };
    if length > MAX_PACKET {
        return Err(format!("a packet has more than {MAX_PACKET} bytes"));
    }
    let Some(content) = rest.get(..length) else {
        return Ok(None);
    };
    *heard = &rest[length..];
    Ok(Some((*first, content)))
}

/// Takes a number of one to four bytes (section 1.5.5); `None` if it is not whole.
fn number(bytes: &mut &[u8]) -> Result<Option<usize>, String> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(4).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            *bytes = &bytes[at + 1..];
            return Ok(Some(value));
        }
    }
    match bytes.len() < 4 {
        true => Ok(None),
        false => Err("the length of a packet has more than four bytes".to_owned()),
    }
}

impl<'a> Packet<'a> {
    /// Takes the next packet from the front; `None` if it is not whole.
    ///
    /// # Errors
    /// Describes bytes that are no packet of a server.
    pub(super) fn take(heard: &mut &'a [u8], is_five: bool) -> Result<Option<Self>, String> {
        let Some((first, content)) = frame(heard)? else {
            return Ok(None);
        };
        let packet = Self::parse(first, content, is_five);
        let kind = first >> 4;
        packet
            .map(Some)
            .ok_or_else(|| format!("the broker sent a packet of type {kind} that is malformed or that only clients send"))
    }

    pub(super) fn parse(first: u8, content: &'a [u8], is_five: bool) -> Option<Self> {
        let mut rest = content;
        Some(match first >> 4 {
            kind::CONNACK => {
                let [_, code, properties @ ..] = content else {
                    return None;
                };
                Self::ConnAck {
                    code: *code,
                    keep_alive: if is_five {
                        keep_alive(properties)?
                    } else {
                        None
                    },
                }
            }
            kind::PUBLISH => {
                let topic = text(&mut rest)?;
                let qos = first >> 1 & 3;
                let id = match qos {
                    0 => 0,
                    1 | 2 => short(&mut rest).filter(|id| *id > 0)?,
                    _ => return None,
                };
                if is_five {
                    skip_properties(&mut rest)?;
                }
                Self::Publish {
                    topic,
                    id,
                    qos,
                    payload: rest,
                }
            }
            kind @ (kind::PUBACK | kind::PUBREC | kind::PUBREL | kind::PUBCOMP) => Self::Ack {
                kind,
                id: short(&mut rest)?,
                code: rest.first().copied().unwrap_or_default(),
            },
            kind @ (kind::SUBACK | kind::UNSUBACK) => {
                let id = short(&mut rest)?;
                if is_five {
                    skip_properties(&mut rest)?;
                }
                Self::Ack {
                    kind,
                    id,
                    code: match rest.iter().copied().max() {
                        None if kind == kind::SUBACK => return None,
                        Some(code @ REFUSED..) => code,
                        _ => rest.iter().copied().min().unwrap_or_default(),
                    },
                }
            }
            kind::PINGRESP => Self::Pong,
            kind::DISCONNECT => Self::Disconnect {
                code: rest.first().copied().unwrap_or_default(),
            },
            _ => return None,
        })
    }
}

fn short(bytes: &mut &[u8]) -> Option<u16> {
    let (value, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u16::from_be_bytes(*value))
}

pub(super) fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::from(short(bytes)?);
    let text = bytes.get(..length)?;
    *bytes = &bytes[length..];
    std::str::from_utf8(text).ok()
}

fn skip_properties(bytes: &mut &[u8]) -> Option<()> {
    let length = number(bytes).ok()??;
    *bytes = bytes.get(length..)?;
    Some(())
}

/// Returns the keep-alive among the properties of a CONNACK, if it is there. The outer `None` is malformed.
fn keep_alive(mut bytes: &[u8]) -> Option<Option<Duration>> {
    if bytes.is_empty() {
        return Some(None);
    }
    let length = number(&mut bytes).ok()??;
    let mut bytes = bytes.get(..length)?;
    while let [property, rest @ ..] = bytes {
        bytes = rest;
        let length = match property {
            &KEEP_ALIVE_PROPERTY => {
                let seconds = short(&mut bytes)?;
                return Some((seconds > 0).then(|| Duration::from_secs(seconds.into())));
            }
            // One byte: QoS, retained messages, wildcards, identifiers, and shared subscriptions.
            0x24 | 0x25 | 0x28..=0x2a => 1,
            // Two bytes: the most messages in progress, and aliases.
            0x21 | 0x22 => 2,
            // Four bytes: the session's expiry, and the largest packet.
            0x11 | &MAX_PACKET_PROPERTY => 4,
            // A name and a value.
            0x26 => {
                let name = usize::from(short(&mut bytes)?);
                bytes = bytes.get(name..)?;
                usize::from(short(&mut bytes)?)
            }
            // A text or bytes.
            _ => usize::from(short(&mut bytes)?),
        };
        bytes = bytes.get(length..)?;
    }
    Some(None)
}

/// Writes a packet: a first byte, and the content that `write` appends.
pub(super) fn put(out: &mut Vec<u8>, first: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(first);
    write(out);
    let mut length = out.len() - start - 1;
    let mut digits = [0; 4];
    let mut count = 0;
    while count < 4 {
        digits[count] = (length & 0x7f) as u8 | if length > 0x7f { 0x80 } else { 0 };
        length >>= 7;
        count += 1;
        if length == 0 {
            break;
        }
    }
    out.splice(start + 1..start + 1, digits[..count].iter().copied());
}

/// Writes a text or bytes with their length. The caller has checked that they have at most 65,535 bytes.
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&text[..usize::from(length)]);
}

/// Writes an acknowledgement without a code, which means success.
pub(super) fn put_ack(out: &mut Vec<u8>, kind: u8, id: u16) {
    // PUBREL has reserved flags (section 3.6.1).
    let flags = if kind == kind::PUBREL { 2 } else { 0 };
    put(out, kind << 4 | flags, |out| {
        out.extend_from_slice(&id.to_be_bytes());
    });
}

/// Returns true if a topic is one of a filter's (section 4.7).
pub(super) fn matches(filter: &str, topic: &str) -> bool {
    let mut levels = topic.split('/');
    for level in filter.split('/') {
        match (level, levels.next()) {
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (level, Some(other)) if level == other => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

/// Returns the code of a refused connection, message, or subscription, and its meaning.
pub(super) fn reason(code: u8, is_five: bool) -> String {
    let meaning = match (code, is_five) {
        // A broker without version 5 says so in the code of its own version.
        (1, true) => "unacceptable protocol version: set `version: 3.1.1`",
        (1, false) => "unacceptable protocol version",
        (2, false) => "client identifier rejected",
        (3, false) => "server unavailable",
        (4, false) => "bad user name or password",
        (5, false) => "not authorized",
        (0x80, false) => "subscription refused",
        (0x80, true) => "unspecified error",
        (0x81, _) => "malformed packet",
        (0x82, _) => "protocol error",
        (0x83, _) => "implementation specific error",
        (0x84, _) => "unsupported protocol version",
        (0x85, _) => "client identifier not valid",
        (0x86, _) => "bad user name or password",
        (0x87, _) => "not authorized",
        (0x88, _) => "server unavailable",
        (0x89, _) => "server busy",
        (0x8a, _) => "banned",
        (0x8b, _) => "server shutting down",
        (0x8d, _) => "keep alive timeout",
        (0x8e, _) => "session taken over",
        (0x8f, _) => "topic filter invalid",
        (0x90, _) => "topic name invalid",
        (0x91, _) => "packet identifier in use",
        (0x92, _) => "packet identifier not found",
        (0x93, _) => "receive maximum exceeded",
        (0x95, _) => "packet too large",
        (0x96, _) => "message rate too high",
        (0x97, _) => "quota exceeded",
        (0x98, _) => "administrative action",
        (0x99, _) => "payload format invalid",
        (0x9a, _) => "retain not supported",
        (0x9b, _) => "QoS not supported",
        (0x9c, _) => "use another server",
        (0x9d, _) => "server moved",
        (0x9e, _) => "shared subscriptions not supported",
        (0x9f, _) => "connection rate exceeded",
        (0xa1, _) => "subscription identifiers not supported",
        (0xa2, _) => "wildcard subscriptions not supported",
        _ => "refused",
    };
    format!("{meaning} (0x{code:02x})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_they_are_written() {
        let mut bytes = Vec::new();
        for length in [0, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152] {
            bytes.clear();
            put(&mut bytes, 0x30, |out| out.resize(out.len() + length, 7));
            let mut heard = &bytes[..];
            let (first, content) = frame(&mut heard).unwrap().unwrap();
            assert_eq!((first, content.len(), heard.len()), (0x30, length, 0));
            assert_eq!(frame(&mut &bytes[..bytes.len() - 1]).unwrap(), None);
        }
        assert!(frame(&mut &[0x30, 0xff, 0xff, 0xff, 0xff][..]).is_err());
        assert!(frame(&mut &[0x30, 0xff, 0xff, 0xff, 0x7f][..]).is_err());
    }

    #[test]
    fn server_packets_have_both_forms() {
        let publish = Packet::Publish {
            topic: "a/b",
            id: 9,
            qos: 1,
            payload: b"hi",
        };
        let take = |bytes: &'static [u8], five| Packet::take(&mut &bytes[..], five);
        assert_eq!(take(b"\x32\x09\0\x03a/b\0\x09hi", false), Ok(Some(publish)));
        let Ok(Some(Packet::Publish { payload, .. })) =
            take(b"\x30\x0a\0\x03a/b\x02\x01\x01hi", true)
        else {
            panic!("it is a message");
        };
        assert_eq!(payload, b"hi");
        let refused = Packet::Ack {
            kind: kind::SUBACK,
            id: 1,
            code: 0x87,
        };
        assert_eq!(take(b"\x90\x05\0\x01\0\0\x87", true), Ok(Some(refused)));
        let ack = Packet::Ack {
            kind: kind::PUBACK,
            id: 1,
            code: 0,
        };
        assert_eq!(take(b"\x40\x02\0\x01", true), Ok(Some(ack)));
        for bad in [
            &b"\x36\x02\0\0"[..],
            b"\x00\x00",
            b"\x20\x01\0",
            b"\x30\x05\0\x09abc",
            b"\x30\x03\0\x01\xff",
        ] {
            assert!(take(bad, false).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn filters_match_topics_by_level() {
        for (filter, topic, is_match) in [
            ("a/b", "a/b", true),
            ("a/+", "a/b", true),
            ("a/+", "a/b/c", false),
            ("a/#", "a", true),
            ("a/#", "a/b/c", true),
            ("#", "a", true),
            ("+/b", "/b", true),
            ("a", "a/b", false),
            ("a/b", "a", false),
        ] {
            assert_eq!(matches(filter, topic), is_match, "{filter} {topic}");
        }
    }
}
