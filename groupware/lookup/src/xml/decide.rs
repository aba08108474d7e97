//! The effects of each message of the XML protocol.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;

use groupware_proto_lookup::limits::BLOCKS;
use groupware_proto_lookup::{
    Kind, LsError, Message, Metadata, NMWG, Outcome, Raw, Wanted, XQUERY_EVENT, canonical,
    parse_query, response,
};
use groupware_store::Snapshot;

use crate::context::{Context, Decision};
use crate::layout::Change;
use crate::limits::{LARGE_BYTES, RESULT_BYTES, VISITS, VISITS_AT_ONCE};
use crate::query::Effort;
use crate::record::Record;
use crate::registration::{Content, Registration, Xml};
use crate::{Id, Layout, LookupError, LookupQuery, Reason, records};

/// The scan budget of a message's queries, all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanBudget {
    visits: usize,
    result_bytes: usize,
    /// Exceeding the budget fails the whole message, so that it can be decided again with a larger one.
    is_tried: bool,
}

impl ScanBudget {
    /// The budget in the foreground.
    pub const QUICK: Self = Self {
        visits: VISITS_AT_ONCE,
        result_bytes: LARGE_BYTES,
        is_tried: true,
    };
    /// The maximum budget. The response reports a query that would exceed it.
    pub const WHOLE: Self = Self {
        visits: VISITS,
        result_bytes: RESULT_BYTES,
        is_tried: false,
    };
}

/// Returns the approximate size of the services that a message reads, each counted per read; 0 for
/// those whose size isn't stored.
///
/// # Errors
/// If the store fails.
pub fn size(
    snapshot: &dyn Snapshot,
    layout: Layout,
    message: &Message,
) -> Result<u64, LookupError> {
    let mut bytes = 0_u64;
    if matches!(message.kind, Kind::Keepalive | Kind::Echo) {
        return Ok(bytes);
    }
    for data in &message.data {
        let is_its = |metadata: &&Metadata| metadata.id == data.id_ref;
        for id in message
            .metadata
            .iter()
            .find(is_its)
            .map(named)
            .into_iter()
            .flatten()
        {
            bytes = bytes.saturating_add(layout.keep().size(snapshot, id)?);
        }
    }
    Ok(bytes)
}

/// Returns the services that a metadata block names: by key, directly, or in a query.
fn named(metadata: &Metadata) -> impl Iterator<Item = Id> {
    let key = metadata.key.as_deref().map(Id::of_key);
    let subject = metadata.subject.as_ref();
    let subject = subject.and_then(|subject| service_id(subject).ok());
    let query = metadata.query.as_deref().and_then(parse_query);
    let query = query.and_then(|wanted| match wanted {
        Wanted::Service(key) | Wanted::Data(key) | Wanted::Blocks(key) => Some(Id::of_key(&key)),
        Wanted::ByAddress(_) => None,
    });
    key.into_iter().chain(subject).chain(query)
}

/// The result of a trigger: its outcome for the client, or an internal error.
type Triggered = Result<(Option<Change>, Outcome), Refusal>;

/// The reason why a trigger failed.
enum Refusal {
    Ls(LsError),
    Fault(LookupError),
}

impl From<LookupError> for Refusal {
    fn from(error: LookupError) -> Self {
        match error.reason() {
            Some(_) => Self::Ls(LsError::new("system", error.to_string())),
            None => Self::Fault(error),
        }
    }
}

fn refused<T>(event: impl Into<String>, text: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Ls(LsError::new(event, text)))
}

