//! HTML of scripts: lists of nodes as handles, for `k6/html`.

use rquickjs::{Array, Class, Ctx, Exception, IntoJs, JsLifetime, Result, Value, class::Trace};

use crate::shared::Shared;

use super::html::{self, Nodes, Query, Until, Way};
use super::values;

/// A list of nodes, as a script holds it.
#[derive(Trace, JsLifetime)]
#[rquickjs::class(rename = "Nodes")]
pub(super) struct NodeList {
    #[qjs(skip_trace)]
    nodes: Nodes,
}

impl NodeList {
    fn of(nodes: Nodes) -> Self {
        NodeList { nodes }
    }

    fn walked(
        &self,
        ctx: &Ctx<'_>,
        way: &str,
        until: &Until<'_>,
        filter: Option<&Query>,
    ) -> Result<NodeList> {
        let way = Way::named(way)
            .ok_or_else(|| Exception::throw_type(ctx, &format!("unknown traversal '{way}'")))?;
        Ok(Self::of(self.nodes.walk(way, until, filter)))
    }
}

/// Parses a document.
pub(super) fn parse(ctx: &Ctx<'_>, shared: &Shared, text: &str) -> Result<NodeList> {
    let expected = text.len().saturating_mul(html::BYTES_PER_BYTE);
    let expects = shared.hold(ctx, expected)?;
    let parsed = values::refused(ctx, html::parse(text, &|| shared.budget.must_end()))?;
    // Many short elements take more than that.
    drop(expects);
    let held = shared.hold(ctx, expected.max(html::bytes(&parsed)))?;
    Ok(NodeList::of(Nodes::new(parsed, held)))
}

#[rquickjs::methods]
impl NodeList {
    fn size(&self) -> usize {
        self.nodes.size()
    }

    fn at(&self, place: usize) -> NodeList {
        NodeList::of(self.nodes.pick(&[place]))
    }

    fn pick(&self, places: Vec<usize>) -> NodeList {
        NodeList::of(self.nodes.pick(&places))
    }

    fn find(&self, ctx: Ctx<'_>, selector: String, single: bool) -> Result<NodeList> {
        let query = values::refused(&ctx, html::query(&selector))?;
        Ok(NodeList::of(self.nodes.find(&query, single)))
    }

    fn filter(&self, ctx: Ctx<'_>, selector: String, wanted: bool) -> Result<NodeList> {
        let query = values::refused(&ctx, html::query(&selector))?;
        Ok(NodeList::of(self.nodes.filter(&query, wanted)))
    }

    #[qjs(rename = "filterOther")]
    fn filter_other<'js>(&self, other: Class<'js, NodeList>, wanted: bool) -> NodeList {
        NodeList::of(self.nodes.filter_other(&other.borrow().nodes, wanted))
    }

    fn has(&self, ctx: Ctx<'_>, selector: String) -> Result<NodeList> {
        let query = values::refused(&ctx, html::query(&selector))?;
        Ok(NodeList::of(self.nodes.has(&query)))
    }

    #[qjs(rename = "hasOther")]
    fn has_other<'js>(&self, other: Class<'js, NodeList>) -> NodeList {
        NodeList::of(self.nodes.has_other(&other.borrow().nodes))
    }

    fn closest(&self, ctx: Ctx<'_>, selector: String) -> Result<NodeList> {
        let query = values::refused(&ctx, html::query(&selector))?;
        Ok(NodeList::of(self.nodes.closest(&query)))
    }

    /// Walks in a direction; `until` is a selector, a list of nodes, or undefined.
    fn walk<'js>(
        &self,
        ctx: Ctx<'js>,
        way: String,
        until: Value<'js>,
        filter: Option<String>,
    ) -> Result<NodeList> {
        let filter = match &filter {
            Some(selector) => Some(values::refused(&ctx, html::query(selector))?),
            None => None,
        };
        let filter = filter.as_deref();
        if let Some(selector) = until.as_string() {
            let query = values::refused(&ctx, html::query(&selector.to_string()?))?;
            return self.walked(&ctx, &way, &Until::Query(&query), filter);
        }
        if let Ok(other) = Class::<NodeList>::from_value(&until) {
            let other = other.borrow();
            return self.walked(&ctx, &way, &Until::Nodes(&other.nodes), filter);
        }
        self.walked(&ctx, &way, &Until::Never, filter)
    }

    fn text(&self) -> String {
        self.nodes.text()
    }

    fn html(&self, outer: bool) -> Option<String> {
        self.nodes.html(outer)
    }

    fn attr(&self, name: String) -> Option<String> {
        self.nodes
            .attr(&name.to_ascii_lowercase())
            .map(str::to_owned)
    }

    fn attrs<'js>(&self, ctx: Ctx<'js>) -> Result<Array<'js>> {
        pairs(&ctx, self.nodes.attrs())
    }

    fn name(&self) -> String {
        self.nodes.name().to_owned()
    }

    fn kind(&self) -> u8 {
        self.nodes.kind()
    }

    fn value(&self) -> Option<String> {
        self.nodes.value().map(str::to_owned)
    }

    fn same<'js>(&self, other: Class<'js, NodeList>) -> bool {
        self.nodes.is_same(&other.borrow().nodes)
    }

    fn val<'js>(&self, ctx: Ctx<'js>) -> Result<Value<'js>> {
        match self.nodes.val() {
            None => Ok(Value::new_undefined(ctx)),
            Some(html::Value::One(value)) => value.into_js(&ctx),
            Some(html::Value::Several(values)) => values::list(&ctx, &values)?.into_js(&ctx),
        }
    }

    fn fields<'js>(&self, ctx: Ctx<'js>) -> Result<Array<'js>> {
        pairs(&ctx, self.nodes.fields())
    }
}

fn pairs<'js>(ctx: &Ctx<'js>, pairs: Vec<(String, String)>) -> Result<Array<'js>> {
    let all = Array::new(ctx.clone())?;
    for (place, (name, value)) in pairs.into_iter().enumerate() {
        all.set(place, values::list(ctx, &[name, value])?)?;
    }
    Ok(all)
}
