//! HTML documents and lists of their nodes, for `k6/html`. It knows no JavaScript.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::Deref;
use std::rc::Rc;

use ego_tree::{NodeId, NodeRef};
use html5ever::tendril::{StrTendril, TendrilSink};
use scraper::html::HtmlTreeSink;
use scraper::{ElementRef, Html, Node, Selector};

use crate::shared::Held;

/// The longest text that is parsed, in bytes.
const LONGEST: usize = 8 << 20;
/// The most elements within each other.
const DEEPEST: usize = 512;
/// The most nodes of a document per byte of its text; text that exceeds it is treated as an attack.
const NODES_PER_BYTE: usize = 2;
/// About the bytes of a document per byte of its text.
pub(crate) const BYTES_PER_BYTE: usize = 10;
/// The longest selector in bytes.
const LONGEST_SELECTOR: usize = 4096;
/// Bytes that are parsed between two looks at the tree. They add as many levels as they have tags.
const PIECE: usize = 4096;

/// A list of nodes of one document, without duplicates.
#[derive(Clone)]
pub(crate) struct Nodes {
    page: Rc<Page>,
    list: Vec<NodeId>,
}

/// A document.
struct Page {
    html: Html,
    _held: Held,
}

impl Deref for Page {
    type Target = Html;

    fn deref(&self) -> &Html {
        &self.html
    }
}

/// The ways from a node to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Children,
    Contents,
    Parent,
    Parents,
    Next,
    NextAll,
    Prev,
    PrevAll,
    /// The siblings before and after among all nodes, text included.
    NextNode,
    PrevNode,
}

/// A selector, and the text that an element must contain.
pub(crate) struct Query {
    selector: Selector,
    contains: Option<String>,
}

impl Query {
    /// Reads a selector of CSS; it may end with `:contains("text")`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST_SELECTOR {
            return Err(format!(
                "a selector has at most {LONGEST_SELECTOR} characters"
            ));
        }
        let (base, contains) = match text
            .trim()
            .strip_suffix(')')
            .and_then(|text| text.rsplit_once(":contains("))
        {
            Some((base, wanted)) => {
                let wanted = wanted.trim().trim_matches(['"', '\'']);
                let alone = base.is_empty() || base.ends_with([' ', '>', '+', '~']);
                (
                    format!("{base}{}", if alone { "*" } else { "" }),
                    Some(wanted.to_owned()),
                )
            }
            None => (text.to_owned(), None),
        };
        let selector = Selector::parse(&base)
            .map_err(|_| format!("the selector '{text}' isn't understood: it is CSS, without :first, :eq, and other additions of jQuery"))?;
        Ok(Query { selector, contains })
    }

    fn matches(&self, element: ElementRef<'_>) -> bool {
        self.selector.matches(&element) && self.has_text(element)
    }

    fn has_text(&self, element: ElementRef<'_>) -> bool {
        let wanted = self.contains.as_ref();
        wanted.is_none_or(|wanted| element.text().collect::<String>().contains(wanted.as_str()))
    }

    /// The elements within a node that match.
    fn within<'a>(&'a self, node: NodeRef<'a, Node>) -> impl Iterator<Item = ElementRef<'a>> {
        let own = ElementRef::wrap(node);
        let children = node.children().filter_map(ElementRef::wrap);
        // What isn't an element, such as the document, can't select.
        let children = children.filter(move |_| own.is_none()).flat_map(|child| {
            let matching = self.selector.matches(&child).then_some(child);
            matching.into_iter().chain(child.select(&self.selector))
        });
        let inner = own.into_iter().flat_map(|own| own.select(&self.selector));
        let all = inner.chain(children);
        all.filter(|element| self.has_text(*element))
    }
}

/// Parses a document as a browser does. `must_end` is asked between its pieces, and ends the work if it is true.
///
/// # Errors
/// A sentence if it is too large, nested too deeply, or if it took too long.
pub(crate) fn parse(text: &str, must_end: &dyn Fn() -> bool) -> Result<Html, String> {
    if text.len() > LONGEST {
        return Err(format!(
            "the HTML has {} bytes; at most {LONGEST} are parsed",
            text.len()
        ));
    }
    let most = PIECE + text.len() * NODES_PER_BYTE;
    let sink = HtmlTreeSink::new(Html::new_document());
    let mut parser = html5ever::parse_document(sink, html5ever::ParseOpts::default());
    let (mut rest, mut seen) = (text, 0);
    while !rest.is_empty() {
        let mut end = rest.len().min(PIECE);
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        parser.process(StrTendril::from(&rest[..end]));
        rest = &rest[end..];
        let tree = &parser.tokenizer.sink.sink.0.borrow().tree;
        let count = tree.values().len();
        if count > most {
            return Err(
                "the HTML reopens its formatting elements at every tag and would produce too many elements"
                    .to_owned(),
            );
        }
        if tree.nodes().rev().take(count - seen).any(is_too_deep) {
            return Err(format!(
                "the HTML has more than {DEEPEST} elements within each other"
            ));
        }
        seen = count;
        if must_end() {
            return Err("the HTML takes too long to parse".to_owned());
        }
    }
    Ok(parser.finish())
}

