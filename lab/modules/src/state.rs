//! Bindings at module level: which all users share, and which each user has for itself.
//!
//! A binding is shared if it is never assigned, not visibly changed, and its initialiser is pure. The values of all
//! others are in the array `$$U` of the user; the statements that make them become functions that run for each user.

use std::collections::HashSet;

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{ScopeFlags, Scoping};
use oxc_span::GetSpan as _;

use crate::edit::Edit;
use crate::facts::{Facts, Symbol};
use crate::modules::Parsed;
use crate::purity::Purity;
use crate::shares::Shares;
use crate::values;
use crate::waits::{Named, named};

/// Methods that change their object.
const MUTATORS: &[&str] = &[
    "push",
    "pop",
    "shift",
    "unshift",
    "splice",
    "sort",
    "reverse",
    "fill",
    "copyWithin",
];

impl Shares {
    /// Notes which bindings a file changes.
    pub(crate) fn note_changes(&mut self, file: usize, parsed: &Parsed<'_>, facts: &[Facts]) {
        let scoping = &parsed.scoping;
        for symbol in scoping.symbol_ids() {
            let top = scoping.symbol_scope_id(symbol) == scoping.root_scope_id();
            if top && scoping.symbol_is_mutated(symbol) {
                self.assigned.insert((file, symbol.index()));
                self.changed.insert((file, symbol.index()));
            }
        }
        let mut changes = Changes {
            file,
            scoping,
            facts,
            found: &mut self.changed,
        };
        changes.visit_program(parsed.program);
    }

    /// Decides on the bindings of a file; those that it imports are decided.
    pub(crate) fn decide(&mut self, file: usize, parsed: &Parsed<'_>, facts: &[Facts]) {
        for statement in &parsed.program.body {
            let declaration = match statement {
                Statement::ExportNamedDeclaration(it) => it.declaration.as_ref(),
                other => other.as_declaration(),
            };
            match declaration {
                Some(Declaration::VariableDeclaration(it)) => {
                    let purity = Purity {
                        file,
                        scoping: &parsed.scoping,
                        facts,
                        shares: self,
                    };
                    let shared = it.declarations.iter().all(|it| {
                        let pure = it.init.as_ref().is_none_or(|init| purity.expression(init));
                        // Rows can't be changed: a write to them throws.
                        let rows = it.init.as_ref().is_some_and(|init| purity.is_rows(init));
                        let changed = if rows { &self.assigned } else { &self.changed };
                        let symbols = symbols(&it.id);
                        pure && symbols
                            .iter()
                            .all(|symbol| !changed.contains(&(file, *symbol)))
                    });
                    if !shared {
                        for symbol in it.declarations.iter().flat_map(|it| symbols(&it.id)) {
                            self.keep(file, symbol);
                        }
                    }
                }
                Some(Declaration::ClassDeclaration(it)) => {
                    let purity = Purity {
                        file,
                        scoping: &parsed.scoping,
                        facts,
                        shares: self,
                    };
                    let shared = purity.class(it);
                    let symbol = it.id.as_ref().and_then(|id| id.symbol_id.get());
                    if let Some(symbol) = symbol.map(|symbol| symbol.index())
                        && (!shared || self.changed.contains(&(file, symbol)))
                    {
                        self.keep(file, symbol);
                    }
                }
                Some(_) => {}
                None => self.nested(file, statement, &parsed.scoping),
            }
        }
    }

    /// `var` in a statement at module level is a binding of the module.
    fn nested(&mut self, file: usize, statement: &Statement<'_>, scoping: &Scoping) {
        let mut found = Vars {
            scoping,
            found: Vec::new(),
        };
        found.visit_statement(statement);
        for symbol in found.found {
            self.keep(file, symbol);
        }
    }
}

fn symbols(pattern: &BindingPattern<'_>) -> Vec<Symbol> {
    let all = pattern.get_binding_identifiers().into_iter();
    all.filter_map(|name| name.symbol_id.get())
        .map(|symbol| symbol.index())
        .collect()
}

struct Vars<'s> {
    scoping: &'s Scoping,
    found: Vec<Symbol>,
}

