//! A profile from the bytes of a pprof file, which anybody may have written.
//!
//! The messages of a file are found first and counted, then decoded one at a time, so that no more memory is taken than the
//! bounds allow.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use prost::encoding::{WireType, decode_key, decode_varint};

use super::{
    CLASS, COUNT, MOST_COMPRESSED_BYTES, MOST_FRAMES, MOST_FRAMES_TOGETHER, MOST_FUNCTIONS,
    MOST_LOCATIONS, MOST_MAPPINGS, MOST_MESSAGE_BYTES, MOST_NAME_BYTES, MOST_SAMPLES,
    MOST_TEXT_BYTES, MOST_TEXTS, MOST_UNCOMPRESSED_BYTES, NANOSECONDS, SECOND, THREAD, WAKER,
    field, message,
};
use crate::builder::Builder;
use crate::class::Class;
use crate::model::{Function, Kind, Line, Location, Mapping, Profile, Sample, Wait};

/// The reason why bytes are no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The file is too large, or would be without its compression.
    #[error("it has more than {most} bytes {how}")]
    TooLarge {
        /// The most bytes that a file may have.
        most: usize,
        /// The size's kind: compressed or not.
        how: &'static str,
    },
    /// The compression is damaged.
    #[error("its compression (gzip) is damaged: {0}")]
    Compression(String),
    /// There is more of something than a file may have.
    #[error("it has more than {most} {what}")]
    TooMany {
        /// The kind of element.
        what: &'static str,
        /// The maximum number.
        most: usize,
    },
    /// Bytes are not a message of `profile.proto`.
    #[error("{place}: not in the pprof format: {cause}")]
    Damaged {
        /// The part of the file.
        place: Place,
        /// The problem.
        cause: String,
    },
    /// A number refers to something that isn't there.
    #[error("{place}: there is no {what} {number}")]
    Nothing {
        /// The part of the file.
        place: Place,
        /// The referenced item.
        what: &'static str,
        /// The id or the position that isn't there.
        number: i128,
    },
    /// Two things have the same id, or one has none.
    #[error("{place}: the id {id} is 0 or not the only one")]
    Id {
        /// The part of the file.
        place: Place,
        /// The id.
        id: u64,
    },
    /// The profile is of something else than CPU time and waits.
    #[error("it has no values of the type {wanted}; it has: {found}")]
    Type {
        /// The type and unit.
        wanted: String,
        /// All types and units that it has.
        found: String,
    },
    /// A value isn't possible.
    #[error("{place}: {what} is {value}")]
    Value {
        /// The part of the file.
        place: Place,
        /// The value's name.
        what: &'static str,
        /// The value.
        value: i64,
    },
}

/// A part of a file: its kind, and its number among parts of the same kind, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub &'static str, pub usize);

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.0, self.1)
    }
}

impl Profile {
    /// Parses the profile in a pprof file, compressed or not.
    ///
    /// Labels other than `second`, `thread`, and those of waits, and values other than samples and their time, are left out. A
    /// class of waits that isn't known is [`Class::Other`]. Addresses become relative to their files. A location without a function is named by its file and address.
    ///
    /// # Errors
    /// If the bytes are not a pprof file, or exceed the bounds.
    pub fn from_pprof(bytes: &[u8]) -> Result<Self, ReadError> {
        if bytes.len() > MOST_COMPRESSED_BYTES {
            return Err(ReadError::TooLarge {
                most: MOST_COMPRESSED_BYTES,
                how: "as a file",
            });
        }
        if !bytes.starts_with(&[0x1f, 0x8b]) {
            return read(bytes);
        }
        let mut plain = Vec::new();
        MultiGzDecoder::new(bytes)
            .take(MOST_UNCOMPRESSED_BYTES as u64 + 1)
            .read_to_end(&mut plain)
            .map_err(|error| ReadError::Compression(error.to_string()))?;
        if plain.len() > MOST_UNCOMPRESSED_BYTES {
            return Err(ReadError::TooLarge {
                most: MOST_UNCOMPRESSED_BYTES,
                how: "without its compression",
            });
        }
        read(&plain)
    }
}

fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    let mut parts = Parts::of(bytes)?;
    let values = Values::of(&mut parts)?;
    let mut into = Builder::of(values.kind);
    let mappings = mappings(&mut parts, &mut into)?;
    let functions = functions(&mut parts, &mut into)?;
    let locations = locations(&parts, &mappings, &functions, &mut into)?;
    samples(&mut parts, &locations, &values, &mut into)?;
    Ok(into.finish())
}

