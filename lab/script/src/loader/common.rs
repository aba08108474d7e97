//! CommonJS files as modules: `require` becomes `import`, and assignments to `exports` become exports. Lines stay.

use std::collections::BTreeMap;

use oxc_allocator::Allocator;
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_span::{GetSpan as _, SourceType};

use super::edit::{Edit, applied};
use super::values;

/// The module that a CommonJS file is; `None` if it isn't one.
///
/// # Errors
///
/// The offset of what has no counterpart in a module.
pub(super) fn module(text: &str) -> Option<Result<String, (u32, String)>> {
    if !["require(", "module.exports", "exports."]
        .iter()
        .any(|part| text.contains(part))
    {
        return None;
    }
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::mjs()).parse();
    if parsed.panicked
        || parsed
            .program
            .body
            .iter()
            .any(Statement::is_module_declaration)
    {
        return None;
    }
    let mut common = Common::default();
    for statement in &parsed.program.body {
        common.top(statement);
    }
    if !common.is_common {
        return None;
    }
    if let Some(problem) = common.problem.take() {
        return Some(Err(problem));
    }
    let (head, tail) = (common.head(), common.tail());
    common.edits.push(Edit::close(0, u32::MAX, head));
    common.edits.push(Edit::close(text.len() as u32, 0, tail));
    Some(Ok(applied(text, common.edits)))
}

#[derive(Default)]
struct Common {
    edits: Vec<Edit>,
    /// Imports by specifier, for `require` within expressions.
    imports: BTreeMap<String, usize>,
    /// Import declarations of whole names.
    declared: Vec<String>,
    /// The names that are exported, and what holds their values.
    exports: BTreeMap<String, String>,
    /// `module.exports = …` was seen.
    whole: bool,
    is_common: bool,
    problem: Option<(u32, String)>,
}

impl Common {
    fn head(&self) -> String {
        let mut out = self.declared.concat();
        for (specifier, number) in &self.imports {
            out.push_str(&format!(
                "import {}$r{number} from {specifier:?};",
                star(specifier)
            ));
        }
        out
    }

    fn tail(&self) -> String {
        let mut out = String::from("\n");
        for (name, holder) in &self.exports {
            if self.whole {
                out.push_str(&format!("const {holder}=$exports[{name:?}];"));
            }
            out.push_str(&format!("export{{{holder} as {name:?}}};"));
        }
        if !self.exports.contains_key("default") {
            if self.whole {
                out.push_str("export default $exports;");
            } else {
                let members = self
                    .exports
                    .iter()
                    .map(|(name, holder)| format!("{name:?}:{holder},"));
                let members: String = members.collect();
                out.push_str(&format!("export default {{{members}}};"));
            }
        }
        out
    }

    fn top(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::VariableDeclaration(it) if it.declarations.len() == 1 => {
                if let Some(import) = import(&it.declarations[0]) {
                    self.is_common = true;
                    self.declared.push(import);
                    self.edits
                        .push(Edit::replace(it.span.start, it.span.end, ""));
                    return;
                }
            }
            Statement::ExpressionStatement(it) if self.assignment(it) => return,
            _ => {}
        }
        self.visit_statement(statement);
    }

    /// `module.exports = …`, `exports.name = …`.
    fn assignment(&mut self, it: &ExpressionStatement<'_>) -> bool {
        if let Expression::CallExpression(call) = &it.expression
            && let Some(Some(Expression::Identifier(first))) =
                call.arguments.first().map(Argument::as_expression)
            && first.name == "exports"
        {
            // `Object.defineProperty(exports, '__esModule', …)`
            self.is_common = true;
            self.edits
                .push(Edit::replace(it.span.start, it.span.end, ""));
            return true;
        }
        let Expression::AssignmentExpression(assigned) = &it.expression else {
            return false;
        };
        let AssignmentTarget::StaticMemberExpression(target) = &assigned.left else {
            return false;
        };
        let right = assigned.right.span().start;
        if is_exports(target) {
            self.is_common = true;
            self.whole = true;
            self.edits
                .push(Edit::replace(it.span.start, right, "const $exports="));
            if let Expression::ObjectExpression(object) = &assigned.right {
                for property in &object.properties {
                    if let ObjectPropertyKind::ObjectProperty(property) = property
                        && let Some(name) = values::key(&property.key)
                    {
                        let number = self.exports.len();
                        self.exports.insert(name, format!("$e{number}"));
                    }
                }
            }
        } else if let Some(name) = exported(target) {
            self.is_common = true;
            if matches!(
                &assigned.right,
                Expression::UnaryExpression(_) | Expression::AssignmentExpression(_)
            ) {
                // Compilers announce names by `exports.a = exports.b = void 0`.
                self.edits
                    .push(Edit::replace(it.span.start, it.span.end, ""));
                return true;
            }
            let number = self.exports.len();
            let holder = format!("$e{number}");
            if self.exports.insert(name, holder.clone()).is_some() {
                self.problem
                    .get_or_insert((it.span.start, "a name is exported twice".to_owned()));
            }
            self.edits.push(Edit::replace(
                it.span.start,
                right,
                format!("const {holder}="),
            ));
        } else {
            return false;
        }
        self.visit_expression(&assigned.right);
        true
    }
}