impl<'a> Visit<'a> for Vars<'_> {
    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        for name in it
            .declarations
            .iter()
            .flat_map(|it| it.id.get_binding_identifiers())
        {
            let Some(symbol) = name.symbol_id.get() else {
                continue;
            };
            if self.scoping.symbol_scope_id(symbol) == self.scoping.root_scope_id() {
                self.found.push(symbol.index());
            }
        }
    }

    fn visit_function(&mut self, _it: &Function<'a>, _flags: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _it: &ArrowFunctionExpression<'a>) {}
}

struct Changes<'c> {
    file: usize,
    scoping: &'c Scoping,
    facts: &'c [Facts],
    found: &'c mut HashSet<(usize, Symbol)>,
}

impl Changes<'_> {
    /// The object at the root of `object.a.b[c]` is changed.
    fn change(&mut self, expression: &Expression<'_>) {
        match expression {
            Expression::Identifier(name) => {
                if let Some(symbol) = values::symbol(self.scoping, name)
                    && let Named::Local(file, symbol) = named(self.facts, self.file, symbol)
                {
                    self.found.insert((file, symbol));
                }
            }
            Expression::StaticMemberExpression(it) => self.change(&it.object),
            Expression::ComputedMemberExpression(it) => self.change(&it.object),
            Expression::ParenthesizedExpression(it) => self.change(&it.expression),
            _ => {}
        }
    }

    fn change_target(&mut self, target: &SimpleAssignmentTarget<'_>) {
        match target {
            SimpleAssignmentTarget::StaticMemberExpression(it) => self.change(&it.object),
            SimpleAssignmentTarget::ComputedMemberExpression(it) => self.change(&it.object),
            _ => {}
        }
    }
}

impl<'a> Visit<'a> for Changes<'_> {
    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        if let Some(target) = it.left.as_simple_assignment_target() {
            self.change_target(target);
        }
        walk::walk_assignment_expression(self, it);
    }

    fn visit_update_expression(&mut self, it: &UpdateExpression<'a>) {
        self.change_target(&it.argument);
        walk::walk_update_expression(self, it);
    }

    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        if it.operator == UnaryOperator::Delete {
            self.change(&it.argument);
        }
        walk::walk_unary_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if let Expression::StaticMemberExpression(member) = &it.callee {
            let name = member.property.name.as_str();
            if MUTATORS.contains(&name) {
                self.change(&member.object);
            }
            let of_object =
                matches!(&member.object, Expression::Identifier(name) if name.name == "Object");
            if of_object
                && matches!(
                    name,
                    "assign" | "defineProperty" | "defineProperties" | "setPrototypeOf"
                )
                && let Some(Some(first)) = it.arguments.first().map(Argument::as_expression)
            {
                self.change(first);
            }
        }
        walk::walk_call_expression(self, it);
    }
}

/// Writes what bindings of users become in a file.
pub(crate) struct Writer<'w> {
    pub(crate) file: usize,
    pub(crate) scoping: &'w Scoping,
    pub(crate) facts: &'w [Facts],
    pub(crate) shares: &'w Shares,
    pub(crate) edits: Vec<Edit>,
    /// The number of functions that initialise a user.
    pub(crate) initialisers: usize,
}