/// Decides all triggers of a message; the successful ones share one batch.
///
/// # Errors
/// If the store fails; the response reports invalid triggers. [`Reason::TooWide`] if
/// [`ScanBudget::QUICK`] is too small.
pub fn decide(
    context: &Context<'_>,
    message: &Message,
    reach: ScanBudget,
) -> Result<Decision<Vec<u8>>, LookupError> {
    let mut room = reach.result_bytes;
    let (mut changes, mut outcomes) = (Vec::new(), Vec::new());
    let mut changed = HashSet::new();
    if message.data.is_empty() {
        let event = match message.kind {
            Kind::Register => "register.data_trigger_missing",
            _ => "data_trigger",
        };
        let error = LsError::new(event, "No data triggers found in request.");
        outcomes.push((String::new(), Outcome::Failed(error)));
    }
    for (number, data) in message.data.iter().enumerate() {
        let metadata = message
            .metadata
            .iter()
            .find(|metadata| metadata.id == data.id_ref);
        let done = match metadata {
            None => refused(
                "data_trigger",
                format!(
                    "Matching metadata not found for data trigger \"{}\"",
                    data.id_ref
                ),
            ),
            Some(metadata) => Trigger {
                context,
                number,
                message,
                metadata,
                blocks: &data.blocks,
                reach,
                room,
            }
            .decide(),
        };
        let outcome = match done {
            Ok((Some(change), _)) if !changed.insert(change.id()) => {
                let text = "A message changes a service once.";
                Outcome::Failed(LsError::new("messages", text))
            }
            Ok((change, outcome)) => {
                changes.extend(change);
                if let Outcome::Found { xml, .. } = &outcome {
                    room = room.saturating_sub(xml.len());
                }
                outcome
            }
            Err(Refusal::Ls(error)) => Outcome::Failed(error),
            Err(Refusal::Fault(error)) => return Err(error),
        };
        outcomes.push((data.id_ref.clone(), outcome));
    }
    let answer = response(message, &outcomes, context.random);
    context.decide(&changes, answer)
}

struct Trigger<'a> {
    context: &'a Context<'a>,
    number: usize,
    message: &'a Message,
    metadata: &'a Metadata,
    blocks: &'a [Raw],
    reach: ScanBudget,
    /// The bytes left in the response for results.
    room: usize,
}

