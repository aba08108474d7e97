//! The raw form of parallel requests.

use schemars::JsonSchema;
use serde::Serialize;

use super::request::{RequestFile, RequestItem};
use super::shapes::Count;
use crate::error::Problems;
use crate::node::{Node, Value};
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Scalar};

/// Requests of a step that go out at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ParallelFile {
    /// The requests alone.
    Requests(Vec<RequestItem>),
    /// With more.
    Full(Box<BesideFile>),
}

/// Which requests go out at the same time, and how many at once.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct BesideFile {
    /// At most so many of a user's are under way at once, 1 to 100. Unless said 6 over HTTP/1.1, as browsers open so
    /// many connections to a server, and 100 over HTTP/2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) at_once: Option<At<Scalar>>,
    /// What a failure changes: `wait` (unless said) sends the others all the same, `stop` begins no further one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) on_failure: Option<At<Scalar>>,
    /// The requests. Each may have a `name`, under which the report counts it as a step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) requests: Vec<RequestItem>,
    /// A request for each entry of a list that an earlier request has captured, behind the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<EachFile>")]
    pub(crate) each: Option<At<EachFile>>,
}

/// A request for each entry of a list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct EachFile {
    /// The variable that has the list.
    #[serde(rename = "in")]
    #[schemars(with = "String")]
    pub(crate) list: At<String>,
    /// The variable that has the entry while its request is made.
    #[serde(rename = "as")]
    #[schemars(with = "String")]
    pub(crate) entry: At<String>,
    /// No more than these are sent, 1 to 1,000: `30`.
    #[schemars(with = "Count")]
    pub(crate) at_most: At<Scalar>,
    /// The request.
    #[serde(flatten)]
    pub(crate) only: RequestFile,
}

impl ParallelFile {
    /// Returns the requests, in the order of the file.
    pub(crate) fn requests(&self) -> &[RequestItem] {
        match self {
            Self::Requests(requests) => requests,
            Self::Full(full) => &full.requests,
        }
    }

    /// Returns its settings apart from the requests.
    pub(crate) fn full(&self) -> Option<&BesideFile> {
        match self {
            Self::Requests(_) => None,
            Self::Full(full) => Some(full),
        }
    }

    /// Returns the request for each entry of a list.
    pub(crate) fn each(&self) -> Option<&At<EachFile>> {
        self.full()?.each.as_ref()
    }

    /// Returns all requests with more than a line, with their indexes among all.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &RequestFile)> {
        let listed = self.requests().iter().enumerate();
        let listed = listed.filter_map(|(place, item)| match item {
            RequestItem::Full(request) => Some((place, &request.value)),
            RequestItem::Line(_) => None,
        });
        let each = self.each().map(|each| &each.value.only);
        listed.chain(each.map(|each| (self.requests().len(), each)))
    }
}

impl Container for ParallelFile {}

impl Decode for ParallelFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return Vec::decode(node, problems).map(Self::Requests);
        };
        let mut fields = Fields::of(node, "parallel", problems)?;
        let full = BesideFile {
            at_once: fields.optional("at_once", problems),
            on_failure: fields.optional("on_failure", problems),
            requests: fields.optional("requests", problems).unwrap_or_default(),
            each: fields.optional("each", problems),
        };
        fields.finish(problems);
        Some(Self::Full(Box::new(full)))
    }
}

impl Container for EachFile {}

impl Decode for EachFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "each", problems)?;
        let list = word(fields.required("in", problems));
        let entry = word(fields.required("as", problems));
        let at_most = fields.required("at_most", problems);
        let only = RequestFile::from_fields(&mut fields, problems);
        fields.finish(problems);
        Some(Self {
            list: list?,
            entry: entry?,
            at_most: at_most?,
            only,
        })
    }
}

fn word(scalar: Option<At<Scalar>>) -> Option<At<String>> {
    scalar.map(|at| At {
        value: at.text(),
        span: at.span,
    })
}
