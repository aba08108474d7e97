//! Answers of the XML protocol, in a SOAP 1.1 envelope.

use quick_xml::escape::escape;

use crate::message::{Kind, Message};
use crate::names::{NMWG, NMWGR, PSSERVICE, SOAP};
use crate::reader::XmlError;

/// What became of one trigger.
#[derive(Debug)]
pub enum Outcome {
    /// It was done: the event's name, the key where the answer has one, a sentence.
    Done {
        /// What follows `success.ls.`.
        event: &'static str,
        /// The key of the service.
        key: Option<String>,
        /// The sentence.
        text: String,
    },
    /// What was found.
    Found {
        /// As XML.
        xml: String,
        /// Whether it is told as XML, rather than as its text.
        is_native: bool,
    },
    /// The service is there.
    Echoed,
    /// It was not done.
    Failed(LsError),
}

/// Why a trigger failed, as the protocol says it.
#[derive(Debug)]
pub struct LsError {
    /// What follows `error.ls.`.
    pub event: String,
    /// A sentence.
    pub text: String,
}

impl LsError {
    /// What follows `error.ls.`, and a sentence.
    pub fn new(event: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            event: event.into(),
            text: text.into(),
        }
    }
}

/// The answer to a message: for each trigger, by the id of its metadata, what became of it.
pub fn response(message: &Message, outcomes: &[(String, Outcome)], random: u128) -> Vec<u8> {
    let mut out = String::with_capacity(2048);
    let id_ref = message.id.as_deref().unwrap_or_default();
    begin(&mut out);
    out.extend([
        "<nmwg:message xmlns:nmwg=\"",
        NMWG,
        // perfSONAR's clients look for what has it by the names that are known here.
        "\" xmlns:nmwgr=\"",
        NMWGR,
        "\" id=\"message.",
        &format!("{:016x}", random as u64),
        "\" messageIdRef=\"",
        &escape(id_ref),
        "\" type=\"",
        message.kind.prefix(),
        message.kind.name(),
        "Response\">",
    ]);
    for (number, (metadata, outcome)) in outcomes.iter().enumerate() {
        trigger(&mut out, message.kind, (number, metadata), outcome);
    }
    out.push_str("</nmwg:message>");
    end(&mut out);
    out.into_bytes()
}

fn trigger(out: &mut String, kind: Kind, (number, metadata): (usize, &str), outcome: &Outcome) {
    let metadata = escape(metadata);
    let (status, key, text) = match outcome {
        Outcome::Done { event, key, text } => {
            (format!("success.ls.{event}"), key.as_deref(), text.as_str())
        }
        Outcome::Failed(error) => (
            format!("error.ls.{}", error.event),
            None,
            error.text.as_str(),
        ),
        Outcome::Found { .. } => ("success.ls.query".to_owned(), None, ""),
        Outcome::Echoed => (
            "success.echo".to_owned(),
            None,
            "The echo request has passed.",
        ),
    };
    out.push_str(&format!(
        "<nmwg:metadata id=\"metadata.{number}\" metadataIdRef=\"{metadata}\">"
    ));
    write_key(out, key);
    out.push_str(&format!(
        "<nmwg:eventType>{}</nmwg:eventType></nmwg:metadata>\
         <nmwg:data id=\"data.{number}\" metadataIdRef=\"metadata.{number}\">",
        escape(&status)
    ));
    if kind == Kind::Key {
        // Who asks for it looks for it among the data.
        write_key(out, key);
    }
    match outcome {
        Outcome::Found { xml, is_native } => {
            out.extend(["<psservice:datum xmlns:psservice=\"", PSSERVICE, "\">"]);
            match is_native {
                true => out.push_str(xml),
                false => out.push_str(&escape(xml)),
            }
            out.push_str("</psservice:datum>");
        }
        _ => {
            out.extend(["<nmwgr:datum xmlns:nmwgr=\"", NMWGR, "\">", &escape(text)]);
            out.push_str("</nmwgr:datum>");
        }
    }
    out.push_str("</nmwg:data>");
}

fn write_key(out: &mut String, key: Option<&str>) {
    if let Some(key) = key {
        out.extend([
            "<nmwg:key id=\"key.0\"><nmwg:parameters id=\"param.0\"><nmwg:parameter name=\"lsKey\">",
            &escape(key),
            "</nmwg:parameter></nmwg:parameters></nmwg:key>",
        ]);
    }
}

/// The answer to a body that is no message: a SOAP fault.
pub fn fault(error: &XmlError) -> Vec<u8> {
    fault_of("Client", &format!("error.ls.messages: {error}"))
}

/// The answer to a message that could not be decided: why it was refused, or that the service failed.
pub fn failure(refusal: Option<&str>) -> Vec<u8> {
    match refusal {
        Some(text) => fault_of("Client", &format!("error.ls.system: {text}")),
        None => fault_of("Server", "error.ls.internal_error: the service failed"),
    }
}

fn fault_of(code: &str, text: &str) -> Vec<u8> {
    let mut out = String::new();
    begin(&mut out);
    out.push_str(&format!(
        "<SOAP-ENV:Fault><faultcode>SOAP-ENV:{code}</faultcode>\
         <faultstring>{}</faultstring></SOAP-ENV:Fault>",
        escape(text)
    ));
    end(&mut out);
    out.into_bytes()
}

fn begin(out: &mut String) {
    out.extend([
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<SOAP-ENV:Envelope xmlns:SOAP-ENV=\"",
        SOAP,
        "\"><SOAP-ENV:Header/><SOAP-ENV:Body>",
    ]);
}

fn end(out: &mut String) {
    out.push_str("</SOAP-ENV:Body></SOAP-ENV:Envelope>\n");
}
