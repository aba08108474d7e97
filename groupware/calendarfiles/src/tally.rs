//! Counts and reports the results of an import.

use serde_json::Value;

use crate::Request;

/// The maximum number of skipped objects that are reported individually.
const TOLD: u64 = 20;

/// The number of objects by result.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    new: u64,
    newer: u64,
    there: u64,
    own: u64,
    left_out: u64,
    /// The number of imported or existing objects that no list of events contains.
    no_events: u64,
}

impl Tally {
    /// Counts a skipped object. Returns the message to report, or `None` after `TOLD` skipped objects.
    pub fn leave_out(&mut self, why: &str) -> Option<String> {
        self.left_out += 1;
        (self.left_out <= TOLD).then(|| format!("not imported: {why}"))
    }

    /// Counts the results in a response, and returns the messages to report; `None` if the response doesn't match the
    /// request.
    pub fn take(&mut self, request: &Request, answer: &Value) -> Option<Vec<String>> {
        let objects = answer["objects"].as_array()?;
        if objects.len() != request.places.len() {
            return None;
        }
        let mut told = Vec::new();
        for (place, object) in request.places.iter().zip(objects) {
            told.extend(self.one(place, object));
        }
        Some(told)
    }

    fn one(&mut self, place: &str, object: &Value) -> Option<String> {
        let message = object["message"].as_str();
        let outcome = object["outcome"].as_str();
        let is_here = matches!(outcome, Some("new" | "newer" | "there"));
        self.no_events += u64::from(is_here && object["kind"].is_string());
        match outcome {
            Some("new") => self.new += 1,
            Some("newer") => self.newer += 1,
            Some("there") => self.there += 1,
            Some("own") => {
                self.own += 1;
                let uid = object["uid"].as_str().unwrap_or_default();
                return Some(format!(
                    "left as it is: {place}: {uid} was made on this server, and stays"
                ));
            }
            _ => {
                let why = message.unwrap_or("the server refused it");
                return self.leave_out(&format!("{place}: {why}"));
            }
        }
        message.map(|message| format!("note: {place}: {message}"))
    }

    /// Returns the number of objects that are on the calendar now.
    pub fn done(&self) -> u64 {
        self.new + self.newer + self.there
    }

    /// Returns the number of skipped objects, including unreadable files.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns a summary in one line.
    pub fn summary(&self) -> String {
        let mut summary = format!("{} imported", self.new);
        for (count, what) in [
            (self.newer, "brought up to date"),
            (self.there, "there already"),
            (self.own, "left as they are here"),
        ] {
            if count > 0 {
                summary += &format!(", {count} {what}");
            }
        }
        if self.no_events > 0 {
            summary += &format!(
                "; tasks and journals among them: {}, at /calendar/others in the browser",
                self.no_events
            );
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_no_list_of_events_has_is_counted() {
        let outcomes = [
            ("new", None),
            ("there", Some("task")),
            ("newer", Some("journal")),
            ("own", Some("task")),
        ];
        let request = Request {
            body: Vec::new(),
            places: outcomes.map(|(outcome, _)| outcome.to_owned()).into(),
        };
        let objects = outcomes.map(|(outcome, kind)| match kind {
            None => json!({"uid": "u", "outcome": outcome}),
            Some(kind) => json!({"uid": "u", "outcome": outcome, "kind": kind}),
        });
        let mut tally = Tally::default();
        let told = tally
            .take(&request, &json!({ "objects": objects }))
            .unwrap();
        assert_eq!(told.len(), 1);
        assert_eq!(
            tally.summary(),
            "1 imported, 1 brought up to date, 1 there already, 1 left as they are here; tasks and \
             journals among them: 2, at /calendar/others in the browser"
        );
    }
}
