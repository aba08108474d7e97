//! Facts about function literals and local bindings: their callers, and their lifetimes.

use oxc_ast::ast::*;
use oxc_span::GetSpan as _;

use crate::collect::Collector;
use crate::edit::Edit;
use crate::facts::{Local, MODULE, Value};
use crate::values;

/// Methods of built-in objects that call a function at once and can't wait for it.
const CALLERS: &[&str] = &[
    "sort",
    "toSorted",
    "replace",
    "replaceAll",
    "reduceRight",
    "findLast",
    "findLastIndex",
];
/// Methods of promises, and functions that call back later.
const LATER: &[&str] = &[
    "then",
    "catch",
    "finally",
    "setTimeout",
    "setInterval",
    "queueMicrotask",
];
/// Methods of arrays that wait for their callback in the form of the prelude.
pub(crate) const WAITERS: &[&str] = &[
    "forEach",
    "map",
    "flatMap",
    "filter",
    "find",
    "findIndex",
    "some",
    "every",
    "reduce",
    "from",
];

impl Collector<'_> {
    /// Notes function literals that don't outlive the call that they are passed to: tests of checks, groups, callbacks
    /// of arrays.
    pub(crate) fn note_passing(&mut self, it: &CallExpression<'_>) {
        let known = match &it.callee {
            Expression::StaticMemberExpression(member) => {
                let name = member.property.name.as_str();
                WAITERS.contains(&name) || CALLERS.contains(&name)
            }
            callee => self
                .imports
                .is_named(self.scoping, callee, "k6", &["check", "group"]),
        };
        if !known {
            return;
        }
        for argument in it.arguments.iter().filter_map(Argument::as_expression) {
            let members = values::members(self.scoping, argument).unwrap_or_default();
            for value in members.into_iter().chain([self.value(argument)]) {
                if let Value::Function(start) = value {
                    self.facts.passing.insert(start, self.current());
                }
            }
        }
    }

    /// Notes which function literals are called by something that can't wait.
    pub(crate) fn note_callbacks(
        &mut self,
        callee: &Expression<'_>,
        arguments: &[Argument<'_>],
        new: bool,
    ) {
        let (name, native) = match callee {
            Expression::StaticMemberExpression(member) => {
                let name = member.property.name.to_string();
                let of_global = match &member.object {
                    Expression::Identifier(object) => {
                        values::symbol(self.scoping, object).is_none() && name != "from"
                    }
                    _ => false,
                };
                let native = CALLERS.contains(&name.as_str()) || LATER.contains(&name.as_str());
                (name, native || of_global)
            }
            Expression::Identifier(name) => {
                let global = values::symbol(self.scoping, name).is_none();
                let shared = self.imports.is_api(self.scoping, name, "k6/data");
                (name.name.to_string(), global || new && shared)
            }
            _ => return,
        };
        if !native {
            return;
        }
        for argument in arguments {
            if let Value::Function(start) = values::argument(self.scoping, argument) {
                let later = LATER.contains(&name.as_str());
                let shown = if new {
                    format!("new {name}")
                } else {
                    name.clone()
                };
                self.callbacks.insert(start, (shown, later));
            } else if CALLERS.contains(&name.as_str()) {
                let value = values::argument(self.scoping, argument);
                if !matches!(value, Value::Plain | Value::Global(_)) {
                    let span = argument.span();
                    self.facts
                        .fixed
                        .push(Edit::open(span.start, span.end, "$$f("));
                    self.facts
                        .fixed
                        .push(Edit::close(span.end, span.start, ")"));
                }
            }
        }
    }

    /// Marks a generator of the script itself, whose values aren't operations.
    pub(crate) fn brand(&mut self, it: &Function<'_>) {
        let (start, end) = (it.span.start, it.span.end);
        let edits = &mut self.facts.fixed;
        match &it.id {
            _ if it.r#type == FunctionType::FunctionExpression => {
                edits.push(Edit::open(start, end, "$$o("));
                edits.push(Edit::close(end, start, ")"));
            }
            Some(name) if self.stack.len() == 1 && !self.fixed => {
                edits.push(Edit::close(end, 0, format!(";$$o({});", name.name)));
            }
            _ => {}
        }
    }

    /// Notes the local bindings of a block.
    pub(crate) fn block(&mut self, statements: &[Statement<'_>]) {
        let function = self.current();
        if function == MODULE {
            return;
        }
        let block = self.facts.blocks.len();
        let spans = statements
            .iter()
            .map(|statement| (statement.span().start, statement.span().end));
        self.facts.blocks.push(spans.collect());
        for (place, statement) in statements.iter().enumerate() {
            let Statement::VariableDeclaration(it) = statement else {
                continue;
            };
            if it.kind != VariableDeclarationKind::Let && it.kind != VariableDeclarationKind::Const
            {
                continue;
            }
            for name in it
                .declarations
                .iter()
                .flat_map(|it| it.id.get_binding_identifiers())
            {
                let Some(symbol) = name.symbol_id.get() else {
                    continue;
                };
                self.facts.locals.push(Local {
                    function,
                    symbol: symbol.index(),
                    name: name.name.to_string(),
                    block,
                    statement: place,
                    is_const: it.kind == VariableDeclarationKind::Const,
                });
            }
        }
    }
}
