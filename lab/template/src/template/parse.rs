//! Compiles a template's text to pieces, and reports every unknown name with its place.

use std::ops::Range;
use std::sync::Arc;

use lab_filters::sign::names_with_parts;
use lab_filters::{Escape, push_form, push_json, push_part_name};
use minijinja::value::ValueKind;

use super::constant;
use super::error::{Help, TemplateError};
use super::function::{self, Call, FUNCTIONS, Function, Kind};
use super::jinja::{self, FILTERS, GLOBALS, Jinja};
use super::keyed;
use super::piece::Piece;
use super::plain::{constants, environment_name, plain};
use super::profile::Profile;
use super::symbols::Symbols;
use super::token::{Token, TokenKind, arguments, code_tokens, mark, tokens, too_deep, words};
use super::{unseeded, value};
use crate::inputs::InputName;

/// Maximum nesting of parentheses. minijinja's own limit is 150, for which a thread's stack may be too small.
const MAX_NESTING: usize = 40;

/// Variables that every template knows besides the workload's own.
pub(super) const BUILT_IN: &[&str] = &["index", "users", "round", "cycle"];

/// Compiles `text`.
pub(super) fn pieces(
    text: &str,
    symbols: Symbols<'_>,
    escape: Escape,
) -> Result<Vec<Piece>, TemplateError> {
    if escape == Escape::Signed {
        let variables = &names_with_parts(symbols.variables);
        return pieces(
            text,
            Symbols {
                variables,
                ..symbols
            },
            Escape::None,
        );
    }
    let parser = Parser {
        text,
        symbols,
        language: Language::Request,
    };
    if escape == Escape::Condition {
        return parser.condition();
    }
    if needs_statements(text) {
        let compile = match escape {
            Escape::Xml => Jinja::xml,
            _ => Jinja::text,
        };
        let expression = parser.jinja(0..text.len(), &code_tokens(text), compile)?;
        let fault = constant::jinja(&expression, symbols.parameters);
        never_works("it", 0..text.len(), fault)?;
        let expression = Arc::new(expression);
        let escape = match escape {
            Escape::JsonValue | Escape::JsonString => Escape::JsonText,
            // Its values are escaped when substituted, its markup is not.
            Escape::Xml => Escape::None,
            other => other,
        };
        return Ok(quoted(vec![Piece::Jinja { expression, escape }], escape));
    }
    parser.split(escape)
}

/// Compiles a setting: its expressions may use the study's factors and no functions of users.
pub(super) fn setting(text: &str, factors: &[String]) -> Result<Vec<Piece>, TemplateError> {
    let symbols = Symbols::new(factors);
    let parser = Parser {
        text,
        symbols,
        language: Language::Setting,
    };
    if has_statement(text) {
        let expression = parser.jinja(0..text.len(), &code_tokens(text), Jinja::text)?;
        return Ok(vec![Piece::Jinja {
            expression: Arc::new(expression),
            escape: Escape::None,
        }]);
    }
    parser.split(Escape::None)
}

/// Returns true if a setting has a statement. Files of other programs, which settings may contain, use `{%` and `{#`
/// themselves.
fn has_statement(text: &str) -> bool {
    const STATEMENTS: [&str; 3] = ["for", "if", "set"];
    text.match_indices("{%").any(|(at, mark)| {
        let code = text[at + mark.len()..].trim_start_matches(['-', '+']);
        let word = code.split_whitespace().next();
        word.is_some_and(|word| STATEMENTS.contains(&word))
    })
}

/// Reports an expression that fails for every user.
fn never_works(
    source: &str,
    range: Range<usize>,
    fault: Option<constant::Fault>,
) -> Result<(), TemplateError> {
    let Some(constant::Fault { cause, help }) = fault else {
        return Ok(());
    };
    let message = format!("{source} never works: {cause}");
    Err(error(&message, range, help.as_deref()))
}

/// The use of a template, which determines the names available to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Request,
    Setting,
}

/// Returns true if statements, comments, or whitespace control require minijinja for the whole text.
fn needs_statements(text: &str) -> bool {
    ["{%", "{#", "{{-", "{{+", "-}}", "+}}"]
        .iter()
        .any(|mark| text.contains(mark))
}

fn quoted(mut pieces: Vec<Piece>, escape: Escape) -> Vec<Piece> {
    if escape == Escape::JsonText {
        pieces.insert(0, Piece::Literal("\"".into()));
        pieces.push(Piece::Literal("\"".into()));
    }
    pieces
}

