//! Converts the tokens of an expression to its plain form, if it has one.
//!
//! minijinja evaluates all others, and reports their errors with the place.

use std::sync::Arc;

use lab_filters::Filter;

use super::constant;
use super::function::{self, Call, Kind};
use super::piece::{Filtered, Plain};
use super::profile::Profile;
use super::symbols::Symbols;
use super::token::{Token, TokenKind, expect, mark};
use crate::level::Level;

/// Maximum nesting of calls and parentheses; minijinja evaluates deeper ones, with its own limit.
const MAX_DEPTH: usize = 8;

/// Returns the expression if it doesn't need minijinja.
pub(super) fn plain(tokens: &[Token], symbols: Symbols<'_>) -> Option<Plain> {
    let mut words = Words {
        tokens,
        at: 0,
        symbols,
    };
    let plain = words.joined(0)?;
    let is_of_filters = matches!(plain, Plain::Joined(_) | Plain::Filtered(_));
    // minijinja evaluates constant expressions when they are read.
    let is_left = is_of_filters && constant::is_constant(&plain);
    let is_left = is_left || !plain.gives_text() || words.is_one_group();
    (words.at == tokens.len() && !is_left).then_some(plain)
}

/// Returns the name of an environment variable, quoted or not.
pub(super) fn environment_name<'a>(token: &Token<'a>) -> Option<&'a str> {
    let name = match token.kind {
        TokenKind::Name => token.text,
        TokenKind::Text => &token.text[1..token.text.len() - 1],
        TokenKind::Number | TokenKind::Mark => return None,
    };
    function::is_environment_name(name).then_some(name)
}

struct Words<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    symbols: Symbols<'a>,
}

