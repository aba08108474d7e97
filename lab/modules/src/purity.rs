//! Whether code at module level can run once for all users.

use oxc_ast::ast::*;
use oxc_semantic::Scoping;

use crate::facts::{Facts, Imported};
use crate::shares::Shares;
use crate::values;
use crate::waits::{Named, named};

/// Global functions and constructors without state of their own.
const GLOBALS: &[&str] = &[
    "Number",
    "String",
    "Boolean",
    "parseInt",
    "parseFloat",
    "isNaN",
    "BigInt",
    "encodeURIComponent",
    "encodeURI",
    "decodeURIComponent",
    "decodeURI",
    "open",
    "Error",
    "TypeError",
    "Symbol",
];
/// Global objects whose functions have no state of their own.
const OBJECTS: &[&str] = &["JSON", "Object", "Array", "Number", "String", "console"];
/// Methods that change their object, or read what differs between users.
const IMPURE: &[&str] = &[
    "push", "pop", "shift", "unshift", "splice", "fill", "set", "delete", "clear",
];

pub(crate) struct Purity<'p> {
    pub(crate) file: usize,
    pub(crate) scoping: &'p Scoping,
    pub(crate) facts: &'p [Facts],
    pub(crate) shares: &'p Shares,
}

impl Purity<'_> {
    pub(crate) fn expression(&self, it: &Expression<'_>) -> bool {
        match it {
            Expression::BooleanLiteral(_)
            | Expression::NullLiteral(_)
            | Expression::NumericLiteral(_)
            | Expression::BigIntLiteral(_)
            | Expression::StringLiteral(_)
            | Expression::FunctionExpression(_)
            | Expression::ArrowFunctionExpression(_) => true,
            // With these, each match writes `lastIndex`.
            Expression::RegExpLiteral(it) => {
                !it.regex.flags.intersects(RegExpFlags::G | RegExpFlags::Y)
            }
            Expression::ClassExpression(it) => self.class(it),
            Expression::Identifier(name) => self.name(name),
            Expression::TemplateLiteral(it) => it.expressions.iter().all(|it| self.expression(it)),
            Expression::ArrayExpression(it) => it.elements.iter().all(|element| match element {
                ArrayExpressionElement::SpreadElement(it) => self.expression(&it.argument),
                ArrayExpressionElement::Elision(_) => true,
                other => other.as_expression().is_some_and(|it| self.expression(it)),
            }),
            Expression::ObjectExpression(it) => {
                it.properties.iter().all(|property| match property {
                    ObjectPropertyKind::ObjectProperty(it) => {
                        let key = it
                            .key
                            .as_expression()
                            .is_none_or(|key| self.expression(key));
                        key && self.expression(&it.value)
                    }
                    ObjectPropertyKind::SpreadProperty(it) => self.expression(&it.argument),
                })
            }
            Expression::BinaryExpression(it) => {
                self.expression(&it.left) && self.expression(&it.right)
            }
            Expression::LogicalExpression(it) => {
                self.expression(&it.left) && self.expression(&it.right)
            }
            Expression::UnaryExpression(it) => {
                it.operator != UnaryOperator::Delete && self.expression(&it.argument)
            }
            Expression::ConditionalExpression(it) => {
                self.expression(&it.test)
                    && self.expression(&it.consequent)
                    && self.expression(&it.alternate)
            }
            Expression::ParenthesizedExpression(it) => self.expression(&it.expression),
            Expression::StaticMemberExpression(it) => self.expression(&it.object),
            Expression::ComputedMemberExpression(it) => {
                self.expression(&it.object) && self.expression(&it.expression)
            }
            Expression::ChainExpression(it) => match &it.expression {
                ChainElement::CallExpression(call) => self.call(call),
                ChainElement::StaticMemberExpression(it) => self.expression(&it.object),
                ChainElement::ComputedMemberExpression(it) => {
                    self.expression(&it.object) && self.expression(&it.expression)
                }
                _ => false,
            },
            Expression::CallExpression(it) => self.call(it),
            Expression::NewExpression(it) => self.construction(it),
            _ => false,
        }
    }

    /// Whether what runs at the definition of a class is pure: its parent, computed names, and static values.
    pub(crate) fn class(&self, it: &Class<'_>) -> bool {
        let value = |value: Option<&Expression<'_>>| value.is_none_or(|it| self.expression(it));
        value(it.super_class.as_ref())
            && it.body.body.iter().all(|element| {
                let key = element.property_key().and_then(PropertyKey::as_expression);
                value(key)
                    && match element {
                        ClassElement::StaticBlock(it) => it.body.is_empty(),
                        // Freezing a class leaves its private fields writable, and accessors store in such a field.
                        ClassElement::PropertyDefinition(it) if it.r#static => {
                            !matches!(it.key, PropertyKey::PrivateIdentifier(_))
                                && value(it.value.as_ref())
                        }
                        ClassElement::AccessorProperty(it) => !it.r#static,
                        _ => true,
                    }
            })
    }

    fn name(&self, name: &IdentifierReference<'_>) -> bool {
        let Some(symbol) = values::symbol(self.scoping, name) else {
            return !matches!(
                name.name.as_str(),
                "__VU" | "__ITER" | "globalThis" | "global" | "Math" | "Date"
            );
        };
        match named(self.facts, self.file, symbol) {
            Named::Local(file, symbol) => self.shares.is_shared(file, symbol),
            Named::Api(..) | Named::Namespace(_) | Named::Value(..) => true,
            Named::Unknown => false,
        }
    }

    fn arguments(&self, arguments: &[Argument<'_>]) -> bool {
        arguments.iter().all(|argument| match argument {
            Argument::SpreadElement(it) => self.expression(&it.argument),
            other => other.as_expression().is_some_and(|it| self.expression(it)),
        })
    }

    fn call(&self, it: &CallExpression<'_>) -> bool {
        if !self.arguments(&it.arguments) {
            return false;
        }
        match &it.callee {
            Expression::Identifier(name) => match values::symbol(self.scoping, name) {
                None if name.name == "RegExp" => keeps_no_index(&it.arguments),
                None => GLOBALS.contains(&name.name.as_str()),
                Some(symbol) => match named(self.facts, self.file, symbol) {
                    Named::Api(module, Imported::Name(name)) => api_is_pure(&module, &name),
                    _ => false,
                },
            },
            Expression::StaticMemberExpression(member) => {
                let name = member.property.name.as_str();
                if let Expression::Identifier(object) = &member.object {
                    match values::symbol(self.scoping, object) {
                        None if object.name == "Math" => return name != "random",
                        None => return OBJECTS.contains(&object.name.as_str()),
                        Some(symbol) => {
                            if let Named::Api(module, _) = named(self.facts, self.file, symbol) {
                                return api_is_pure(&module, name);
                            }
                        }
                    }
                }
                !IMPURE.contains(&name)
                    && self.built_in(&member.object)
                    && self.expression(&member.object)
            }
            _ => false,
        }
    }

    /// Whether an object is a value of JavaScript, so that its methods are those of JavaScript.
    fn built_in(&self, it: &Expression<'_>) -> bool {
        match it {
            Expression::StringLiteral(_)
            | Expression::TemplateLiteral(_)
            | Expression::ArrayExpression(_) => true,
            Expression::ParenthesizedExpression(it) => self.built_in(&it.expression),
            Expression::LogicalExpression(it) => {
                self.built_in(&it.left) && self.built_in(&it.right)
            }
            Expression::CallExpression(it) => self.call(it),
            Expression::StaticMemberExpression(it) => {
                matches!(&it.object, Expression::Identifier(name) if name.name == "__ENV")
            }
            _ => false,
        }
    }

    /// Whether an expression is `new SharedArray(…)`.
    pub(crate) fn is_rows(&self, it: &Expression<'_>) -> bool {
        let Expression::NewExpression(it) = it else {
            return false;
        };
        self.module_of(&it.callee).as_deref() == Some("k6/data")
    }

    fn construction(&self, it: &NewExpression<'_>) -> bool {
        if !self.arguments(&it.arguments) {
            return false;
        }
        if let Expression::Identifier(name) = &it.callee
            && values::symbol(self.scoping, name).is_none()
        {
            return match name.name.as_str() {
                "RegExp" => keeps_no_index(&it.arguments),
                name => matches!(name, "Error" | "TypeError"),
            };
        }
        let module = self.module_of(&it.callee);
        matches!(module.as_deref(), Some("k6/metrics" | "k6/data"))
    }

    /// The module of the API that a callee, or the object of which it is a member, is imported from.
    fn module_of(&self, callee: &Expression<'_>) -> Option<String> {
        let callee = match callee {
            Expression::StaticMemberExpression(member) => &member.object,
            callee => callee,
        };
        let Expression::Identifier(name) = callee else {
            return None;
        };
        let symbol = values::symbol(self.scoping, name)?;
        match named(self.facts, self.file, symbol) {
            Named::Api(module, _) => Some(module),
            _ => None,
        }
    }

    /// Whether a statement that declares nothing can run once for all users.
    pub(crate) fn statement(&self, it: &Statement<'_>) -> bool {
        match it {
            Statement::ExpressionStatement(it) => self.expression(&it.expression),
            Statement::EmptyStatement(_) | Statement::DebuggerStatement(_) => true,
            Statement::BlockStatement(it) => it.body.iter().all(|it| self.statement(it)),
            Statement::IfStatement(it) => {
                self.expression(&it.test)
                    && self.statement(&it.consequent)
                    && it.alternate.as_ref().is_none_or(|it| self.statement(it))
            }
            Statement::ThrowStatement(it) => self.expression(&it.argument),
            _ => false,
        }
    }
}

/// Whether matches of `RegExp(…)` surely leave its `lastIndex`.
fn keeps_no_index(arguments: &[Argument<'_>]) -> bool {
    match arguments {
        [] | [Argument::StringLiteral(_) | Argument::TemplateLiteral(_)] => true,
        [_, Argument::StringLiteral(flags)] => !flags.value.contains(['g', 'y']),
        _ => false,
    }
}

/// Whether a function of the API returns the same value for all users.
fn api_is_pure(module: &str, name: &str) -> bool {
    match module {
        "k6" | "k6/execution" | "k6/crypto" => {
            matches!(name, "md5" | "sha1" | "sha256" | "sha512" | "hmac")
        }
        "k6/http" => matches!(
            name,
            "expectedStatuses" | "setResponseCallback" | "file" | "url"
        ),
        _ => !name.to_lowercase().contains("random") && !name.contains("uuid"),
    }
}