/// The messages of a profile, not decoded yet.
#[derive(Default)]
struct Parts<'a> {
    types: Vec<&'a [u8]>,
    samples: Vec<&'a [u8]>,
    mappings: Vec<&'a [u8]>,
    locations: Vec<&'a [u8]>,
    functions: Vec<&'a [u8]>,
    texts: Vec<&'a [u8]>,
    /// Bytes of the names created from texts so far. Many functions may have the same long text for a name.
    name_bytes: usize,
}

impl<'a> Parts<'a> {
    fn of(mut rest: &'a [u8]) -> Result<Self, ReadError> {
        let mut parts = Self::default();
        let mut number = 0;
        while !rest.is_empty() {
            number += 1;
            let place = Place("field", number);
            let broken = |error: prost::DecodeError| ReadError::Damaged {
                place,
                cause: error.to_string(),
            };
            let (tag, wire) = decode_key(&mut rest).map_err(broken)?;
            let length = match wire {
                WireType::Varint => {
                    decode_varint(&mut rest).map_err(broken)?;
                    continue;
                }
                WireType::SixtyFourBit => 8,
                WireType::ThirtyTwoBit => 4,
                WireType::LengthDelimited => decode_varint(&mut rest).map_err(broken)?,
                WireType::StartGroup | WireType::EndGroup => {
                    return Err(damaged(place, "it has a group"));
                }
            };
            let length = usize::try_from(length).ok().filter(|n| *n <= rest.len());
            let length = length.ok_or_else(|| damaged(place, "it ends beyond the file"))?;
            let (part, after) = rest.split_at(length);
            rest = after;
            if wire == WireType::LengthDelimited {
                parts.take(tag, part)?;
            }
        }
        Ok(parts)
    }

    fn take(&mut self, tag: u32, part: &'a [u8]) -> Result<(), ReadError> {
        let (list, what, most, bytes) = match tag {
            field::SAMPLE_TYPE => (&mut self.types, "types of values", 64, MOST_MESSAGE_BYTES),
            field::SAMPLE => (
                &mut self.samples,
                "samples",
                MOST_SAMPLES,
                MOST_MESSAGE_BYTES,
            ),
            field::MAPPING => (
                &mut self.mappings,
                "mappings",
                MOST_MAPPINGS,
                MOST_MESSAGE_BYTES,
            ),
            field::LOCATION => (
                &mut self.locations,
                "locations",
                MOST_LOCATIONS,
                MOST_MESSAGE_BYTES,
            ),
            field::FUNCTION => (
                &mut self.functions,
                "functions",
                MOST_FUNCTIONS,
                MOST_MESSAGE_BYTES,
            ),
            field::TEXT => (&mut self.texts, "texts", MOST_TEXTS, MOST_TEXT_BYTES),
            _ => return Ok(()),
        };
        list.push(part);
        if list.len() > most {
            return Err(ReadError::TooMany { what, most });
        }
        if part.len() > bytes {
            return Err(ReadError::TooMany {
                what: "bytes in one message or text",
                most: bytes,
            });
        }
        Ok(())
    }

    /// The text at a position.
    fn text(&self, place: Place, position: i64) -> Result<&'a [u8], ReadError> {
        let text = usize::try_from(position)
            .ok()
            .and_then(|index| self.texts.get(index));
        text.copied().ok_or(ReadError::Nothing {
            place,
            what: "text",
            number: position.into(),
        })
    }

    /// The text at a position, as a new string. Invalid UTF-8 becomes U+FFFD.
    fn name(&mut self, place: Place, position: i64) -> Result<String, ReadError> {
        let name = String::from_utf8_lossy(self.text(place, position)?).into_owned();
        self.name_bytes += name.len();
        match self.name_bytes > MOST_NAME_BYTES {
            true => Err(ReadError::TooMany {
                what: "bytes in all names together",
                most: MOST_NAME_BYTES,
            }),
            false => Ok(name),
        }
    }
}

fn damaged(place: Place, cause: &str) -> ReadError {
    ReadError::Damaged {
        place,
        cause: cause.to_owned(),
    }
}

fn decoded<M: prost::Message + Default>(place: Place, part: &[u8]) -> Result<M, ReadError> {
    M::decode(part).map_err(|error| ReadError::Damaged {
        place,
        cause: error.to_string(),
    })
}

/// Things by their ids.
struct Ids<T> {
    what: &'static str,
    known: HashMap<u64, T>,
}

impl<T: Copy> Ids<T> {
    fn new(what: &'static str, count: usize) -> Self {
        Self {
            what,
            known: HashMap::with_capacity(count),
        }
    }

