//! The matrix of a study file: factors, and which of their combinations are cells.

use std::borrow::Cow;

use lab_language::{
    At, Container, Decode, Levels, Problems, Scalar, Table,
    node::{Node, Value},
    unexpected,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A cell as written: level by factor.
pub(crate) type CellFile = At<Table<At<Scalar>>>;

/// Factors with their levels, and the keys `zip`, `exclude`, and `include`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct MatrixFile {
    pub(crate) factors: Table<Levels>,
    /// Groups of factors whose levels go together, first with first.
    pub(crate) zip: Vec<Levels>,
    /// Excluded cells: those that have all these levels.
    pub(crate) exclude: Vec<CellFile>,
    /// Cells in addition to the combinations.
    pub(crate) include: Vec<CellFile>,
}

impl MatrixFile {
    pub(crate) fn is_empty(&self) -> bool {
        self.factors.is_empty()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, (At<String>, Levels)> {
        self.factors.iter()
    }
}

impl Container for MatrixFile {}

impl Decode for MatrixFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            return unexpected(node, "a mapping", problems);
        };
        let mut file = Self::default();
        for (key, value) in entries {
            match key.text.as_str() {
                "zip" => file.zip = Vec::decode(value, problems)?,
                "exclude" => file.exclude = Vec::decode(value, problems)?,
                "include" => file.include = Vec::decode(value, problems)?,
                name => {
                    let name = At {
                        value: name.to_owned(),
                        span: key.span.clone(),
                    };
                    if let Some(levels) = Levels::decode(value, problems) {
                        file.factors.0.push((name, levels));
                    }
                }
            }
        }
        Some(file)
    }
}

impl Serialize for MatrixFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, levels) in self.iter() {
            map.serialize_entry(&name.value, levels)?;
        }
        if !self.zip.is_empty() {
            map.serialize_entry("zip", &self.zip)?;
        }
        for (key, cells) in [("exclude", &self.exclude), ("include", &self.include)] {
            if !cells.is_empty() {
                map.serialize_entry(key, cells)?;
            }
        }
        map.end()
    }
}

impl JsonSchema for MatrixFile {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Matrix".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let levels = generator.subschema_for::<Vec<Scalar>>();
        let told = |mut schema: Schema, what: &str| {
            schema.insert("description".to_owned(), what.into());
            schema
        };
        let groups = generator.subschema_for::<Vec<Vec<String>>>();
        let zip = told(
            groups,
            "Groups of factors whose levels go together, the first with the first.",
        );
        let cells = generator.subschema_for::<Vec<Table<Scalar>>>();
        let exclude = told(
            cells.clone(),
            "Cells that are left out: those with these levels.",
        );
        let include = told(cells, "Cells that there are beside all combinations.");
        json_schema!({
            "type": "object",
            "properties": { "zip": zip, "exclude": exclude, "include": include },
            "additionalProperties": levels
        })
    }
}