struct Parser<'a> {
    text: &'a str,
    symbols: Symbols<'a>,
    language: Language,
}

impl Parser<'_> {
    /// Splits the text at its `{{ … }}`.
    fn split(&self, escape: Escape) -> Result<Vec<Piece>, TemplateError> {
        let mut holes = Vec::new();
        let mut at = 0;
        while let Some(found) = self.text[at..].find("{{") {
            let open = at + found;
            let Some(close) = closing(self.text, open + 2) else {
                let help = "end it with `}}`";
                return Err(error("`{{` is not closed", open..open + 2, Some(help)));
            };
            holes.push(open..close + 2);
            at = close + 2;
        }
        let whole = holes.len() == 1 && holes[0] == (0..self.text.len());
        let (inner, quote) = match escape {
            Escape::JsonString => (Escape::JsonText, true),
            Escape::JsonValue if !whole => (Escape::JsonText, true),
            other => (other, false),
        };
        let mut pieces = Vec::with_capacity(holes.len() * 2 + 1);
        let mut at = 0;
        for hole in holes {
            pieces.push(literal(&self.text[at..hole.start], inner));
            at = hole.end;
            pieces.push(self.hole(hole.start + 2..hole.end - 2, inner)?);
        }
        pieces.push(literal(&self.text[at..], inner));
        Ok(if quote {
            quoted(pieces, Escape::JsonText)
        } else {
            pieces
        })
    }

    /// Compiles the whole text as a condition, with or without braces around it.
    fn condition(&self) -> Result<Vec<Piece>, TemplateError> {
        let inner = self.text.trim();
        let bare = inner
            .strip_prefix("{{")
            .and_then(|rest| rest.strip_suffix("}}"));
        let source = bare.unwrap_or(inner).trim();
        let start = self.text.find(source).unwrap_or_default();
        let range = start..start + source.len();
        if source.is_empty() {
            let help = "say what holds, such as `state == 'done'`";
            let whole = 0..self.text.len();
            return Err(error("the condition is empty", whole, Some(help)));
        }
        let tokens = tokens(source);
        for (i, token) in tokens.iter().enumerate() {
            let at = range.start + token.at..range.start + token.at + token.text.len();
            check_condition(&tokens, i).map_err(|fault| fault.at(at))?;
        }
        let expression = Arc::new(self.jinja(range, &tokens, Jinja::condition)?);
        Ok(vec![Piece::Jinja {
            expression,
            escape: Escape::Condition,
        }])
    }

    /// Compiles one `{{ … }}`, given the range between the braces.
    fn hole(&self, range: Range<usize>, escape: Escape) -> Result<Piece, TemplateError> {
        let source = self.text[range.clone()].trim();
        if source.is_empty() {
            let help = "name a variable or call a function";
            return Err(error(
                "`{{ }}` is empty",
                range.start - 2..range.end + 2,
                Some(help),
            ));
        }
        let is_of_user = self.language == Language::Request;
        let tokens = tokens(&self.text[range.clone()]);
        let plain = is_of_user.then(|| plain(&tokens, self.symbols)).flatten();
        if let Some(expression) = plain {
            self.check_calls(&tokens, range.start)?;
            never_works(&format!("`{source}`"), range, constant::plain(&expression))?;
            return Ok(Piece::Plain {
                source: source.into(),
                expression,
                escape,
            });
        }
        let expression = self.jinja(range.clone(), &tokens, Jinja::expression)?;
        if self.language == Language::Request {
            let fault = constant::jinja(&expression, self.symbols.parameters);
            never_works(&format!("`{source}`"), range, fault)?;
        }
        let expression = Arc::new(expression);
        Ok(Piece::Jinja { expression, escape })
    }

    fn built_in(&self) -> &'static [&'static str] {
        if self.language == Language::Request {
            BUILT_IN
        } else {
            &[]
        }
    }

    fn functions(&self) -> Vec<&'static str> {
        let functions = if self.language == Language::Request {
            FUNCTIONS
        } else {
            &[]
        };
        functions.iter().map(|f| f.name).collect()
    }

    /// Compiles a range of the text with minijinja and checks its names.
    fn jinja(
        &self,
        range: Range<usize>,
        tokens: &[Token],
        compile: fn(&str) -> Result<Jinja, minijinja::Error>,
    ) -> Result<Jinja, TemplateError> {
        let source = &self.text[range.clone()];
        let place =
            |token: &Token| range.start + token.at..range.start + token.at + token.text.len();
        if let Some(token) = too_deep(tokens, MAX_NESTING) {
            let message = format!("there are more than {MAX_NESTING} parentheses in each other");
            let help = "`set` a variable to a part of it";
            return Err(error(&message, place(token), Some(help)));
        }
        self.check_calls(tokens, range.start)?;
        let counts = arguments(tokens);
        for (i, token) in tokens.iter().enumerate() {
            self.check_filter(tokens, i)
                .and_then(|()| self.check_count(tokens, &counts, i))
                .map_err(|e| e.at(place(token)))?;
        }
        let rewritten = self
            .name_lists(source, tokens)
            .map_err(|(i, e)| e.at(place(&tokens[i])))?;
        let mut compiled = compile(&rewritten).map_err(|e| syntax_error(&e, range.clone()))?;
        compiled.know(self.symbols.parameters, source);
        for name in compiled.undeclared() {
            let known =
                GLOBALS.contains(&name.as_str()) || self.built_in().contains(&name.as_str());
            let parameter = self.symbols.parameters.contains_key(&name);
            if known || parameter || self.symbols.slot(&name).is_some() {
                continue;
            }
            let token = tokens.iter().enumerate().find(|(_, t)| t.text == name);
            let called = token.is_some_and(|(i, _)| mark(tokens, i + 1, "("));
            if called && self.functions().contains(&name.as_str()) {
                continue;
            }
            let at = token.map_or(range.clone(), |(_, t)| place(t));
            return Err(self.unknown(&name, called).at(at));
        }
        Ok(compiled)
    }

    /// Checks calls by their context, in code that starts at `start` of the text.
    fn check_calls(&self, tokens: &[Token], start: usize) -> Result<(), TemplateError> {
        if self.language != Language::Request {
            return Ok(());
        }
        keyed::check(tokens, start, self.symbols.keys)?;
        if !self.symbols.is_repeatable {
            return Ok(());
        }
        let moment = (0..tokens.len()).find_map(|at| unseeded::moment(tokens, at));
        let Some((at, message, help)) = moment else {
            return Ok(());
        };
        Err(error(
            &message,
            start + at.start..start + at.end,
            Some(help),
        ))
    }

    /// A filter's name, after `|`, must be a known one.
    fn check_filter(&self, tokens: &[Token], i: usize) -> Result<(), Fault> {
        let after_bar = i > 0 && mark(tokens, i - 1, "|") && !(i > 1 && mark(tokens, i - 2, "|"));
        let token = &tokens[i];
        if !after_bar || token.kind != TokenKind::Name || FILTERS.contains(&token.text) {
            return Ok(());
        }
        let help = Help::names(token.text, FILTERS, "the filters are");
        Err(Fault {
            message: format!("there is no filter `{}`", token.text),
            help: Some(help),
        })
    }

    /// Checks the number of arguments of a function; `counts` has it for each parenthesis.
    fn check_count(
        &self,
        tokens: &[Token],
        counts: &[Option<usize>],
        i: usize,
    ) -> Result<(), Fault> {
        let token = &tokens[i];
        let attribute = i > 0 && mark(tokens, i - 1, "|");
        let function = function::find(token.text).filter(|_| token.kind == TokenKind::Name);
        let Some(function) = function.filter(|_| mark(tokens, i + 1, "(") && !attribute) else {
            return Ok(());
        };
        if function.kind == Kind::Shares {
            return check_shares(function, &tokens[i + 1..]);
        }
        if function.kind == Kind::Draw
            && let Some((numbers, _)) = constants(tokens, i + 2, self.symbols)
            && let Err(message) = function::distribution(function.call, numbers)
        {
            let help = Some(Help::Text(function.usage.to_owned()));
            return Err(Fault { message, help });
        }
        if function.kind == Kind::Given && given(&tokens[i + 1..]).is_none() {
            return Err(Fault {
                message: format!(
                    "`{}()` takes the name of an environment variable",
                    token.text
                ),
                help: Some(Help::Text(format!("{}('API_TOKEN')", token.text))),
            });
        }
        if function.kind == Kind::Counter && given(&tokens[i + 1..]).is_none() {
            return Err(Fault {
                message: format!("`{}()` takes the name of a counter", token.text),
                help: Some(Help::Text(function.usage.to_owned())),
            });
        }
        let count = match function.kind {
            Kind::Numbers(count) => Some(count),
            Kind::Draw => Some(2),
            _ => None,
        };
        match count {
            Some(count) if counts.get(i + 1) != Some(&Some(count)) => Err(Fault {
                message: format!(
                    "`{}` is called with other arguments than it takes",
                    token.text
                ),
                help: Some(Help::Text(function.usage.to_owned())),
            }),
            _ => Ok(()),
        }
    }

    /// Rewrites `take(invitations)`, which names a list rather than passing its value: minijinja gets the name.
    fn name_lists(&self, source: &str, tokens: &[Token]) -> Result<String, (usize, Fault)> {
        let mut rewritten = String::with_capacity(source.len() + 8);
        let mut copied = 0;
        for (i, token) in tokens.iter().enumerate() {
            let kind = function::find(token.text).map(|f| f.kind);
            let unquoted = tokens.get(i + 2).filter(|t| t.kind == TokenKind::Name);
            if let (Some(Kind::Given | Kind::Counter), Some(name), true) =
                (kind, unquoted, mark(tokens, i + 1, "("))
            {
                quote(source, name, &mut copied, &mut rewritten);
                continue;
            }
            if kind != Some(Kind::List)
                || token.kind != TokenKind::Name
                || !mark(tokens, i + 1, "(")
            {
                continue;
            }
            if token.text == "pick" && mark(tokens, i + 2, "[") {
                continue;
            }
            let name = tokens
                .get(i + 2)
                .filter(|t| t.kind == TokenKind::Name && mark(tokens, i + 3, ")"));
            let Some(name) = name else {
                let message = format!("`{}()` takes the name of a captured list", token.text);
                let usage = function::find(token.text).map(|f| Help::Text(f.usage.to_owned()));
                return Err((
                    i,
                    Fault {
                        message,
                        help: usage,
                    },
                ));
            };
            if self.symbols.slot(name.text).is_none() {
                return Err((i + 2, self.unknown(name.text, false)));
            }
            quote(source, name, &mut copied, &mut rewritten);
        }
        rewritten.push_str(&source[copied..]);
        Ok(rewritten)
    }

    fn unknown(&self, name: &str, called: bool) -> Fault {
        let functions = self.functions();
        let variables: Vec<&str> = self
            .symbols
            .variables
            .iter()
            .chain(self.symbols.parameters.keys())
            .map(String::as_str)
            .filter(|v| !v.is_empty())
            .chain(self.built_in().iter().copied())
            .collect();
        let (what, choices) = match called {
            true => ("function", functions),
            false => ("variable", variables),
        };
        let help = match choices.is_empty() {
            false => Help::names(name, &choices, &format!("the {what}s here are")),
            true if called => {
                let help = "a setting is made of the study's factors, without functions";
                Help::Text(help.to_owned())
            }
            true => Help::Text("the study has no matrix, so it has no factors".to_owned()),
        };
        Fault {
            message: format!("there is no {what} `{name}`"),
            help: Some(help),
        }
    }
}