/// About the bytes of the nodes of a document.
pub(crate) fn bytes(html: &Html) -> usize {
    // Each node has links to its parent, siblings, and first and last child.
    html.tree.values().len() * (size_of::<Node>() + 5 * size_of::<NodeId>())
}

fn is_too_deep(node: NodeRef<'_, Node>) -> bool {
    node.ancestors().nth(DEEPEST).is_some()
}

impl Nodes {
    /// A whole document.
    pub(crate) fn new(html: Html, held: Held) -> Self {
        let list = vec![html.tree.root().id()];
        let page = Rc::new(Page { html, _held: held });
        Nodes { page, list }
    }

    fn of(&self, list: Vec<NodeId>) -> Self {
        Nodes {
            page: Rc::clone(&self.page),
            list,
        }
    }

    fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeRef<'_, Node>> {
        self.list.iter().filter_map(|&id| self.page.tree.get(id))
    }

    fn first(&self) -> Option<NodeRef<'_, Node>> {
        self.nodes().next()
    }

    fn first_element(&self) -> Option<ElementRef<'_>> {
        self.first().and_then(ElementRef::wrap)
    }

    pub(crate) fn size(&self) -> usize {
        self.list.len()
    }

    /// The nodes at these places.
    pub(crate) fn pick(&self, places: &[usize]) -> Self {
        self.of(places
            .iter()
            .filter_map(|&place| self.list.get(place).copied())
            .collect())
    }

    /// Descendants that match; only the first one if `single`.
    pub(crate) fn find(&self, query: &Query, single: bool) -> Self {
        let mut seen = HashSet::new();
        let mut list = Vec::new();
        for node in self.nodes() {
            for element in query.within(node) {
                if seen.insert(element.id()) {
                    list.push(element.id());
                    if single {
                        return self.of(list);
                    }
                }
            }
        }
        self.of(list)
    }

    /// The elements that match, or those that don't.
    pub(crate) fn filter(&self, query: &Query, wanted: bool) -> Self {
        let matches = |node: &NodeRef<'_, Node>| {
            ElementRef::wrap(*node).is_some_and(|element| query.matches(element))
        };
        self.of(self
            .nodes()
            .filter(|node| matches(node) == wanted)
            .map(|node| node.id())
            .collect())
    }

    /// The nodes that are in another list, or those that aren't.
    pub(crate) fn filter_other(&self, other: &Nodes, wanted: bool) -> Self {
        let same = Rc::ptr_eq(&self.page, &other.page);
        let others: HashSet<NodeId> = if same {
            other.list.iter().copied().collect()
        } else {
            HashSet::new()
        };
        self.of(self
            .list
            .iter()
            .copied()
            .filter(|id| others.contains(id) == wanted)
            .collect())
    }

    /// The nodes with a descendant that matches.
    pub(crate) fn has(&self, query: &Query) -> Self {
        let inside = |node: &NodeRef<'_, Node>| {
            node.descendants()
                .skip(1)
                .filter_map(ElementRef::wrap)
                .any(|element| query.matches(element))
        };
        self.of(self.nodes().filter(inside).map(|node| node.id()).collect())
    }

    /// The nodes with a descendant in another list.
    pub(crate) fn has_other(&self, other: &Nodes) -> Self {
        let mut around = HashSet::new();
        if Rc::ptr_eq(&self.page, &other.page) {
            for node in other.nodes() {
                around.extend(node.ancestors().map(|node| node.id()));
            }
        }
        self.of(self
            .list
            .iter()
            .copied()
            .filter(|id| around.contains(id))
            .collect())
    }

    /// The nearest that matches of each node and its ancestors.
    pub(crate) fn closest(&self, query: &Query) -> Self {
        let mut seen = HashSet::new();
        let mut list = Vec::new();
        for node in self.nodes() {
            let found = std::iter::once(node)
                .chain(node.ancestors())
                .filter_map(ElementRef::wrap)
                .find(|element| query.matches(*element));
            if let Some(found) = found.filter(|found| seen.insert(found.id())) {
                list.push(found.id());
            }
        }
        self.of(list)
    }

    /// Where a way leads from each node, up to a node for which `until` is true, and only what `filter` matches.
    pub(crate) fn walk(&self, way: Way, until: &Until<'_>, filter: Option<&Query>) -> Self {
        let mut seen = HashSet::new();
        let mut list = Vec::new();
        for node in self.nodes() {
            for next in way.from(node) {
                let element = ElementRef::wrap(next);
                if !way.any_node() && element.is_none() {
                    continue;
                }
                if until.reached(&self.page, next) {
                    break;
                }
                let passes = filter
                    .is_none_or(|query| element.is_some_and(|element| query.matches(element)));
                if passes && seen.insert(next.id()) {
                    list.push(next.id());
                }
                if way.single() {
                    break;
                }
            }
        }
        self.of(list)
    }

    /// The text of all nodes together.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for node in self.nodes() {
            for inner in node.descendants() {
                if let Node::Text(piece) = inner.value() {
                    text.push_str(piece);
                }
            }
        }
        text
    }

    /// The HTML within the first node, or of it.
    pub(crate) fn html(&self, outer: bool) -> Option<String> {
        let node = self.first()?;
        match (ElementRef::wrap(node), node.value()) {
            (Some(element), _) if outer => Some(element.html()),
            (Some(element), _) => Some(element.inner_html()),
            (None, Node::Document | Node::Fragment) => Some(self.page.html()),
            (None, Node::Text(text)) => Some(html_text(text)),
            (None, _) => Some(String::new()),
        }
    }

    /// An attribute of the first node.
    pub(crate) fn attr(&self, name: &str) -> Option<&str> {
        self.first_element()?.attr(name)
    }

    /// All attributes of the first node.
    pub(crate) fn attrs(&self) -> Vec<(String, String)> {
        self.first_element().map_or_else(Vec::new, |element| {
            element
                .value()
                .attrs()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect()
        })
    }

    /// The name of the first node as the DOM gives it, without capitals.
    pub(crate) fn name(&self) -> &str {
        match self.first().map(|node| node.value()) {
            Some(Node::Element(element)) => element.name(),
            Some(Node::Text(_)) => "#text",
            Some(Node::Comment(_)) => "#comment",
            Some(Node::Doctype(_)) => "html",
            Some(_) => "#document",
            None => "",
        }
    }

    /// The number of the first node's type in the DOM.
    pub(crate) fn kind(&self) -> u8 {
        match self.first().map(|node| node.value()) {
            Some(Node::Element(_)) => 1,
            Some(Node::Text(_)) => 3,
            Some(Node::ProcessingInstruction(_)) => 7,
            Some(Node::Comment(_)) => 8,
            Some(Node::Doctype(_)) => 10,
            Some(Node::Document | Node::Fragment) => 9,
            None => 0,
        }
    }

    /// The text of the first node if it is text or a comment.
    pub(crate) fn value(&self) -> Option<&str> {
        match self.first()?.value() {
            Node::Text(text) => Some(text),
            Node::Comment(comment) => Some(comment),
            _ => None,
        }
    }

    /// Returns true if the first nodes of both are the same.
    pub(crate) fn is_same(&self, other: &Nodes) -> bool {
        Rc::ptr_eq(&self.page, &other.page)
            && self.list.first() == other.list.first()
            && !self.list.is_empty()
    }

    /// The values of the first node as a control of a form: `None` if it has none, several of a list with `multiple`.
    pub(crate) fn val(&self) -> Option<Value> {
        control_value(self.first_element()?)
    }

    /// Names and values that the forms and controls would submit, in order.
    pub(crate) fn fields(&self) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        for element in self.nodes().filter_map(ElementRef::wrap) {
            if element.value().name() == "form" {
                for inner in element.descendants().filter_map(ElementRef::wrap) {
                    submitted(inner, &mut fields);
                }
            } else {
                submitted(element, &mut fields);
            }
        }
        fields
    }
}