impl Writer<'_> {
    fn place(&self, symbol: Symbol) -> Option<usize> {
        match named(self.facts, self.file, symbol) {
            Named::Local(file, symbol) => self.shares.place(file, symbol),
            _ => None,
        }
    }

    fn bound(&self, name: &BindingIdentifier<'_>) -> Option<usize> {
        self.place(name.symbol_id.get()?.index())
    }

    fn referred(&self, name: &IdentifierReference<'_>) -> Option<usize> {
        self.place(values::symbol(self.scoping, name)?)
    }

    /// Writes the whole file.
    pub(crate) fn write(&mut self, program: &Program<'_>) {
        for statement in &program.body {
            self.top(statement);
        }
    }

    fn top(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::ImportDeclaration(it) => return self.import(it),
            Statement::ExportNamedDeclaration(it) => match &it.declaration {
                Some(declaration) => self.declaration(declaration, it.span.start, it.span.end),
                None => return self.export(it),
            },
            Statement::ExportDefaultDeclaration(_) | Statement::ExportAllDeclaration(_) => {}
            other => match other.as_declaration() {
                Some(declaration) => {
                    let span = other.span();
                    self.declaration(declaration, span.start, span.end);
                }
                None => {
                    let purity = Purity {
                        file: self.file,
                        scoping: self.scoping,
                        facts: self.facts,
                        shares: self.shares,
                    };
                    if !purity.statement(other) {
                        let span = other.span();
                        self.initialise(span.start, span.end);
                    }
                }
            },
        }
        self.visit_statement(statement);
    }

    /// Makes a function of a statement, which runs for each user.
    fn initialise(&mut self, start: u32, end: u32) {
        let open = format!("export function $$i{}(){{", self.initialisers);
        self.initialisers += 1;
        self.edits.push(Edit::open(start, u32::MAX, open));
        self.edits.push(Edit::close(end, 0, "}"));
    }

    fn declaration(&mut self, it: &Declaration<'_>, start: u32, end: u32) {
        let span = it.span();
        match it {
            Declaration::VariableDeclaration(it) => {
                let own = it.declarations.iter().any(|it| {
                    it.id
                        .get_binding_identifiers()
                        .iter()
                        .any(|name| self.bound(name).is_some())
                });
                if own {
                    self.initialise(start, end);
                    // Without `export`.
                    self.edits.push(Edit::replace(start, span.start, ""));
                    return;
                }
                for init in it.declarations.iter().filter_map(|it| it.init.as_ref()) {
                    if !is_primitive(init) {
                        let span = init.span();
                        self.edits
                            .push(Edit::open(span.start, span.end + 1, "$$z("));
                        self.edits
                            .push(Edit::close(span.end, span.start.saturating_sub(1), ")"));
                    }
                }
            }
            Declaration::ClassDeclaration(class) => {
                let Some(name) = &class.id else {
                    return;
                };
                match self.bound(name) {
                    Some(place) => {
                        self.initialise(start, end);
                        let text = format!("$$U[{place}]=");
                        self.edits.push(Edit::replace(start, span.start, text));
                    }
                    None => self
                        .edits
                        .push(Edit::close(end, 0, format!(";$$z({});", name.name))),
                }
            }
            _ => {}
        }
    }

    /// Imports without those of users' own bindings.
    fn import(&mut self, it: &ImportDeclaration<'_>) {
        let specifiers = it.specifiers.iter().flatten();
        for specifier in specifiers {
            let local = specifier.local();
            if self.bound(local).is_none() {
                continue;
            }
            let span = specifier.span();
            // A name in its place that imports nothing: the module's mark.
            let text = match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(_) => {
                    format!("$$m as $$m{}", span.start)
                }
                _ => format!("{{$$m as $$m{}}}", span.start),
            };
            self.edits.push(Edit::replace(span.start, span.end, text));
        }
    }

    /// Exports without those of users' own bindings.
    fn export(&mut self, it: &ExportNamedDeclaration<'_>) {
        for specifier in &it.specifiers {
            let own = match (&specifier.local, &it.source) {
                (ModuleExportName::IdentifierReference(name), None) => {
                    self.referred(name).is_some()
                }
                _ => {
                    let name = specifier.exported.name();
                    let found = super::waits::exported(self.facts, self.file, &name, 32);
                    matches!(found, Named::Local(file, symbol) if self.shares.place(file, symbol).is_some())
                }
            };
            if own {
                let span = specifier.span;
                self.edits.push(Edit::replace(
                    span.start,
                    span.end,
                    format!("$$m as $$m{}", span.start),
                ));
            }
        }
    }

    /// A declaration of users' own bindings becomes an assignment.
    fn assignment(&mut self, it: &VariableDeclaration<'_>, in_loop: bool) {
        let keyword = it.kind.as_str().len() as u32;
        self.edits
            .push(Edit::replace(it.span.start, it.span.start + keyword, ""));
        for declarator in &it.declarations {
            let span = declarator.span;
            let pattern = !matches!(declarator.id, BindingPattern::BindingIdentifier(_));
            if pattern && !in_loop {
                self.edits.push(Edit::open(span.start, span.end, "("));
                self.edits.push(Edit::close(span.end, span.start, ")"));
            }
            self.visit_binding_pattern(&declarator.id);
            match &declarator.init {
                Some(init) => self.visit_expression(init),
                None if in_loop => {}
                None => self
                    .edits
                    .push(Edit::close(span.end, span.start, "=void 0")),
            }
        }
    }

    fn is_own(&self, it: &VariableDeclaration<'_>) -> bool {
        let mut names = it
            .declarations
            .iter()
            .flat_map(|it| it.id.get_binding_identifiers());
        names.any(|name| self.bound(name).is_some())
    }

    fn loop_target(&mut self, left: &ForStatementLeft<'_>) -> bool {
        match left {
            ForStatementLeft::VariableDeclaration(it) if self.is_own(it) => {
                self.assignment(it, true);
                true
            }
            _ => false,
        }
    }
}

