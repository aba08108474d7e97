//! Presets: commands that a study refers to by name. The content of a preset is data, a file in
//! `presets/`; no code here depends on a product.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use lab_language::{CellError, Optional, Setting, TextError, units};
use minijinja::{Environment, Value};
use serde::Deserialize;

use crate::command::{ADDRESS, CommandSpec, PORT_FILE, PROGRAM, SCRATCH, SECRET_FILE, USERS_PORT};
use crate::model::Cell;

/// The address on which a preset listens for users of its own machine.
const HERE: &str = "127.0.0.1";
/// Placeholders that stay in the command until a trial fills them in.
const PLACEHOLDERS: [(&str, &str); 8] = [
    ("program", PROGRAM),
    ("scratch", SCRATCH),
    ("port_file", PORT_FILE),
    ("secret_file", SECRET_FILE),
    ("users_port", USERS_PORT),
    ("name", "{{ name }}"),
    ("seed", "{{ seed }}"),
    ("index", "{{ index }}"),
];

/// The bundled groupware server.
pub(crate) static GROUPWARE: LazyLock<Preset> =
    LazyLock::new(|| Preset::parse(include_str!("../presets/groupware.yaml")));

/// The content of a preset.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Preset {
    settings: BTreeMap<String, Kind>,
    /// A template of the command as JSON.
    command: String,
}

/// How the text of a setting is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A whole number from the first to the second.
    Number(u64, u64),
    /// A size up to this number of bytes.
    Size(u64),
    /// The kind of name, and its values.
    Name(String, Vec<String>),
}

impl Kind {
    fn read(&self, text: &str) -> Result<Value, TextError> {
        match self {
            Self::Number(least, most) => units::whole_number(text, *least..=*most).map(Value::from),
            Self::Size(most) => units::size(text, *most).map(Value::from),
            Self::Name(what, names) => {
                let named: Vec<_> = names.iter().map(|name| (name.as_str(), name)).collect();
                units::one_named(what, text, &named).map(|name| Value::from(name.as_str()))
            }
        }
    }
}

impl Preset {
    /// # Panics
    /// If the text, which is part of this program, is not a preset.
    fn parse(text: &str) -> Self {
        match serde_saphyr::from_str(text) {
            Ok(preset) => preset,
            Err(error) => unreachable!("a preset is not readable: {error}"),
        }
    }
}

/// A preset with the settings of a study, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct PresetTemplate {
    pub(crate) preset: &'static Preset,
    /// Settings by name; the preset knows each of them.
    pub(crate) settings: Vec<(&'static str, Option<Setting>)>,
    /// Whether users have names, and so need accounts.
    pub(crate) has_names: bool,
    /// Whether users deliver mail over SMTP.
    pub(crate) takes_mail: bool,
}

impl PresetTemplate {
    /// Returns the command in `cell`; `far` if users are on other machines.
    pub(crate) fn spec(&self, cell: &Cell, far: bool) -> Result<CommandSpec, CellError> {
        let mut known: BTreeMap<&str, Value> = PLACEHOLDERS
            .into_iter()
            .map(|(name, text)| (name, Value::from(text)))
            .collect();
        known.insert("host", Value::from(if far { ADDRESS } else { HERE }));
        known.insert("far", Value::from(far));
        known.insert("has_names", Value::from(self.has_names));
        known.insert("takes_mail", Value::from(self.takes_mail));
        for (name, setting) in &self.settings {
            let kind = &self.preset.settings[*name];
            if let Some(value) = setting.value(cell, |text| kind.read(text))? {
                known.insert(name, value);
            }
        }
        Ok(self.preset.command(known))
    }
}

impl Preset {
    /// # Panics
    /// If the template, which is part of this program, does not become a command.
    fn command(&self, known: BTreeMap<&str, Value>) -> CommandSpec {
        let rendered = Environment::new().render_str(&self.command, known);
        let made = rendered
            .map_err(|error| error.to_string())
            .and_then(|text| {
                serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
            });
        match made {
            Ok(command) => command,
            Err(error) => unreachable!("a preset is no command: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preparation::{Action, Preparation};

    fn command(known: &[(&'static str, Value)]) -> CommandSpec {
        let own = [
            ("host", Value::from(HERE)),
            ("far", Value::from(false)),
            ("takes_mail", Value::from(false)),
        ];
        let placeholders = PLACEHOLDERS.map(|(name, text)| (name, Value::from(text)));
        let all = placeholders
            .into_iter()
            .chain(own)
            .chain(known.iter().cloned());
        GROUPWARE.command(all.collect())
    }

    #[test]
    fn settings_become_flags() {
        let plain = command(&[]);
        let expected = "{{ program }} serve --listen 127.0.0.1:0 --data {{ scratch }} --port-file {{ port_file }} \
                        --admin-token-file {{ secret_file }} --quota 9223372036854775807 \
                        --mail-quota 9223372036854775807 --lookup open";
        assert_eq!(plain.start.join(" "), expected);
        assert_eq!(plain.preparation.actions().count(), 0);
        assert_eq!(plain.preparation.disk_per_user, 64 << 10);
        let set = command(&[
            ("http_threads", Value::from(80)),
            ("requests_at_once", Value::from(100)),
            ("engine", Value::from("memory")),
            ("mailbox_pad", Value::from(5)),
            ("lookup_layout", Value::from("indexed")),
            ("takes_mail", Value::from(true)),
            ("far", Value::from(true)),
        ]);
        let flags = "--http-threads 80 --requests-at-once 100 --engine memory --mailbox-pad 5 --lookup-layout indexed \
                     --smtp-listen 127.0.0.1:{{ users_port }} --expose-without-tls --plain-cookies";
        assert_eq!(set.start[16..].join(" "), flags);
    }

    /// Users of the first request of either kind.
    fn users(preparation: &Preparation) -> Vec<u32> {
        let of = |action: &Action| match action {
            Action::Request(request) => request.users_per_request,
            Action::Command(_) => 0,
        };
        preparation.actions().map(of).collect()
    }

    #[test]
    fn requests_stay_within_bounds_whatever_they_carry() {
        let prepared = |pad: u64, messages: u64, engine: &'static str| {
            let known = [
                ("has_names", Value::from(true)),
                ("mailbox_pad", Value::from(pad)),
                ("messages", Value::from(messages)),
                ("engine", Value::from(engine)),
            ];
            command(&known).preparation
        };
        assert_eq!(users(&prepared(0, 50, "sqlite")), [1000, 100]);
        assert_eq!(users(&prepared(30_000_000, 1, "sqlite")), [8, 1000]);
        assert_eq!(users(&prepared(1 << 30, 100_000, "memory")), [1, 1]);
        assert!(prepared(0, 50, "sqlite").keep.is_some());
        assert!(prepared(0, 50, "memory").keep.is_none());
        assert_eq!(
            prepared(7, 2, "sqlite").disk_per_user,
            (64 << 10) + 7 + 2 * (106 << 10)
        );
    }
}
