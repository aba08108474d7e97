//! The counters of common systems, as data: files in `presets/`. No code here depends on a product.

use std::sync::LazyLock;

use lab_asked::How;
use serde::Deserialize;

/// The presets' names and YAML texts.
const FILES: [(&str, &str); 5] = [
    ("postgresql", include_str!("../presets/postgresql.yaml")),
    ("mysql", include_str!("../presets/mysql.yaml")),
    ("redis", include_str!("../presets/redis.yaml")),
    ("jvm", include_str!("../presets/jvm.yaml")),
    ("go", include_str!("../presets/go.yaml")),
];

/// All presets, by name.
pub(crate) static PRESETS: LazyLock<Vec<(&'static str, Preset)>> = LazyLock::new(|| {
    let read = |(name, text)| match serde_saphyr::from_str(text) {
        Ok(preset) => (name, preset),
        // The texts are part of this program.
        Err(error) => unreachable!("the preset {name} is not readable: {error}"),
    };
    FILES.into_iter().map(read).collect()
});

/// The queries for a common system.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Preset {
    /// The client, to which the query is appended.
    #[serde(default)]
    pub(crate) command: Vec<String>,
    /// The address to query instead of a client.
    pub(crate) http: Option<String>,
    pub(crate) asks: Asks,
}

/// The queries of a preset, by name.
pub(crate) type Asks = std::collections::BTreeMap<String, PresetAsk>;

/// A query of a preset.
#[derive(Debug, Deserialize)]
pub(crate) struct PresetAsk {
    #[serde(default)]
    pub(crate) append: Vec<String>,
    #[serde(flatten)]
    pub(crate) how: How,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_readable_and_ask_by_one_way() {
        for (name, preset) in PRESETS.iter() {
            assert_eq!(preset.command.is_empty(), preset.http.is_some(), "{name}");
            assert!(!preset.asks.is_empty(), "{name}");
        }
    }
}