/// Reports code in a condition that would never have its apparent meaning.
fn check_condition(tokens: &[Token], i: usize) -> Result<(), Fault> {
    let token = &tokens[i];
    let called = token.kind == TokenKind::Name && mark(tokens, i + 1, "(");
    let function = function::find(token.text).filter(|_| called);
    if function.is_some_and(Function::is_of_the_clock) {
        let help = "`set` a variable to it, and ask for that";
        return Err(Fault {
            message: "a condition can't ask for the time of day".to_owned(),
            help: Some(Help::Text(help.to_owned())),
        });
    }
    if function.is_some_and(|one| one.kind == Kind::Counter) {
        let help = "`set` a variable to it, and ask for that";
        return Err(Fault {
            message: "a condition can't take a number of a counter".to_owned(),
            help: Some(Help::Text(help.to_owned())),
        });
    }
    let lists = function::find(token.text).is_some_and(|f| f.kind == Kind::List);
    if lists && token.kind == TokenKind::Name && mark(tokens, i + 1, "(") {
        let help = "`set` a variable to it, and ask for that";
        return Err(Fault {
            message: format!("a condition can't `{}` from a list", token.text),
            help: Some(Help::Text(help.to_owned())),
        });
    }
    let text = token.text.get(1..token.text.len().saturating_sub(1));
    if let (TokenKind::Text, Some(text)) = (token.kind, text)
        && !matches!(value::scalar(text).kind(), ValueKind::String)
    {
        return Err(Fault {
            message: format!("what reads as `{text}` is no text to a condition"),
            help: Some(Help::Text(format!("write `{text}` without quotes"))),
        });
    }
    Ok(())
}