/// The end of a walk.
pub(crate) enum Until<'q> {
    Never,
    Query(&'q Query),
    Nodes(&'q Nodes),
}

impl Until<'_> {
    fn reached(&self, page: &Rc<Page>, node: NodeRef<'_, Node>) -> bool {
        match self {
            Until::Never => false,
            Until::Query(query) => {
                ElementRef::wrap(node).is_some_and(|element| query.matches(element))
            }
            Until::Nodes(nodes) => Rc::ptr_eq(page, &nodes.page) && nodes.list.contains(&node.id()),
        }
    }
}

impl Way {
    /// The way of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "children" => Self::Children,
            "contents" => Self::Contents,
            "parent" => Self::Parent,
            "parents" => Self::Parents,
            "next" => Self::Next,
            "nextAll" => Self::NextAll,
            "prev" => Self::Prev,
            "prevAll" => Self::PrevAll,
            "nextNode" => Self::NextNode,
            "prevNode" => Self::PrevNode,
            _ => return None,
        })
    }

    fn single(self) -> bool {
        matches!(
            self,
            Self::Parent | Self::Next | Self::Prev | Self::NextNode | Self::PrevNode
        )
    }

    fn any_node(self) -> bool {
        matches!(self, Self::Contents | Self::NextNode | Self::PrevNode)
    }

    fn from<'p>(self, node: NodeRef<'p, Node>) -> Box<dyn Iterator<Item = NodeRef<'p, Node>> + 'p> {
        match self {
            Self::Children | Self::Contents => Box::new(node.children()),
            Self::Parent | Self::Parents => Box::new(node.ancestors()),
            Self::Next | Self::NextAll | Self::NextNode => Box::new(node.next_siblings()),
            Self::Prev | Self::PrevAll | Self::PrevNode => Box::new(node.prev_siblings()),
        }
    }
}

