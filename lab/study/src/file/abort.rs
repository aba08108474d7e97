//! What ends a trial before its time, as written.

use lab_language::{
    At, Decode, Fields, Problems, Scalar, Time,
    node::{Node, Value},
};
use schemars::JsonSchema;
use serde::Serialize;

/// A limit such as `error_rate > 50%` or `response_time p(95) > 5s`, alone or with the duration of its violation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum AbortFile {
    /// A limit that is violated for 10 s.
    Limit(#[schemars(with = "String")] At<Scalar>),
    /// A limit with another duration.
    For(AbortForFile),
}

/// A limit with the duration of its violation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct AbortForFile {
    /// The limit.
    #[schemars(with = "String")]
    pub(crate) when: At<Scalar>,
    /// The uninterrupted duration of the violation. Default: 10s. `--speed` divides it, like the hold.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub(crate) lasts: Option<At<Scalar>>,
}

impl Decode for AbortFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        if !matches!(node.value, Value::Map(_)) {
            return At::decode(node, problems).map(Self::Limit);
        }
        let mut fields = Fields::of(node, "an abort", problems)?;
        let when = fields.required("when", problems);
        let lasts = fields.optional("for", problems);
        fields.finish(problems);
        Some(Self::For(AbortForFile { when: when?, lasts }))
    }
}