impl<'a> Words<'a> {
    /// Returns true if one pair of parentheses encloses all of it, which requires minijinja.
    fn is_one_group(&self) -> bool {
        let mut depth = 0_usize;
        let end = self.tokens.iter().position(|token| {
            match token.text {
                "(" if token.kind == TokenKind::Mark => depth += 1,
                ")" if token.kind == TokenKind::Mark => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        mark(self.tokens, 0, "(") && end == Some(self.tokens.len() - 1)
    }

    fn next(&mut self) -> Option<&Token<'a>> {
        let token = self.tokens.get(self.at);
        self.at += 1;
        token
    }

    fn skip(&mut self, text: &str) -> bool {
        let found = mark(self.tokens, self.at, text);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, text: &str) -> Option<()> {
        expect(self.tokens, &mut self.at, text)
    }

    /// Parses one value, or several with `~` between them.
    fn joined(&mut self, depth: usize) -> Option<Plain> {
        let mut parts = vec![self.filtered(depth)?];
        while self.skip("~") {
            parts.push(self.filtered(depth)?);
        }
        match parts.len() {
            1 => parts.pop(),
            // minijinja has its own conversion from bytes to text.
            _ if !parts.iter().all(Plain::gives_text) => None,
            _ => Some(Plain::Joined(parts.into())),
        }
    }

    /// Parses a value, and its filters.
    fn filtered(&mut self, depth: usize) -> Option<Plain> {
        let of = match self.skip("(") {
            true if depth < MAX_DEPTH => {
                let inner = self.joined(depth + 1)?;
                self.expect(")")?;
                inner
            }
            true => return None,
            false => self.value(depth)?,
        };
        let mut filters: Vec<(Filter, Option<Plain>)> = Vec::new();
        while self.skip("|") {
            let name = self.next().filter(|token| token.kind == TokenKind::Name)?;
            let name = name.text;
            let (key, arguments) = self.filter_arguments(name == "hmac", depth)?;
            let filter = Filter::named(name, &arguments)?;
            let before = filters.last().map(|(before, _)| *before);
            if filter == Filter::UrlEncode && before.is_some_and(Filter::gives_bytes) {
                return None;
            }
            filters.push((filter, key));
        }
        Some(match filters.is_empty() {
            true => of,
            false => Plain::Filtered(Box::new(Filtered {
                of,
                filters: filters.into(),
            })),
        })
    }

    /// Parses an optional key, and constant texts.
    fn filter_arguments(
        &mut self,
        takes_key: bool,
        depth: usize,
    ) -> Option<(Option<Plain>, Vec<&'a str>)> {
        if !self.skip("(") {
            return (!takes_key).then(|| (None, Vec::new()));
        }
        let key = match takes_key {
            true if depth < MAX_DEPTH => Some(self.joined(depth + 1)?),
            true => return None,
            false => None,
        };
        let mut texts = Vec::new();
        while !self.skip(")") {
            if key.is_some() || !texts.is_empty() {
                self.expect(",")?;
            }
            let text = self.next().filter(|token| token.kind == TokenKind::Text)?;
            texts.push(&text.text[1..text.text.len() - 1]);
        }
        Some((key, texts))
    }

    fn value(&mut self, depth: usize) -> Option<Plain> {
        let token = *self.next()?;
        match token.kind {
            TokenKind::Number => return token.text.parse().ok().map(Plain::Number),
            TokenKind::Text => {
                return Some(Plain::Text(token.text[1..token.text.len() - 1].into()));
            }
            TokenKind::Name => {}
            TokenKind::Mark if token.text == "-" => {
                let number = *self.next().filter(|t| t.kind == TokenKind::Number)?;
                return number.text.parse::<i64>().ok().map(|n| Plain::Number(-n));
            }
            TokenKind::Mark => return unescaped(token.text).map(|text| Plain::Text(text.into())),
        }
        match self.skip("(") {
            true if depth < MAX_DEPTH => self.call(token.text, depth),
            true => None,
            false => self.variable(token.text),
        }
    }

    /// Parses the arguments of a call, and its closing parenthesis.
    fn call(&mut self, name: &str, depth: usize) -> Option<Plain> {
        let function = function::find(name)?;
        let plain = match function.kind {
            Kind::List => {
                let name = self.next()?.text;
                let slot = self.symbols.slot(name)?;
                match function.call {
                    Call::Take => Plain::Take(slot),
                    _ => Plain::Pick(slot),
                }
            }
            Kind::Given => Plain::Given {
                name: self.next().and_then(environment_name)?.into(),
                secret: function.call == Call::Secret,
            },
            Kind::Counter => Plain::Next(self.next().and_then(environment_name)?.into()),
            Kind::Values => return None,
            Kind::Key => {
                let text = self.next().filter(|t| t.kind == TokenKind::Text)?;
                Plain::Key(text.text[1..text.text.len() - 1].into())
            }
            Kind::Time => self.time()?,
            // Parsed at once, so that errors have their place.
            Kind::Shares => {
                let text = self.next().filter(|t| t.kind == TokenKind::Text)?;
                let text = &text.text[1..text.text.len() - 1];
                match function.call {
                    Call::Weighted => Plain::Weighted(Arc::new(function::weights(text).ok()?)),
                    _ => Plain::Profile(Arc::new(Profile::parse(text).ok()?)),
                }
            }
            Kind::Draw => {
                let (numbers, end) = constants(self.tokens, self.at, self.symbols)?;
                self.at = end;
                Plain::Draw(function::distribution(function.call, numbers).ok()?)
            }
            Kind::Numbers(count) => {
                let mut arguments = Vec::with_capacity(count);
                for i in 0..count {
                    if i > 0 {
                        self.expect(",")?;
                    }
                    arguments.push(self.value(depth + 1)?);
                }
                Plain::Numbers(function.call, arguments.into())
            }
        };
        self.expect(")")?;
        Some(plain)
    }

    /// Parses a time format and an offset, if they are valid.
    fn time(&mut self) -> Option<Plain> {
        let text = |token: &Token<'a>| match token.kind {
            TokenKind::Text => Some(&token.text[1..token.text.len() - 1]),
            _ => None,
        };
        let format = self.next().and_then(text)?;
        let offset = match self.skip(",") {
            true => Some(self.next().and_then(text)?),
            false => None,
        };
        function::now_text(0, format, offset).ok()?;
        Some(Plain::Time {
            format: format.into(),
            offset: offset.map(Into::into),
        })
    }

    fn variable(&self, name: &str) -> Option<Plain> {
        match name {
            "index" => Some(Plain::Index),
            "users" => Some(Plain::Users),
            "round" => Some(Plain::Round),
            "cycle" => Some(Plain::Cycle),
            _ => match self.symbols.parameters.get(name) {
                Some(Level::Int(number)) => Some(Plain::Number(*number)),
                Some(Level::Text(text)) => Some(Plain::Text(text.as_str().into())),
                Some(Level::Float(_) | Level::Bool(_)) => None,
                None => self.symbols.slot(name).map(Plain::Variable),
            },
        }
    }
}

/// Parses two constant numbers; returns them and the index of the parenthesis after them.
pub(super) fn constants(
    tokens: &[Token],
    mut at: usize,
    symbols: Symbols<'_>,
) -> Option<([f64; 2], usize)> {
    let mut numbers = [0.0; 2];
    for (i, number) in numbers.iter_mut().enumerate() {
        let is_negative = mark(tokens, at, "-");
        at += usize::from(is_negative);
        let token = tokens.get(at)?;
        let value = match token.kind {
            TokenKind::Number => token.text.parse().ok()?,
            TokenKind::Name => match symbols.parameters.get(token.text)? {
                Level::Int(value) => *value as f64,
                Level::Float(value) => *value,
                Level::Text(_) | Level::Bool(_) => return None,
            },
            TokenKind::Text | TokenKind::Mark => return None,
        };
        *number = if is_negative { -value } else { value };
        at += 1;
        if !mark(tokens, at, if i == 0 { "," } else { ")" }) {
            return None;
        }
        at += usize::from(i == 0);
    }
    Some((numbers, at))
}

/// Unescapes a quoted text as minijinja does; `None` unless each escape is a single letter.
fn unescaped(token: &str) -> Option<String> {
    let quote = token.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = token.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut out = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                same @ ('"' | '\'' | '\\' | '/') => same,
                _ => return None,
            },
            letter => letter,
        });
    }
    Some(out)
}