/// The value of a control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    One(String),
    Several(Vec<String>),
}

fn control_value(element: ElementRef<'_>) -> Option<Value> {
    let text = || element.text().collect::<String>();
    match element.value().name() {
        "textarea" => Some(Value::One(text())),
        "option" => Some(Value::One(
            element.attr("value").map_or_else(text, str::to_owned),
        )),
        "select" => {
            let options: Vec<_> = element
                .descendants()
                .filter_map(ElementRef::wrap)
                .filter(|inner| inner.value().name() == "option")
                .collect();
            let value = |option: &ElementRef<'_>| match control_value(*option) {
                Some(Value::One(value)) => value,
                _ => String::new(),
            };
            let mut chosen = options
                .iter()
                .filter(|option| option.attr("selected").is_some());
            if element.attr("multiple").is_some() {
                return Some(Value::Several(chosen.map(value).collect()));
            }
            chosen
                .next_back()
                .or(options.first())
                .map(|option| Value::One(value(option)))
        }
        "input" => {
            let choice = matches!(element.attr("type"), Some("checkbox" | "radio"));
            let missing = if choice { "on" } else { "" };
            Some(Value::One(
                element.attr("value").unwrap_or(missing).to_owned(),
            ))
        }
        _ => element
            .attr("value")
            .map(|value| Value::One(value.to_owned())),
    }
}

fn submitted(element: ElementRef<'_>, fields: &mut Vec<(String, String)>) {
    let name = element.attr("name").unwrap_or_default();
    if name.is_empty() || element.attr("disabled").is_some() {
        return;
    }
    let kind = element
        .attr("type")
        .unwrap_or_default()
        .to_ascii_lowercase();
    let sent = match element.value().name() {
        "input" => match kind.as_str() {
            "submit" | "button" | "image" | "reset" | "file" => false,
            "checkbox" | "radio" => element.attr("checked").is_some(),
            _ => true,
        },
        "select" | "textarea" => true,
        _ => false,
    };
    if !sent {
        return;
    }
    match control_value(element) {
        Some(Value::One(value)) => fields.push((name.to_owned(), value)),
        Some(Value::Several(values)) => {
            fields.extend(values.into_iter().map(|value| (name.to_owned(), value)));
        }
        None => {}
    }
}

fn html_text(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

thread_local! {
    static QUERIES: RefCell<Vec<(String, Rc<Query>)>> = const { RefCell::new(Vec::new()) };
}

/// Returns a compiled selector; the last ones are kept, since scripts use the same few in each iteration.
pub(crate) fn query(text: &str) -> Result<Rc<Query>, String> {
    const KEPT: usize = 64;
    QUERIES.with_borrow_mut(|kept| {
        if let Some((_, query)) = kept.iter().find(|(known, _)| known == text) {
            return Ok(Rc::clone(query));
        }
        let query = Rc::new(Query::parse(text)?);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((text.to_owned(), Rc::clone(&query)));
        Ok(query)
    })
}
