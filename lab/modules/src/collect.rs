//! Reads the facts of one file from its syntax tree.

use std::collections::HashMap;

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{ScopeFlags, Scoping};
use oxc_span::GetSpan as _;

use crate::edit::Edit;
use crate::facts::{
    Arg, Call, Facts, Function as Fact, Kind, MODULE, Start, Symbol, Target, Value,
};
use crate::modules::{DEFAULT, Imports};
use crate::paths::joined;
use crate::values;

pub(crate) struct Collector<'s> {
    pub(crate) text: &'s str,
    pub(crate) scoping: &'s Scoping,
    pub(crate) imports: &'s Imports,
    pub(crate) name: &'s str,
    pub(crate) facts: Facts,
    /// The functions around.
    pub(crate) stack: Vec<Start>,
    /// At a place where the function around can't wait.
    pub(crate) fixed: bool,
    /// What the next function literal is: its kind and where its head goes.
    method: Option<(Kind, u32)>,
    /// Callbacks of functions that can't wait.
    pub(crate) callbacks: HashMap<Start, (String, bool)>,
    /// The groups around.
    groups: Vec<String>,
    /// Texts of bindings, for the names of requests.
    texts: HashMap<String, String>,
    /// Places of the name `request` where it is a function that is called.
    calls_of_request: Vec<u32>,
}

impl<'s> Collector<'s> {
    pub(crate) fn new(
        text: &'s str,
        scoping: &'s Scoping,
        imports: &'s Imports,
        name: &'s str,
    ) -> Self {
        let mut facts = Facts::default();
        let module = Fact::new(Kind::Module, text.len() as u32);
        facts.functions.insert(MODULE, module);
        Collector {
            text,
            scoping,
            imports,
            name,
            facts,
            stack: vec![MODULE],
            fixed: false,
            method: None,
            callbacks: HashMap::new(),
            groups: Vec::new(),
            texts: HashMap::new(),
            calls_of_request: Vec::new(),
        }
    }

    /// Notes a name that reads or sets a member, or that an import or a text has.
    fn mention(&mut self, name: &str) {
        let mentions = &mut self.facts.mentions;
        match name {
            "cookieJar" | "CookieJar" => mentions.cookie_jars = true,
            "request" => mentions.sent_requests = true,
            "responseType" => mentions.response_types = true,
            _ => {}
        }
    }

    pub(crate) fn value(&self, expression: &Expression<'_>) -> Value {
        values::value(self.scoping, expression)
    }

    pub(crate) fn current(&self) -> Start {
        self.stack.last().copied().unwrap_or(MODULE)
    }

    pub(crate) fn problem(&mut self, at: u32, message: &str, help: &str) {
        self.facts
            .problems
            .push((at, message.to_owned(), help.to_owned()));
    }

    fn flow(&mut self, target: Target, value: Value) {
        if value != Value::Plain {
            self.facts.flows.push((target, value));
        }
    }

    /// A value flows into a pattern.
    fn bind(&mut self, pattern: &BindingPattern<'_>, value: Option<Value>) {
        let mut found = Vec::new();
        values::bindings(pattern, &mut Vec::new(), &mut found);
        for (symbol, path) in found {
            match &value {
                Some(value) if path.iter().all(|name| !name.is_empty()) => {
                    let part = path.iter().fold(value.clone(), |value, name| {
                        Value::Member(Box::new(value), name.clone())
                    });
                    self.flow(Target::Symbol(symbol), part);
                }
                _ => {
                    self.facts.opaque.insert(symbol);
                }
            }
        }
    }

    /// The parameters of a function: what they hold isn't known.
    fn parameters(&mut self, params: &FormalParameters<'_>) -> Vec<Option<Symbol>> {
        let mut all = Vec::new();
        for param in &params.items {
            self.bind(&param.pattern, None);
            let own = match &param.pattern {
                BindingPattern::BindingIdentifier(name) => name.symbol_id.get(),
                BindingPattern::AssignmentPattern(pattern) => match &pattern.left {
                    BindingPattern::BindingIdentifier(name) => name.symbol_id.get(),
                    _ => None,
                },
                _ => None,
            };
            all.push(own.map(|symbol| symbol.index()));
        }
        if let Some(rest) = &params.rest {
            self.bind(&rest.rest.argument, None);
        }
        all
    }