impl Trigger<'_> {
    fn decide(&self) -> Triggered {
        match self.message.kind {
            Kind::Register => self.register(),
            Kind::Deregister => self.deregister(),
            Kind::Keepalive => self.keepalive(),
            Kind::Key => self.key(),
            Kind::Query => self.query().map(|outcome| (None, outcome)),
            Kind::Echo => Ok((None, Outcome::Echoed)),
        }
    }

    /// Returns the valid service with the metadata's key.
    fn keyed(&self, operation: &str) -> Result<Registration, Refusal> {
        let event = || format!("{operation}.key_not_found");
        let Some(key) = &self.metadata.key else {
            return refused(event(), "Key not found in message.");
        };
        match self.find(key)? {
            Some(found) => Ok(found),
            None => refused(event(), format!("Sent key \"{key}\" was not registered.")),
        }
    }

    fn find(&self, key: &str) -> Result<Option<Registration>, LookupError> {
        self.valid(Id::of_key(key))
    }

    fn valid(&self, id: Id) -> Result<Option<Registration>, LookupError> {
        let found = self.context.keep().get(self.context.snapshot, id)?;
        Ok(found.filter(|found| found.head.lease.is_valid(self.context.now)))
    }

    fn register(&self) -> Triggered {
        match (&self.metadata.key, &self.metadata.subject) {
            (None, Some(subject)) => {
                let id = service_id(subject)?;
                match self.valid(id)? {
                    // Registering again adds new blocks, and renews the lease.
                    Some(found) => self.append(found),
                    None => self.put(id, subject.xml.clone(), subject, Vec::new()),
                }
            }
            (Some(_), Some(subject)) => {
                let found = self.keyed("register")?;
                self.context.may_change(&found.head)?;
                self.put(found.id, subject.xml.clone(), subject, Vec::new())
            }
            (Some(_), None) => self.append(self.keyed("register")?),
            (None, None) => refused(
                "register.missing_value",
                "Cannot register data, a service or a key was not supplied.",
            ),
        }
    }

    fn append(&self, found: Registration) -> Triggered {
        self.context.may_change(&found.head)?;
        let Some(xml) = found.content.xml else {
            return refused(
                "register.key_not_found",
                "The key belongs to a record that was not registered by this protocol.",
            );
        };
        let subject = Raw {
            texts: service_texts(&found.content.record),
            ..Raw::default()
        };
        self.put(found.id, xml.subject, &subject, xml.blocks)
    }

    /// Stores the service with its existing blocks and those of this trigger.
    fn put(&self, id: Id, subject: String, service: &Raw, mut blocks: Vec<String>) -> Triggered {
        let known: HashSet<&str> = blocks.iter().map(String::as_str).collect();
        let new = self
            .blocks
            .iter()
            .filter(|block| !known.contains(block.xml.as_str()));
        let new: Vec<String> = new.map(|block| block.xml.clone()).collect();
        let had_some = !blocks.is_empty();
        let count = self.blocks.len();
        let texts = match had_some {
            // Existing blocks were parsed on arrival, and parse again.
            true => blocks
                .iter()
                .filter_map(|block| Raw::parse(block))
                .collect(),
            false => Vec::new(),
        };
        blocks.extend(new);
        if blocks.len() > BLOCKS {
            return refused("system", format!("A service has at most {BLOCKS} blocks."));
        }
        let record = record(service, texts.iter().chain(self.blocks));
        let content = Content {
            record,
            xml: Some(Xml { subject, blocks }),
        };
        content.record.check()?;
        let bits = self.context.bits(self.number);
        let asked = self.message.asked_ttl_s;
        let registration = self.context.registration((id, bits), content, asked);
        let word = if had_some { "updated" } else { "registered" };
        let key = id.key();
        let text = format!("[{count}] Data elements have been {word} with key [{key}]");
        let done = Outcome::Done {
            event: "register",
            key: Some(key),
            text,
        };
        Ok((Some(Change::Put(Box::new(registration))), done))
    }

    fn deregister(&self) -> Triggered {
        let found = self.keyed("deregister")?;
        self.context.may_change(&found.head)?;
        let id = found.id;
        let key = id.key();
        let done = |text| Outcome::Done {
            event: "deregister",
            key: None,
            text,
        };
        let xml = found.content.xml.unwrap_or_default();
        if self.blocks.is_empty() {
            let count = xml.blocks.len();
            let text =
                format!("Removed [{count}] data elements and service info for key \"{key}\".");
            return Ok((Some(Change::Remove(id)), done(text)));
        }
        let gone: HashSet<String> = self
            .blocks
            .iter()
            .filter_map(|block| canonical(&block.xml))
            .collect();
        let stays = |block: &String| canonical(block).is_none_or(|block| !gone.contains(&block));
        let blocks: Vec<String> = xml
            .blocks
            .iter()
            .filter(|block| stays(block))
            .cloned()
            .collect();
        let count = xml.blocks.len() - blocks.len();
        let text = format!("Removed [{count}] data elements for key \"{key}\".");
        if count == 0 {
            return Ok((None, done(text)));
        }
        let service = Raw {
            texts: service_texts(&found.content.record),
            ..Raw::default()
        };
        let texts: Vec<Raw> = blocks
            .iter()
            .filter_map(|block| Raw::parse(block))
            .collect();
        let content = Content {
            record: record(&service, texts.iter()),
            xml: Some(Xml {
                subject: xml.subject,
                blocks,
            }),
        };
        let bits = self.context.bits(self.number);
        let mut registration = self.context.registration((id, bits), content, None);
        registration.head.lease = found.head.lease;
        registration.head.owner = found.head.owner;
        Ok((Some(Change::Put(Box::new(registration))), done(text)))
    }

    fn keepalive(&self) -> Triggered {
        let event = "keepalive.key_not_found";
        let Some(key) = &self.metadata.key else {
            return refused(event, "Key not found in message.");
        };
        let id = Id::of_key(key);
        let Some(mut head) = self.context.keep().head(self.context.snapshot, id)? else {
            return refused(event, format!("Sent key \"{key}\" was not registered."));
        };
        records::relet(self.context, &mut head, self.message.asked_ttl_s)?;
        let done = Outcome::Done {
            event: "keepalive",
            key: None,
            text: format!("Key \"{key}\" was updated."),
        };
        Ok((Some(Change::Renew(id, head)), done))
    }

    fn key(&self) -> Triggered {
        let Some(subject) = &self.metadata.subject else {
            return refused(
                "key.service_missing",
                "Cannot find data, service element was not found.",
            );
        };
        let id = service_id(subject)?;
        match self.valid(id)? {
            Some(_) => Ok((
                None,
                Outcome::Done {
                    event: "key",
                    key: Some(id.key()),
                    text: format!("The service has the key \"{}\".", id.key()),
                },
            )),
            None => refused(
                "key.not_registered",
                "Service was not registered in this LS.",
            ),
        }
    }

    fn query(&self) -> Result<Outcome, Refusal> {
        let event_type = self.metadata.event_type.as_deref().unwrap_or(XQUERY_EVENT);
        if event_type.trim_end_matches('/') != XQUERY_EVENT {
            return refused(
                "query.eventType",
                "Given query type is missing or not supported.",
            );
        }
        let Some(text) = &self.metadata.query else {
            return refused("query.query_not_found", "Query not found in sent metadata.");
        };
        let Some(wanted) = parse_query(text) else {
            return refused(
                "query.not_supported",
                "This query is not supported. Supported are paths by key: \
                 /nmwg:store[@type=\"LSStore\"]/nmwg:metadata[@id=\"KEY\"], \
                 /nmwg:store[@type=\"LSStore\"]/nmwg:data[@metadataIdRef=\"KEY\"] with or without \
                 /nmwg:metadata, and \
                 /nmwg:store[@type=\"LSStore\"]/nmwg:data[.//nmwgt:ifAddress=\"ADDRESS\"]. \
                 Other questions are answered at /lookup/records.",
            );
        };
        let xml = self.found(&wanted)?;
        match xml.is_empty() {
            true => refused("query.empty_results", "Nothing returned for search."),
            false => Ok(Outcome::Found {
                xml,
                is_native: self.metadata.is_native,
            }),
        }
    }

    fn found(&self, wanted: &Wanted) -> Result<String, Refusal> {
        let mut out = String::new();
        match wanted {
            Wanted::Service(key) => {
                let found = self.find(key)?.and_then(|found| found.content.xml);
                if let Some(xml) = found {
                    write_service(key, &xml, &mut out);
                }
            }
            Wanted::Data(key) => {
                if let Some(xml) = self.find(key)?.and_then(|found| found.content.xml) {
                    write_data(key, &xml, &mut out);
                }
            }
            Wanted::Blocks(key) => {
                if let Some(xml) = self.find(key)?.and_then(|found| found.content.xml) {
                    xml.blocks.iter().for_each(|block| out.push_str(block));
                }
            }
            Wanted::ByAddress(address) => self.by_address(address, &mut out)?,
        }
        match out.len() > self.room {
            true => Err(self.too_wide()),
            false => Ok(out),
        }
    }

    fn too_wide(&self) -> Refusal {
        let text = "The answer is too large: ask for less at once.";
        match self.reach.is_tried {
            true => Refusal::Fault(LookupError::refused(Reason::TooWide, text)),
            false => Refusal::Ls(LsError::new("query.too_large", text)),
        }
    }

    fn by_address(&self, address: &str, out: &mut String) -> Result<(), Refusal> {
        // A comma or a star has a special meaning.
        if address.contains([',', '*']) {
            return Ok(());
        }
        let visits = self.reach.visits / self.message.data.len().max(1);
        let query = LookupQuery::parse([("interface-addresses", address)].into_iter())?;
        let query = query.looking_at(visits);
        let (snapshot, now) = (self.context.snapshot, self.context.now);
        let mut effort = Effort::of(&query);
        let seen = self
            .context
            .keep()
            .candidates(snapshot, &query, &mut |found| {
                if found.head.lease.is_valid(now)
                    && query.matches(&found, &mut effort)
                    && let Some(xml) = &found.content.xml
                {
                    write_data(&found.id.key(), xml, out);
                }
                match out.len() > self.room || effort.is_spent() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
        let seen = match effort.is_spent() {
            true => Err(LookupError::too_wide()),
            false => seen,
        };
        match seen {
            Err(error) if self.reach.is_tried && error.reason() == Some(Reason::TooWide) => {
                Err(Refusal::Fault(error))
            }
            seen => Ok(seen?),
        }
    }
}

fn write_service(key: &str, xml: &Xml, out: &mut String) {
    out.extend([
        "<nmwg:metadata xmlns:nmwg=\"",
        NMWG,
        "\" id=\"",
        &quick_xml::escape::escape(key),
        "\">",
        &xml.subject,
        "</nmwg:metadata>",
    ]);
}

fn write_data(key: &str, xml: &Xml, out: &mut String) {
    let key = quick_xml::escape::escape(key);
    out.reserve(xml.blocks.iter().map(String::len).sum::<usize>() + 256);
    out.extend([
        "<nmwg:data xmlns:nmwg=\"",
        NMWG,
        "\" id=\"",
        &key,
        "/0\" metadataIdRef=\"",
        &key,
        "\">",
    ]);
    xml.blocks.iter().for_each(|block| out.push_str(block));
    out.push_str("</nmwg:data>");
}

fn text_of<'a>(raw: &'a Raw, name: &str) -> Option<&'a str> {
    let found = raw.texts.iter().find(|(local, _)| local == name);
    found.map(|(_, text)| text.as_str())
}