    fn insert(&mut self, place: Place, id: u64, value: T) -> Result<(), ReadError> {
        if id == 0 || self.known.insert(id, value).is_some() {
            return Err(ReadError::Id { place, id });
        }
        Ok(())
    }

    fn get(&self, place: Place, id: u64) -> Result<T, ReadError> {
        self.known.get(&id).copied().ok_or(ReadError::Nothing {
            place,
            what: self.what,
            number: id.into(),
        })
    }
}

/// A mapping of the file: its position, and what to add to its addresses.
#[derive(Clone, Copy)]
struct Mapped {
    position: usize,
    shift: u64,
}

fn mappings(parts: &mut Parts<'_>, into: &mut Builder) -> Result<Ids<Mapped>, ReadError> {
    let mut ids = Ids::new("mapping", parts.mappings.len());
    for (index, part) in std::mem::take(&mut parts.mappings).into_iter().enumerate() {
        let place = Place("mapping", index + 1);
        let mapping: message::Mapping = decoded(place, part)?;
        let position = into.mapping(Mapping {
            file: parts.name(place, mapping.filename)?,
            build_id: parts.name(place, mapping.build_id)?,
        });
        let shift = mapping.file_offset.wrapping_sub(mapping.memory_start);
        ids.insert(place, mapping.id, Mapped { position, shift })?;
    }
    Ok(ids)
}

fn functions(parts: &mut Parts<'_>, into: &mut Builder) -> Result<Ids<usize>, ReadError> {
    let mut ids = Ids::new("function", parts.functions.len());
    for (index, part) in std::mem::take(&mut parts.functions).into_iter().enumerate() {
        let place = Place("function", index + 1);
        let function: message::Function = decoded(place, part)?;
        let mut name = parts.name(place, function.name)?;
        if name.is_empty() {
            name = parts.name(place, function.system_name)?;
        }
        let position = into.function(Function {
            name,
            file: parts.name(place, function.filename)?,
        });
        ids.insert(place, function.id, position)?;
    }
    Ok(ids)
}

/// A location of the file: its position, and how many functions it has.
type Located = (usize, usize);

fn locations(
    parts: &Parts<'_>,
    mappings: &Ids<Mapped>,
    functions: &Ids<usize>,
    into: &mut Builder,
) -> Result<Ids<Located>, ReadError> {
    let mut ids = Ids::new("location", parts.locations.len());
    for (index, part) in parts.locations.iter().enumerate() {
        let place = Place("location", index + 1);
        let location: message::Location = decoded(place, part)?;
        let mapped = match location.mapping_id {
            0 => None,
            id => Some(mappings.get(place, id)?),
        };
        let mapping = mapped.map(|mapped| mapped.position);
        // Without a file there is nothing that an address could be relative to.
        let address = mapped.map_or(0, |mapped| location.address.wrapping_add(mapped.shift));
        let mut lines = Vec::with_capacity(location.line.len().max(1));
        for line in &location.line {
            // 0 is a place without a function, as programs without names have it.
            if line.function_id != 0 {
                lines.push(Line {
                    function: functions.get(place, line.function_id)?,
                    line: line.line.try_into().unwrap_or_default(),
                });
            }
        }
        if lines.is_empty() {
            let function = into.function(Function {
                name: into.place_name(mapping, address),
                file: String::new(),
            });
            lines.push(Line { function, line: 0 });
        }
        let count = lines.len();
        let position = into.location(Location {
            mapping,
            address,
            lines,
        });
        ids.insert(place, location.id, (position, count))?;
    }
    Ok(ids)
}

/// The kind of a profile, and the positions of its values among all values of a sample.
struct Values {
    kind: Kind,
    count: usize,
    ns: usize,
}

impl Values {
    fn of(parts: &mut Parts<'_>) -> Result<Self, ReadError> {
        let mut found = Vec::new();
        for (index, part) in std::mem::take(&mut parts.types).into_iter().enumerate() {
            let place = Place("type of values", index + 1);
            let kind: message::ValueType = decoded(place, part)?;
            let (name, unit) = (parts.name(place, kind.kind)?, parts.name(place, kind.unit)?);
            found.push(format!("{name}/{unit}"));
        }
        let of_kind = |kind: Kind| {
            let (count, time) = kind.values();
            let position = |wanted: String| {
                let index = found.iter().position(|kind| *kind == wanted);
                index.ok_or_else(|| ReadError::Type {
                    wanted,
                    found: match found.as_slice() {
                        [] => "none".to_owned(),
                        found => found.join(", "),
                    },
                })
            };
            Ok(Self {
                kind,
                count: position(format!("{count}/{COUNT}"))?,
                ns: position(format!("{time}/{NANOSECONDS}"))?,
            })
        };
        of_kind(Kind::Off).or_else(|_: ReadError| of_kind(Kind::Cpu))
    }