    fn enter(&mut self, start: Start, fact: Fact) {
        self.facts.functions.insert(start, fact);
        self.stack.push(start);
    }

    /// Runs a visit at a place where the function around can't wait.
    fn at_fixed_place(&mut self, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.fixed, true);
        visit(self);
        self.fixed = before;
    }

    fn visit_inside(&mut self, params: &FormalParameters<'_>, visit: impl FnOnce(&mut Self)) {
        let groups = std::mem::take(&mut self.groups);
        self.at_fixed_place(|own| own.visit_formal_parameters(params));
        let before = std::mem::replace(&mut self.fixed, false);
        visit(self);
        self.fixed = before;
        self.groups = groups;
        self.stack.pop();
    }

    /// `this` belongs to the arrows around, up to the next function of another kind.
    fn mark_this(&mut self) {
        for start in self.stack.iter().rev() {
            match self.facts.functions.get_mut(start) {
                Some(function) if function.kind == Kind::Arrow => function.uses_this = true,
                _ => break,
            }
        }
    }

    fn callback(&mut self, start: Start) -> (Option<String>, bool) {
        match self.callbacks.remove(&start) {
            Some((name, later)) => (Some(name), later),
            None => (None, false),
        }
    }

    fn args(&self, arguments: &[Argument<'_>]) -> Vec<Arg> {
        let args = arguments.iter().map(|argument| {
            let span = argument.span();
            let inner = match argument {
                Argument::SpreadElement(spread) => spread.argument.span(),
                _ => span,
            };
            Arg {
                span: (inner.start, inner.end),
                value: values::argument(self.scoping, argument),
                members: argument
                    .as_expression()
                    .and_then(|expression| values::members(self.scoping, expression)),
            }
        });
        args.collect()
    }

    /// The name that a call has in reports: of its first or second argument.
    fn label(&self, callee: &Value, arguments: &[Argument<'_>]) -> Option<String> {
        let name = match callee {
            Value::Member(_, name) => name.as_str(),
            _ => "",
        };
        let place = usize::from(matches!(name, "request" | "asyncRequest"));
        let known = |name: &str| self.texts.get(name).cloned();
        let text = values::text(arguments.get(place)?.as_expression()?, &known);
        let method = if place == 1 {
            values::text(arguments.first()?.as_expression()?, &known)
        } else {
            None
        };
        match method {
            Some(method) => Some(format!("{method} {}", text?)),
            None => text,
        }
    }

    /// The name that a call's parameters give its request.
    fn tag_name(&self, arguments: &[Argument<'_>]) -> Option<String> {
        let mut objects = arguments.iter().filter_map(Argument::as_expression);
        objects.find_map(|object| self.name_in(values::member(object, "tags")?))
    }

    fn name_in(&self, tags: &Expression<'_>) -> Option<String> {
        let known = |name: &str| self.texts.get(name).cloned();
        values::text(values::member(tags, "name")?, &known)
    }

    fn open_call(&mut self, it: &CallExpression<'_>) {
        let Expression::Identifier(name) = &it.callee else {
            return;
        };
        if values::symbol(self.scoping, name).is_some() {
            return;
        }
        match name.name.as_str() {
            "open" => {
                let span = name.span;
                let paren = self.text[span.end as usize..it.span.end as usize].find('(');
                let at = span.end + paren.unwrap_or(0) as u32 + 1;
                self.facts
                    .fixed
                    .push(Edit::replace(span.start, span.end, "$$open"));
                let base = format!("{:?},", self.name);
                self.facts.fixed.push(Edit::open(at, it.span.end, base));
                if let Some(Argument::StringLiteral(path)) = it.arguments.first() {
                    self.facts.opened.push(joined(self.name, &path.value));
                }
            }
            "eval" => self.problem(
                name.span.start,
                "eval isn't possible: text that is made while the script runs can't wait",
                "write the code in the file",
            ),
            "Function" => self.no_function_constructor(name.span.start),
            _ => {}
        }
    }

    fn no_function_constructor(&mut self, at: u32) {
        self.problem(
            at,
            "new Function isn't possible: text that is made while the script runs can't wait",
            "write the code in the file",
        );
    }
}

impl<'a> Visit<'a> for Collector<'_> {
    fn visit_function(&mut self, it: &Function<'a>, _flags: ScopeFlags) {
        let start = it.span.start;
        let (kind, head) = self.method.take().unwrap_or((Kind::Function, start + 8));
        let (callback_of, becomes_async) = self.callback(start);
        if let Some(name) = it.id.as_ref().and_then(|id| id.symbol_id.get()) {
            self.flow(Target::Symbol(name.index()), Value::Function(start));
        }
        if it.generator && kind == Kind::Function {
            self.brand(it);
        }
        let parameters = self.parameters(&it.params);
        let fact = Fact {
            is_async: it.r#async,
            is_generator: it.generator,
            callback_of,
            becomes_async,
            head,
            params: (it.params.span.start, it.params.span.end),
            parameters,
            ..Fact::new(kind, it.span.end)
        };
        self.enter(start, fact);
        self.visit_inside(&it.params, |own| {
            if let Some(body) = &it.body {
                own.visit_function_body(body);
            }
        });
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        let start = it.span.start;
        let (callback_of, becomes_async) = self.callback(start);
        let parameters = self.parameters(&it.params);
        let params = (it.params.span.start, it.params.span.end);
        let bare_param = self.text.as_bytes().get(params.0 as usize) != Some(&b'(');
        let fact = Fact {
            is_async: it.r#async,
            callback_of,
            becomes_async,
            head: start,
            params,
            bare_param,
            arrow: arrow_place(self.text, params.1, it.body.span.start),
            expression: it.expression,
            parameters,
            ..Fact::new(Kind::Arrow, it.span.end)
        };
        self.enter(start, fact);
        if it.expression
            && let Some(Statement::ExpressionStatement(body)) = it.body.statements.first()
        {
            let value = self.value(&body.expression);
            self.flow(Target::Return(start), value);
            self.visit_inside(&it.params, |own| own.visit_expression(&body.expression));
        } else {
            self.visit_inside(&it.params, |own| own.visit_function_body(&it.body));
        }
    }

    fn visit_return_statement(&mut self, it: &ReturnStatement<'a>) {
        if let Some(argument) = &it.argument {
            let value = self.value(argument);
            self.flow(Target::Return(self.current()), value);
        }
        walk::walk_return_statement(self, it);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        let kind = match it.kind {
            MethodDefinitionKind::Constructor => Kind::Constructor,
            MethodDefinitionKind::Get => Kind::Getter,
            MethodDefinitionKind::Set => Kind::Setter,
            MethodDefinitionKind::Method => Kind::Method,
        };
        if it.computed {
            self.at_fixed_place(|own| own.visit_property_key(&it.key));
        }
        if let (Kind::Method, Some(name)) = (kind, values::key(&it.key)) {
            self.flow(Target::Property(name), Value::Function(it.value.span.start));
        }
        let key = it.key.span().start;
        self.method = Some((
            kind,
            if it.computed {
                key.saturating_sub(1)
            } else {
                key
            },
        ));
        self.visit_function(&it.value, ScopeFlags::Function);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if let (Some(value), Some(name)) = (&it.value, values::key(&it.key)) {
            let value = self.value(value);
            self.flow(Target::Property(name), value);
        }
        self.at_fixed_place(|own| walk::walk_property_definition(own, it));
    }

    fn visit_function_body(&mut self, it: &FunctionBody<'a>) {
        self.block(&it.statements);
        walk::walk_function_body(self, it);
    }

    fn visit_block_statement(&mut self, it: &BlockStatement<'a>) {
        self.block(&it.body);
        walk::walk_block_statement(self, it);
    }

    fn visit_static_block(&mut self, it: &StaticBlock<'a>) {
        self.at_fixed_place(|own| walk::walk_static_block(own, it));
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        if let Some(name) = values::key(&it.key) {
            if name == "tags" {
                self.facts.tag_names.extend(self.name_in(&it.value));
            }
            let value = self.value(&it.value);
            if it.kind == PropertyKind::Init {
                self.flow(Target::Property(name), value);
            }
        }
        let method = it.method || it.kind != PropertyKind::Init;
        if method && let Expression::FunctionExpression(function) = &it.value {
            let key = it.key.span().start;
            let head = if it.computed {
                key.saturating_sub(1)
            } else {
                key
            };
            let kind = match it.kind {
                PropertyKind::Init => Kind::Method,
                PropertyKind::Get => Kind::Getter,
                PropertyKind::Set => Kind::Setter,
            };
            if it.computed {
                self.visit_property_key(&it.key);
            }
            self.method = Some((kind, head));
            self.visit_function(function, ScopeFlags::Function);
            return;
        }
        walk::walk_object_property(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        let value = it.init.as_ref().map(|init| self.value(init));
        if let (BindingPattern::BindingIdentifier(name), Some(init)) = (&it.id, &it.init) {
            let known = |name: &str| self.texts.get(name).cloned();
            match values::text(init, &known) {
                Some(text) => self.texts.insert(name.name.to_string(), text),
                None => self.texts.remove(name.name.as_str()),
            };
        }
        // Without a value: assigned elsewhere, or by `for … of`.
        self.bind(&it.id, value);
        walk::walk_variable_declarator(self, it);
    }

    fn visit_catch_parameter(&mut self, it: &CatchParameter<'a>) {
        self.bind(&it.pattern, None);
        walk::walk_catch_parameter(self, it);
    }

    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        let value = self.value(&it.right);
        match &it.left {
            AssignmentTarget::AssignmentTargetIdentifier(name) => {
                self.texts.remove(name.name.as_str());
                if let Some(symbol) = values::symbol(self.scoping, name) {
                    self.flow(Target::Symbol(symbol), value);
                }
            }
            AssignmentTarget::StaticMemberExpression(member) => {
                let name = member.property.name.to_string();
                self.flow(Target::Property(name), value);
            }
            AssignmentTarget::PrivateFieldExpression(member) => {
                let name = format!("#{}", member.field.name);
                self.flow(Target::Property(name), value);
            }
            _ => {}
        }
        walk::walk_assignment_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.note_callbacks(&it.callee, &it.arguments, false);
        self.open_call(it);
        self.note_passing(it);
        let callee = self.value(&it.callee);
        let args = self.args(&it.arguments);
        let values = args.iter().map(|arg| arg.value.clone()).collect();
        self.facts.passed.push((callee.clone(), values));
        let label = self.label(&callee, &it.arguments);
        let method = match &it.callee {
            Expression::StaticMemberExpression(member) => {
                let (name, at) = (member.property.name.to_string(), member.property.span.start);
                if name == "request" {
                    self.calls_of_request.push(at);
                }
                Some((name, at))
            }
            _ => None,
        };
        let group = self.imports.is_group(self.scoping, &it.callee);
        self.facts.calls.push(Call {
            span: (it.span.start, it.span.end),
            function: self.current(),
            fixed: self.fixed,
            callee,
            args,
            method,
            label: label.clone(),
            tag_name: self.tag_name(&it.arguments),
            groups: self.groups.clone(),
        });
        if group && let Some(Some(body)) = it.arguments.get(1).map(Argument::as_expression) {
            self.visit_expression(&it.callee);
            self.visit_argument(&it.arguments[0]);
            let inner = self.groups.len();
            self.groups.push(label.unwrap_or_default());
            self.visit_group(body);
            self.groups.truncate(inner);
            return;
        }
        walk::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.note_callbacks(&it.callee, &it.arguments, true);
        if let Expression::Identifier(name) = &it.callee
            && name.name == "Function"
            && values::symbol(self.scoping, name).is_none()
        {
            self.no_function_constructor(it.span.start);
        }
        let callee = self.value(&it.callee);
        let values = self.args(&it.arguments).into_iter().map(|arg| arg.value);
        let values = values.collect();
        self.facts.constructed.push((callee, values));
        walk::walk_new_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        let constructor = it.body.body.iter().find_map(|element| match element {
            ClassElement::MethodDefinition(method)
                if method.kind == MethodDefinitionKind::Constructor =>
            {
                Some(method.value.span.start)
            }
            _ => None,
        });
        let name = it.id.as_ref().and_then(|id| id.symbol_id.get());
        if let (Some(constructor), Some(name)) = (constructor, name) {
            self.facts.constructors.insert(name.index(), constructor);
        }
        walk::walk_class(self, it);
    }

    fn visit_this_expression(&mut self, _it: &ThisExpression) {
        self.mark_this();
    }

    fn visit_super(&mut self, _it: &Super) {
        self.mark_this();
    }

    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        self.facts.statements.insert(it.span.start);
        walk::walk_expression_statement(self, it);
    }

    fn visit_chain_expression(&mut self, it: &ChainExpression<'a>) {
        self.facts.chains.insert(it.span.start, it.span.end);
        walk::walk_chain_expression(self, it);
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        if let Expression::Identifier(object) = &it.object
            && object.name == "__ENV"
        {
            self.facts.variables.push(it.property.name.to_string());
        }
        walk::walk_static_member_expression(self, it);
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        if it.name.starts_with("$$") && it.name != DEFAULT {
            self.problem(
                it.span.start,
                "names that begin with $$ are reserved",
                "choose another name",
            );
        }
        if let Some(symbol) = values::symbol(self.scoping, it) {
            let function = self.current();
            let uses = self.facts.uses.entry(symbol).or_default();
            if uses.functions.last() != Some(&function) {
                uses.functions.push(function);
            }
            uses.last = uses.last.max(it.span.end);
        }
    }

    fn visit_identifier_name(&mut self, it: &IdentifierName<'a>) {
        if !self.calls_of_request.contains(&it.span.start) {
            self.mention(&it.name);
        }
    }

    fn visit_assignment_target_property_identifier(
        &mut self,
        it: &AssignmentTargetPropertyIdentifier<'a>,
    ) {
        self.mention(&it.binding.name);
        walk::walk_assignment_target_property_identifier(self, it);
    }

    fn visit_string_literal(&mut self, it: &StringLiteral<'a>) {
        self.mention(&it.value);
    }

    fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
        self.problem(
            it.span.start,
            "import() isn't possible: all files are read before the script runs",
            "import the file at the top: import … from '…'",
        );
        walk::walk_import_expression(self, it);
    }
}

impl Collector<'_> {
    /// The function of a group, whose calls are counted with the group's name.
    fn visit_group<'a>(&mut self, body: &Expression<'a>) {
        let groups = self.groups.clone();
        let from = self.facts.calls.len();
        self.visit_expression(body);
        for call in &mut self.facts.calls[from..] {
            let inner = std::mem::take(&mut call.groups);
            call.groups = groups.iter().cloned().chain(inner).collect();
        }
    }
}

/// The place of `=>` between the parameters and the body of an arrow, outside of comments.
fn arrow_place(text: &str, from: u32, to: u32) -> u32 {
    let bytes = text.as_bytes();
    let (mut at, end) = (from as usize, (to as usize).min(text.len()));
    while at + 1 < end {
        match (bytes[at], bytes[at + 1]) {
            (b'=', b'>') => return at as u32,
            (b'/', b'*') => {
                let close = text.get(at + 2..end).and_then(|rest| rest.find("*/"));
                at += 4 + close.unwrap_or(end - at);
            }
            (b'/', b'/') => {
                let close = bytes[at..end].iter().position(|byte| *byte == b'\n');
                at += close.unwrap_or(end - at);
            }
            _ => at += 1,
        }
    }
    from
}