/// Returns the id of a service: by its access point, or by its address, type, and name.
fn service_id(subject: &Raw) -> Result<Id, Refusal> {
    let text = |name| text_of(subject, name).unwrap_or_default();
    match (
        text("accessPoint"),
        text("address"),
        text("type"),
        text("name"),
    ) {
        ("", "", "", "") => refused(
            "register.missing_value",
            "Cannot register data, accessPoint or address was not supplied.",
        ),
        ("", address, kind, name) => Ok(Id::of_parts(&[address, kind, name])),
        (point, ..) => Ok(Id::of_parts(&[point])),
    }
}

/// Returns the equivalent record of a service and its blocks, so that either protocol finds it.
fn record<'a>(service: &Raw, blocks: impl Iterator<Item = &'a Raw>) -> Record {
    let mut record = Record::default();
    let mut add = |key: &str, value: &str| {
        let values: &mut Vec<String> = record.fields.entry(key.to_owned()).or_default();
        values.push(value.to_owned());
    };
    add("type", "service");
    for (local, key) in SERVICE_KEYS {
        if let Some(text) = text_of(service, local) {
            add(key, text);
        }
    }
    let mut hosts = BTreeSet::new();
    for (local, text) in blocks.flat_map(|block| &block.texts) {
        match local.as_str() {
            "ifAddress" => add("interface-addresses", text),
            "ifName" => add("interface-name", text),
            "hostName" => {
                hosts.insert(text.as_str());
            }
            _ => {}
        }
    }
    for host in hosts {
        add("host-name", host);
    }
    record
}

/// The record keys of a service's elements.
const SERVICE_KEYS: [(&str, &str); 7] = [
    ("serviceName", "service-name"),
    ("accessPoint", "service-locator"),
    ("serviceType", "service-type"),
    ("serviceDescription", "service-description"),
    ("address", "service-address"),
    ("name", "service-display-name"),
    ("type", "service-kind"),
];

/// The texts of a service, from its record.
fn service_texts(record: &Record) -> Vec<(String, String)> {
    let text = |(local, key): (&str, &str)| {
        let value = record.values(key).first()?;
        Some((local.to_owned(), value.clone()))
    };
    SERVICE_KEYS.into_iter().filter_map(text).collect()
}