    /// The number of samples and their time.
    fn weight(&self, place: Place, sample: &message::Sample) -> Result<(u64, u64), ReadError> {
        let value = |what, at: usize| {
            let value = sample.value.get(at).copied().unwrap_or(0);
            let possible = u64::try_from(value);
            possible.map_err(|_| ReadError::Value { place, what, value })
        };
        let (count, ns) = match self.kind {
            Kind::Cpu => ("the number of samples", "the CPU time"),
            Kind::Off => ("the number of intervals", "the time off the CPU"),
        };
        Ok((value(count, self.count)?, value(ns, self.ns)?))
    }
}

fn samples(
    parts: &mut Parts<'_>,
    locations: &Ids<Located>,
    values: &Values,
    into: &mut Builder,
) -> Result<(), ReadError> {
    let mut frames_together = 0;
    let (mut threads, mut wakers) = (HashMap::new(), HashMap::new());
    for (index, part) in std::mem::take(&mut parts.samples).into_iter().enumerate() {
        let place = Place("sample", index + 1);
        let sample: message::Sample = decoded(place, part)?;
        let mut stack = Vec::with_capacity(sample.location_id.len());
        let mut frames = 0;
        for id in &sample.location_id {
            let (location, count) = locations.get(place, *id)?;
            stack.push(location);
            frames += count;
        }
        frames_together += frames;
        if frames > MOST_FRAMES || frames_together > MOST_FRAMES_TOGETHER {
            return Err(match frames > MOST_FRAMES {
                true => ReadError::TooMany {
                    what: "functions in one stack",
                    most: MOST_FRAMES,
                },
                false => ReadError::TooMany {
                    what: "functions in all stacks together",
                    most: MOST_FRAMES_TOGETHER,
                },
            });
        }
        let (count, ns) = values.weight(place, &sample)?;
        let labels = Labels::of(parts, place, &sample.label)?;
        let thread = match threads.entry(labels.thread) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let name = parts.name(place, labels.thread)?;
                *new.insert(into.thread(&name))
            }
        };
        let wait = match values.kind {
            Kind::Cpu => None,
            Kind::Off => wait(parts, place, &labels, &mut wakers, into)?,
        };
        into.add(Sample {
            stack,
            thread,
            second: labels.second,
            count,
            ns,
            wait,
        });
    }
    Ok(())
}

/// The labels of a sample: numbers, and positions of texts, which are 0 where there is no label.
#[derive(Default)]
struct Labels {
    second: u32,
    thread: i64,
    class: i64,
    waker: i64,
}

impl Labels {
    fn of(parts: &Parts<'_>, place: Place, labels: &[message::Label]) -> Result<Self, ReadError> {
        let mut found = Self::default();
        for label in labels {
            let key = parts.text(place, label.key)?;
            let text = match std::str::from_utf8(key) {
                Ok(SECOND) => {
                    let value = label.number;
                    found.second = u32::try_from(value).map_err(|_| ReadError::Value {
                        place,
                        what: SECOND,
                        value,
                    })?;
                    continue;
                }
                Ok(THREAD) => &mut found.thread,
                Ok(CLASS) => &mut found.class,
                Ok(WAKER) => &mut found.waker,
                _ => continue,
            };
            *text = label.text;
        }
        Ok(found)
    }
}

/// Returns the wait in a sample's labels; `wakers` are the ones read so far, by the positions of their texts.
fn wait(
    parts: &mut Parts<'_>,
    place: Place,
    labels: &Labels,
    wakers: &mut HashMap<i64, usize>,
    into: &mut Builder,
) -> Result<Option<Wait>, ReadError> {
    let waker = match wakers.entry(labels.waker) {
        _ if labels.waker == 0 => None,
        Entry::Occupied(known) => Some(*known.get()),
        Entry::Vacant(new) => {
            let name = parts.name(place, labels.waker)?;
            Some(*new.insert(into.waker(&name)))
        }
    };
    if labels.class == 0 && waker.is_none() {
        return Ok(None);
    }
    let class = std::str::from_utf8(parts.text(place, labels.class)?);
    let class = class.ok().and_then(Class::named).unwrap_or(Class::Other);
    Ok(Some(Wait { class, waker }))
}