/// Whether an expression is a value that can't be changed.
fn is_primitive(it: &Expression<'_>) -> bool {
    matches!(
        it,
        Expression::BooleanLiteral(_)
            | Expression::NullLiteral(_)
            | Expression::NumericLiteral(_)
            | Expression::BigIntLiteral(_)
            | Expression::StringLiteral(_)
            | Expression::TemplateLiteral(_)
    )
}

impl<'a> Visit<'a> for Writer<'_> {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        if let Some(place) = self.referred(it) {
            self.edits.push(Edit::replace(
                it.span.start,
                it.span.end,
                format!("$$U[{place}]"),
            ));
        }
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        if let Some(place) = self.bound(it) {
            self.edits.push(Edit::replace(
                it.span.start,
                it.span.end,
                format!("$$U[{place}]"),
            ));
        }
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        if it.shorthand
            && let Expression::Identifier(name) = &it.value
        {
            if let Some(place) = self.referred(name) {
                let text = format!("{}:$$U[{place}]", name.name);
                self.edits
                    .push(Edit::replace(it.span.start, it.span.end, text));
            }
            return;
        }
        walk::walk_object_property(self, it);
    }

    fn visit_binding_property(&mut self, it: &BindingProperty<'a>) {
        if it.shorthand {
            let name = match &it.value {
                BindingPattern::BindingIdentifier(name) => Some(name),
                BindingPattern::AssignmentPattern(it) => match &it.left {
                    BindingPattern::BindingIdentifier(name) => Some(name),
                    _ => None,
                },
                _ => None,
            };
            if let Some(name) = name
                && let Some(place) = self.bound(name)
            {
                let text = format!("{}:$$U[{place}]", name.name);
                self.edits
                    .push(Edit::replace(name.span.start, name.span.end, text));
                if let BindingPattern::AssignmentPattern(it) = &it.value {
                    self.visit_expression(&it.right);
                }
                return;
            }
            self.visit_binding_pattern(&it.value);
            return;
        }
        walk::walk_binding_property(self, it);
    }

    fn visit_assignment_target_property_identifier(
        &mut self,
        it: &AssignmentTargetPropertyIdentifier<'a>,
    ) {
        if let Some(place) = self.referred(&it.binding) {
            let span = it.binding.span;
            let text = format!("{}:$$U[{place}]", it.binding.name);
            self.edits.push(Edit::replace(span.start, span.end, text));
        }
        if let Some(init) = &it.init {
            self.visit_expression(init);
        }
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        if let Expression::Identifier(object) = &it.object
            && let Some(symbol) = values::symbol(self.scoping, object)
            && let Named::Namespace(file) = named(self.facts, self.file, symbol)
            && let Named::Local(file, symbol) =
                super::waits::exported(self.facts, file, &it.property.name, 32)
            && let Some(place) = self.shares.place(file, symbol)
        {
            self.edits.push(Edit::replace(
                it.span.start,
                it.span.end,
                format!("$$U[{place}]"),
            ));
            return;
        }
        walk::walk_static_member_expression(self, it);
    }

    /// The name of a class stays.
    fn visit_class(&mut self, it: &Class<'a>) {
        if let Some(parent) = &it.super_class {
            self.visit_expression(parent);
        }
        self.visit_class_body(&it.body);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        if self.is_own(it) {
            self.assignment(it, false);
        } else {
            walk::walk_variable_declaration(self, it);
        }
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        if self.loop_target(&it.left) {
            self.visit_expression(&it.right);
            self.visit_statement(&it.body);
        } else {
            walk::walk_for_of_statement(self, it);
        }
    }

    fn visit_for_in_statement(&mut self, it: &ForInStatement<'a>) {
        if self.loop_target(&it.left) {
            self.visit_expression(&it.right);
            self.visit_statement(&it.body);
        } else {
            walk::walk_for_in_statement(self, it);
        }
    }
}