/// Copies the source up to a name, and quotes the name.
fn quote(source: &str, name: &Token, copied: &mut usize, rewritten: &mut String) {
    rewritten.push_str(&source[*copied..name.at]);
    rewritten.push('\'');
    rewritten.push_str(name.text);
    rewritten.push('\'');
    *copied = name.at + name.text.len();
}

/// Returns the name in a call of `env`, `secret`, or `next`.
fn given<'a>(tokens: &[Token<'a>]) -> Option<&'a str> {
    let name = tokens.get(1).and_then(environment_name)?;
    (mark(tokens, 0, "(") && mark(tokens, 2, ")")).then_some(name)
}

/// Adds the environment variables that an expression of minijinja uses.
pub(super) fn inputs(expression: &Jinja, asked: &mut Vec<InputName>) {
    calls(expression, Kind::Given, |call, name| {
        asked.push(InputName {
            name: name.to_owned(),
            secret: call == Call::Secret,
        });
    });
}

/// Adds the counters that an expression of minijinja uses.
pub(super) fn counters(expression: &Jinja, counters: &mut Vec<String>) {
    calls(expression, Kind::Counter, |_, name| {
        counters.push(name.to_owned());
    });
}

/// Finds the calls of functions of this kind, which take a name.
fn calls(expression: &Jinja, kind: Kind, mut found: impl FnMut(Call, &str)) {
    let tokens = words(expression.source(), expression.is_text());
    for (i, token) in tokens.iter().enumerate() {
        let function = function::find(token.text).filter(|f| f.kind == kind);
        let name = given(&tokens[i + 1..]);
        if let (Some(function), Some(name), TokenKind::Name) = (function, name, token.kind) {
            found(function.call, name);
        }
    }
}

