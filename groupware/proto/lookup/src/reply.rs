//! Answers of the XML protocol, in a SOAP 1.1 envelope.

use quick_xml::escape::escape;

use crate::message::{Kind, Message};
use crate::names::{NMWG, NMWGR, PSSERVICE, SOAP};
use crate::reader::XmlError;

/// The result of a trigger.
#[derive(Debug)]
pub enum Outcome {
    /// Success: the event's name, the key if the answer has one, a sentence.
    Done {
        /// What follows `success.ls.`.
        event: &'static str,
        /// The key of the service.
        key: Option<String>,
        /// The sentence.
        text: String,
    },
    /// The results of a query.
    Found {
        /// As XML.
        xml: String,
        /// Whether they are sent as XML, rather than as text.
        is_native: bool,
    },
    /// The service is there.
    Echoed,
    /// Failure.
    Failed(LsError),
}

/// Why a trigger failed, in the terms of the protocol.
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

/// Returns the answer to a message: the result of each trigger, by the id of its metadata.
pub fn response(message: &Message, outcomes: &[(String, Outcome)], random: u128) -> Vec<u8> {
    let mut out = String::with_capacity(2048);
    let id_ref = message.id.as_deref().unwrap_or_default();
    begin(&mut out);
    out.extend([
        "<nmwg:message xmlns:nmwg=\"",
        NMWG,
        // perfSONAR's clients look for results by this prefix.
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
        // The client looks for the key in the data.
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

/// Returns the answer to a body that is no message: a SOAP fault.
pub fn fault(error: &XmlError) -> Vec<u8> {
    fault_of("Client", &format!("error.ls.messages: {error}"))
}

/// Returns the answer to a message without a result: why it was rejected, or that the service failed.
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
