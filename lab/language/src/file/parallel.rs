//! The raw form of parallel requests.

use schemars::JsonSchema;
use serde::Serialize;

use super::request::{RequestFile, RequestItem};
use super::shapes::Count;
use crate::error::Problems;
use crate::node::{Node, Value};
use lab_units::decode::{Container, Decode, Fields};
use lab_units::parts::{At, Scalar};

/// Requests of a step that are sent at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ParallelFile {
    /// The requests alone.
    Requests(Vec<RequestItem>),
    /// The requests with further settings.
    Full(Box<BesideFile>),
}

/// Requests that are sent at the same time, and their limits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct BesideFile {
    /// The maximum number of concurrent requests per user, 1 to 100. Default: 6 over HTTP/1.1, the number of
    /// connections that browsers open to a server, and 100 over HTTP/2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Count>")]
    pub(crate) at_once: Option<At<Scalar>>,
    /// After a failure, `wait` sends the other requests anyway, and `stop` starts no further one. Default: `wait`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub(crate) on_failure: Option<At<Scalar>>,
    /// The requests. Reports count a request with a `name` as a step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) requests: Vec<RequestItem>,
    /// A request for each entry of a list that an earlier request has captured, after the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<EachFile>")]
    pub(crate) each: Option<At<EachFile>>,
}

/// A request for each entry of a list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct EachFile {
    /// The variable with the list.
    #[serde(rename = "in")]
    #[schemars(with = "String")]
    pub(crate) list: At<String>,
    /// The variable that has the entry in its request.
    #[serde(rename = "as")]
    #[schemars(with = "String")]
    pub(crate) entry: At<String>,
    /// The maximum number of requests, 1 to 1,000: `30`.
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