/// Checks values with shares, which must be a literal, so that errors are found before its use.
fn check_shares(function: &Function, tokens: &[Token]) -> Result<(), Fault> {
    let text = tokens.get(1).filter(|t| t.kind == TokenKind::Text);
    let text = text.map(|t| &t.text[1..t.text.len() - 1]);
    let message = match (text, function.call) {
        (None, _) => Some(format!("`{}()` takes a text", function.name)),
        (Some(text), Call::Weighted) => function::weights(text).err(),
        (Some(text), _) => Profile::parse(text).err(),
    };
    message.map_or(Ok(()), |message| {
        Err(Fault {
            message,
            help: Some(Help::Text(function.usage.to_owned())),
        })
    })
}

/// An error without a place.
struct Fault {
    message: String,
    help: Option<Help>,
}

impl Fault {
    fn at(self, at: Range<usize>) -> TemplateError {
        TemplateError {
            message: self.message,
            at,
            help: self.help,
        }
    }
}

fn error(message: &str, at: Range<usize>, help: Option<&str>) -> TemplateError {
    TemplateError {
        message: message.to_owned(),
        at,
        help: help.map(|help| Help::Text(help.to_owned())),
    }
}

fn syntax_error(error: &minijinja::Error, range: Range<usize>) -> TemplateError {
    let inner = error
        .range()
        .filter(|r| r.end <= range.len() && !r.is_empty());
    let at = inner.map_or(range.clone(), |r| {
        range.start + r.start..range.start + r.end
    });
    TemplateError {
        message: jinja::cause(error),
        at,
        help: None,
    }
}

/// Creates literal text, escaped once.
fn literal(text: &str, escape: Escape) -> Piece {
    let mut out = String::with_capacity(text.len());
    match escape {
        // Text in an XML body is XML already, and a command has its own quotes.
        Escape::None | Escape::Xml | Escape::Quoted | Escape::Condition | Escape::Signed => {
            out.push_str(text);
        }
        Escape::JsonText | Escape::JsonValue | Escape::JsonString => push_json(text, &mut out),
        Escape::Form => push_form(text, &mut out),
        Escape::PartName => push_part_name(text, &mut out),
    }
    Piece::Literal(out.into())
}

/// Returns the offset of the `}}` that ends the expression starting at `from`: the first one outside of quotes and of
/// the expression's own braces.
fn closing(text: &str, from: usize) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0usize;
    let bytes = text.as_bytes();
    let mut i = from;
    while i < bytes.len() {
        match (quote, bytes[i]) {
            (Some(_), b'\\') => i += 1,
            (Some(open), b) if b == open => quote = None,
            (Some(_), _) => {}
            (None, b @ (b'"' | b'\'')) => quote = Some(b),
            (None, b'{') => depth += 1,
            (None, b'}') if depth > 0 => depth -= 1,
            (None, b'}') if bytes.get(i + 1) == Some(&b'}') => return Some(i),
            (None, _) => {}
        }
        i += 1;
    }
    None
}
