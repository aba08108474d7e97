//! Expressions as values: what they may be, as far as waiting is concerned, and as names of requests.

use oxc_ast::ast::{
    Argument, BindingPattern, Expression, IdentifierReference, PropertyKey, TemplateLiteral,
};
use oxc_semantic::Scoping;

use crate::facts::{Symbol, Value};

pub(crate) fn symbol(scoping: &Scoping, identifier: &IdentifierReference<'_>) -> Option<Symbol> {
    let reference = identifier.reference_id.get()?;
    let symbol = scoping.get_reference(reference).symbol_id()?;
    Some(symbol.index())
}

pub(crate) fn identifier(scoping: &Scoping, identifier: &IdentifierReference<'_>) -> Value {
    match symbol(scoping, identifier) {
        Some(symbol) => Value::Symbol(symbol),
        None => Value::Global(identifier.name.to_string()),
    }
}

/// The value of an expression.
pub(crate) fn value(scoping: &Scoping, expression: &Expression<'_>) -> Value {
    let of = |expression: &Expression<'_>| value(scoping, expression);
    match expression {
        Expression::Identifier(name) => identifier(scoping, name),
        Expression::FunctionExpression(function) => Value::Function(function.span.start),
        Expression::ArrowFunctionExpression(arrow) => Value::Function(arrow.span.start),
        Expression::ParenthesizedExpression(inner) => of(&inner.expression),
        Expression::AssignmentExpression(inner) => of(&inner.right),
        Expression::SequenceExpression(inner) => inner.expressions.last().map_or(Value::Other, of),
        Expression::ConditionalExpression(inner) => {
            Value::Any(vec![of(&inner.consequent), of(&inner.alternate)])
        }
        Expression::LogicalExpression(inner) => Value::Any(vec![of(&inner.left), of(&inner.right)]),
        Expression::StaticMemberExpression(member) => Value::Member(
            Box::new(of(&member.object)),
            member.property.name.to_string(),
        ),
        Expression::PrivateFieldExpression(member) => Value::Member(
            Box::new(of(&member.object)),
            format!("#{}", member.field.name),
        ),
        Expression::ComputedMemberExpression(member) => match &member.expression {
            Expression::StringLiteral(name) => {
                Value::Member(Box::new(of(&member.object)), name.value.to_string())
            }
            _ => Value::Other,
        },
        Expression::ChainExpression(chain) => chain_value(scoping, chain),
        Expression::CallExpression(call) => match bound(scoping, &call.callee) {
            Some(bound) => bound,
            None => Value::Call(Box::new(of(&call.callee))),
        },
        Expression::ThisExpression(_) | Expression::Super(_) => Value::Plain,
        Expression::BooleanLiteral(_)
        | Expression::NullLiteral(_)
        | Expression::NumericLiteral(_)
        | Expression::BigIntLiteral(_)
        | Expression::RegExpLiteral(_)
        | Expression::StringLiteral(_)
        | Expression::TemplateLiteral(_)
        | Expression::ArrayExpression(_)
        | Expression::ObjectExpression(_)
        | Expression::BinaryExpression(_)
        | Expression::UnaryExpression(_)
        | Expression::UpdateExpression(_)
        | Expression::ClassExpression(_)
        | Expression::NewExpression(_) => Value::Plain,
        _ => Value::Other,
    }
}

/// `f.bind(…)` is `f`.
fn bound(scoping: &Scoping, callee: &Expression<'_>) -> Option<Value> {
    let Expression::StaticMemberExpression(member) = callee else {
        return None;
    };
    (member.property.name == "bind").then(|| value(scoping, &member.object))
}

fn chain_value(scoping: &Scoping, chain: &oxc_ast::ast::ChainExpression<'_>) -> Value {
    use oxc_ast::ast::ChainElement;
    match &chain.expression {
        ChainElement::CallExpression(call) => Value::Call(Box::new(value(scoping, &call.callee))),
        ChainElement::StaticMemberExpression(member) => Value::Member(
            Box::new(value(scoping, &member.object)),
            member.property.name.to_string(),
        ),
        _ => Value::Other,
    }
}

pub(crate) fn argument(scoping: &Scoping, argument: &Argument<'_>) -> Value {
    argument
        .as_expression()
        .map_or(Value::Other, |expression| value(scoping, expression))
}

/// The name of a property, if it is known.
pub(crate) fn key(key: &PropertyKey<'_>) -> Option<String> {
    match key {
        PropertyKey::StaticIdentifier(name) => Some(name.name.to_string()),
        PropertyKey::PrivateIdentifier(name) => Some(format!("#{}", name.name)),
        PropertyKey::StringLiteral(name) => Some(name.value.to_string()),
        PropertyKey::NumericLiteral(number) => Some(number.value.to_string()),
        _ => None,
    }
}