/// Files export one value, modules of the API export names.
fn star(specifier: &str) -> &'static str {
    if specifier.starts_with('.') || specifier.starts_with('/') {
        ""
    } else {
        "* as "
    }
}

/// The import that `const name = require('…')` and `const { a, b: c } = require('…')` are.
fn import(it: &VariableDeclarator<'_>) -> Option<String> {
    let specifier = required(it.init.as_ref()?)?;
    match &it.id {
        BindingPattern::BindingIdentifier(name) => Some(format!(
            "import {}{} from {specifier:?};",
            star(&specifier),
            name.name
        )),
        BindingPattern::ObjectPattern(object)
            if !star(&specifier).is_empty() && object.rest.is_none() =>
        {
            let names = object
                .properties
                .iter()
                .map(|property| match &property.value {
                    BindingPattern::BindingIdentifier(local) => {
                        Some(format!("{} as {}", values::key(&property.key)?, local.name))
                    }
                    _ => None,
                });
            let names: Option<Vec<String>> = names.collect();
            Some(format!(
                "import {{{}}} from {specifier:?};",
                names?.join(",")
            ))
        }
        _ => None,
    }
}

fn required(it: &Expression<'_>) -> Option<String> {
    let Expression::CallExpression(call) = it else {
        return None;
    };
    let Expression::Identifier(name) = &call.callee else {
        return None;
    };
    match call.arguments.first()?.as_expression()? {
        Expression::StringLiteral(text) if name.name == "require" => Some(text.value.to_string()),
        _ => None,
    }
}

fn is_exports(it: &StaticMemberExpression<'_>) -> bool {
    let module = matches!(&it.object, Expression::Identifier(name) if name.name == "module");
    module && it.property.name == "exports"
}

/// The name in `exports.name` and `module.exports.name`.
fn exported(it: &StaticMemberExpression<'_>) -> Option<String> {
    let of_exports = match &it.object {
        Expression::Identifier(name) => name.name == "exports",
        Expression::StaticMemberExpression(inner) => is_exports(inner),
        _ => false,
    };
    of_exports.then(|| it.property.name.to_string())
}

impl<'a> Visit<'a> for Common {
    fn visit_expression(&mut self, it: &Expression<'a>) {
        if let Some(specifier) = required(it) {
            self.is_common = true;
            let next = self.imports.len();
            let number = *self.imports.entry(specifier).or_insert(next);
            let span = it.span();
            self.edits
                .push(Edit::replace(span.start, span.end, format!("$r{number}")));
            return;
        }
        walk::walk_expression(self, it);
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        if let Some(name) = exported(it) {
            if let Some(holder) = self.exports.get(&name) {
                self.edits
                    .push(Edit::replace(it.span.start, it.span.end, holder.clone()));
            } else {
                self.problem.get_or_insert((
                    it.span.start,
                    format!("exports.{name} is read before it is set"),
                ));
            }
            return;
        }
        walk::walk_static_member_expression(self, it);
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        if matches!(it.name.as_str(), "exports" | "module") {
            self.is_common = true;
            let message = "exports that are made while the script runs can't be read".to_owned();
            self.problem.get_or_insert((it.span.start, message));
        }
    }
}