/// All bindings of a pattern, each with the path of names to it.
pub(crate) fn bindings(
    pattern: &BindingPattern<'_>,
    path: &mut Vec<String>,
    out: &mut Vec<(Symbol, Vec<String>)>,
) {
    match pattern {
        BindingPattern::BindingIdentifier(name) => {
            if let Some(symbol) = name.symbol_id.get() {
                out.push((symbol.index(), path.clone()));
            }
        }
        BindingPattern::ObjectPattern(object) => {
            for property in &object.properties {
                path.push(key(&property.key).unwrap_or_default());
                bindings(&property.value, path, out);
                path.pop();
            }
            if let Some(rest) = &object.rest {
                bindings(&rest.argument, path, out);
            }
        }
        BindingPattern::ArrayPattern(array) => {
            path.push(String::new());
            for element in array.elements.iter().flatten() {
                bindings(element, path, out);
            }
            if let Some(rest) = &array.rest {
                bindings(&rest.argument, path, out);
            }
            path.pop();
        }
        BindingPattern::AssignmentPattern(assigned) => bindings(&assigned.left, path, out),
    }
}

/// The values of an object literal; `None` if it isn't one, or has parts that aren't known.
pub(crate) fn members(scoping: &Scoping, expression: &Expression<'_>) -> Option<Vec<Value>> {
    let Expression::ObjectExpression(object) = expression else {
        return None;
    };
    let values = object.properties.iter().map(|property| match property {
        oxc_ast::ast::ObjectPropertyKind::ObjectProperty(property) => {
            Some(value(scoping, &property.value))
        }
        oxc_ast::ast::ObjectPropertyKind::SpreadProperty(_) => None,
    });
    values.collect()
}

/// A text with `{name}` for each part that isn't known: `{BASE}/items/{id}`.
pub(crate) fn text(
    expression: &Expression<'_>,
    known: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    match expression {
        Expression::StringLiteral(text) => Some(text.value.to_string()),
        Expression::TemplateLiteral(template) => Some(template_text(template, known)),
        Expression::BinaryExpression(sum) if sum.operator.as_str() == "+" => {
            let left = text(&sum.left, known).unwrap_or_else(|| placeholder(&sum.left));
            let right = text(&sum.right, known).unwrap_or_else(|| placeholder(&sum.right));
            Some(left + &right)
        }
        Expression::ParenthesizedExpression(inner) => text(&inner.expression, known),
        Expression::Identifier(name) => known(&name.name),
        Expression::TaggedTemplateExpression(tagged) => Some(template_text(&tagged.quasi, known)),
        Expression::CallExpression(call) => match &call.callee {
            Expression::StaticMemberExpression(member) if member.property.name == "toString" => {
                text(&member.object, known)
            }
            _ => None,
        },
        _ => None,
    }
}

fn template_text(template: &TemplateLiteral<'_>, known: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    for (i, quasi) in template.quasis.iter().enumerate() {
        out.push_str(quasi.value.cooked.as_ref().unwrap_or(&quasi.value.raw));
        if let Some(expression) = template.expressions.get(i) {
            out.push_str(&text(expression, known).unwrap_or_else(|| placeholder(expression)));
        }
    }
    out
}

fn placeholder(expression: &Expression<'_>) -> String {
    let name = match expression {
        Expression::Identifier(name) => name.name.as_str(),
        Expression::StaticMemberExpression(member) => member.property.name.as_str(),
        _ => "…",
    };
    format!("{{{name}}}")
}

/// The path of an address: what follows the host, or the first part that isn't known.
pub(crate) fn path(address: &str) -> String {
    let rest = match address.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None if address.starts_with('{') => {
            let after = address.find('}').map_or("", |at| &address[at + 1..]);
            if after.starts_with('/') {
                after
            } else {
                address
            }
        }
        None => address,
    };
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    if rest.is_empty() {
        "/".to_owned()
    } else {
        rest.to_owned()
    }
}

/// The value of a member of an object literal.
pub(crate) fn member<'e, 'a>(object: &'e Expression<'a>, name: &str) -> Option<&'e Expression<'a>> {
    let Expression::ObjectExpression(object) = object else {
        return None;
    };
    object
        .properties
        .iter()
        .find_map(|property| match property {
            oxc_ast::ast::ObjectPropertyKind::ObjectProperty(property) => {
                (key(&property.key)? == name).then_some(&property.value)
            }
            oxc_ast::ast::ObjectPropertyKind::SpreadProperty(_) => None,
        })
}
