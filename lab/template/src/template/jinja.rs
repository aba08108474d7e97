//! Expressions and statements beyond the plain pieces, evaluated by minijinja.
//!
//! A user's scope moves into a shared cell during one evaluation, so that functions can change it (`take`) and draw
//! from it (`pick`), and moves back afterwards.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use lab_filters::Drawn;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Object, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Expression, State, UndefinedBehavior};

use super::function::{self, Call, FUNCTIONS, Kind, Outcome};
use super::profile::Profile;
use super::token;
use super::value::{self, Captured, Digits, bytes, claim, scalar, text, text_of_one};
use crate::level;
use crate::render_error::RenderError;
use crate::scope::{Seen, Slot, UserScope};
use lab_filters::text_list::JsonKind;

/// The filters of the language, by name: those of minijinja that are useful in requests, and `number`, `urlencode`,
/// `xml`, `json`, and those of `lab_filters`.
pub const FILTERS: &[&str] = &[
    "abs",
    "bool",
    "capitalize",
    "default",
    "d",
    "first",
    "float",
    "int",
    "join",
    "last",
    "length",
    "count",
    "list",
    "lower",
    "max",
    "min",
    "replace",
    "reverse",
    "round",
    "slice",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "trim",
    "unique",
    "upper",
    "number",
    "urlencode",
    "xml",
    "json",
    "md5",
    "sha1",
    "sha256",
    "sha384",
    "sha512",
    "hmac",
    "base64",
    "base64url",
    "hex",
    "unbase64",
    "unhex",
    "urldecode",
    "jwt_claims",
    "match",
    "replace_all",
    "json_path",
    "floor",
    "ceil",
];

/// The index of the key among the arguments of `jwt`.
const KEY_OF_TOKEN: usize = 1;

/// Names predefined by minijinja.
pub(super) const GLOBALS: &[&str] = &["range", "dict", "loop", "true", "false", "none"];

/// Maximum work of one rendering, in minijinja's instructions: about a second, and enough for a body with 10,000 blocks
/// of a hundred values.
const FUEL: u64 = 20_000_000;

/// The name by which functions access the user's scope: no template can write it.
const SCOPE: &str = " scope";

/// A compiled expression or a whole text with statements.
pub(super) enum Jinja {
    Expression {
        source: Arc<str>,
        compiled: Expression<'static, 'static>,
        parameters: Parameters,
        /// Whether the expression is a condition.
        condition: bool,
    },
    Text {
        source: Arc<str>,
        environment: Environment<'static>,
        parameters: Parameters,
    },
}

/// The workload's parameters as values of minijinja.
type Parameters = Arc<BTreeMap<String, Value>>;

/// The kind of output that an evaluation appended.
pub(super) enum Output {
    /// A number, boolean, or null, written as JSON writes it.
    Json,
    Text,
}

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

/// For conditions: testing whether a variable has a value is no error.
static CONDITIONS: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment
});

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        environment.set_syntax(syntax);
    }
    environment.add_filter("urlencode", |value: &Value| {
        let mut out = String::new();
        lab_filters::push_url(&text(value)?, &mut out);
        Ok::<_, Error>(out)
    });
    environment.add_filter("xml", |value: &Value| {
        let mut out = String::new();
        lab_filters::push_xml(&text(value)?, &mut out);
        Ok::<_, Error>(Value::from_safe_string(out))
    });
    environment.add_filter("json", |value: &Value| {
        let mut out = String::from("\"");
        lab_filters::push_json(&text(value)?, &mut out);
        out.push('"');
        Ok::<_, Error>(Value::from_safe_string(out))
    });
    add_number_filters(&mut environment);
    lab_filters::add(&mut environment);
    add_functions(&mut environment);
    environment
}

fn add_functions(environment: &mut Environment<'static>) {
    for function in FUNCTIONS {
        match function.kind {
            Kind::Given => {
                let secret = function.call == Call::Secret;
                environment.add_function(function.name, move |state: &State, name: String| {
                    with_scope(state, |borrowed| {
                        let mut text = String::new();
                        let given = borrowed.scope.write_given(&name, secret, &mut text);
                        given.map(|()| text).map_err(|cause| {
                            borrowed.failed = Some(cause.clone());
                            invalid(cause)
                        })
                    })
                });
            }
            Kind::Counter => {
                environment.add_function(function.name, |state: &State, name: String| {
                    with_scope(state, |borrowed| {
                        borrowed.scope.next_number(&name).map_err(|cause| {
                            borrowed.failed = Some(cause.clone());
                            invalid(cause)
                        })
                    })
                });
            }
            Kind::List => {
                environment.add_function(
                    function.name,
                    move |state: &State, list: Value| match list.as_str() {
                        Some(name) => call_list(function.call, state, name),
                        None => pick_written(state, &list).map(Value::from),
                    },
                );
            }
            Kind::Time => {
                let text = |state: &State, format: String, offset: Option<String>| {
                    with_scope(state, |borrowed| {
                        let now = borrowed.scope.now_us();
                        function::now_text(now, &format, offset.as_deref()).map_err(invalid)
                    })
                };
                environment.add_function(function.name, text);
            }
            Kind::Shares | Kind::Draw => add_draws(environment, function),
            Kind::Values | Kind::Key => add_tokens(environment, function),
            Kind::Numbers(count) => {
                environment.add_function(
                    function.name,
                    move |state: &State, arguments: Rest<Value>| {
                        call_numbers(function, count, state, &arguments)
                    },
                );
            }
        }
    }
}

/// Adds a function that draws from a distribution.
fn add_draws(environment: &mut Environment<'static>, function: &'static function::Function) {
    match function.kind {
        Kind::Shares if function.call == Call::Weighted => {
            environment.add_function(function.name, |state: &State, text: String| {
                let weights = function::weights(&text).map_err(invalid)?;
                with_scope(state, |b| {
                    Ok(function::weighted(&weights, &mut b.scope).to_owned())
                })
            });
        }
        Kind::Shares => {
            environment.add_function(function.name, |state: &State, text: String| {
                let profile = Profile::parse(&text).map_err(invalid)?;
                with_scope(state, |b| Ok(profile.draw(&mut b.scope)))
            });
        }
        Kind::Draw => {
            let draw = |state: &State, first: &Value, second: &Value| {
                let numbers = [real(first)?, real(second)?];
                let draw = function::distribution(function.call, numbers).map_err(invalid)?;
                with_scope(state, |b| {
                    Ok(match function::draw(&draw, &mut b.scope) {
                        Drawn::Whole(number) => Value::from(number),
                        Drawn::Real(number) => Value::from(number),
                    })
                })
            };
            environment.add_function(function.name, draw);
        }
        _ => {}
    }
}

/// Adds a function that signs, or returns a key.
fn add_tokens(environment: &mut Environment<'static>, function: &'static function::Function) {
    match function.kind {
        Kind::Values => {
            environment.add_function(function.name, |rest: Rest<Value>| {
                let one = |(at, value): (usize, &Value)| match value.kind() {
                    ValueKind::Bytes if at == KEY_OF_TOKEN => Ok(value.clone()),
                    _ => claim(value),
                };
                let rest: Result<Vec<Value>, Error> = rest.iter().enumerate().map(one).collect();
                lab_filters::token(&rest?)
            });
        }
        Kind::Key => {
            environment.add_function(function.name, |state: &State, name: String| {
                with_scope(state, |b| {
                    let key = b.scope.key(&name).map_err(invalid)?;
                    Ok(Value::from_bytes(key))
                })
            });
        }
        _ => {}
    }
}

/// Adds the filters that read a number: of a captured value they read the text, which minijinja's own filters would
/// reject as a list.
fn add_number_filters(environment: &mut Environment<'static>) {
    use minijinja::filters;
    environment.add_filter(
        "int",
        |state: &State, value: &Value, default: Option<Value>, base: Option<u32>, named: Kwargs| {
            filters::int(state, &text_of_one(value), default, base, named)
        },
    );
    environment.add_filter(
        "float",
        |state: &State, value: &Value, default: Option<Value>, named: Kwargs| {
            filters::float(state, &text_of_one(value), default, named)
        },
    );
    environment.add_filter("number", |text: String| {
        match lab_filters::is_json_number(&text) {
            true => Ok(Value::from_object(Digits(text))),
            false => Err(invalid(format!("`{text}` is not a number"))),
        }
    });
}

impl Jinja {
    /// Compiles one expression.
    pub(super) fn expression(source: &str) -> Result<Self, Error> {
        let compiled = ENVIRONMENT.compile_expression_owned(source.to_owned())?;
        Ok(Self::Expression {
            source: source.into(),
            compiled,
            parameters: Parameters::default(),
            condition: false,
        })
    }

    /// Compiles a condition.
    pub(super) fn condition(source: &str) -> Result<Self, Error> {
        let compiled = CONDITIONS.compile_expression_owned(source.to_owned())?;
        Ok(Self::Expression {
            source: source.into(),
            compiled,
            parameters: Parameters::default(),
            condition: true,
        })
    }

    fn is_condition(&self) -> bool {
        matches!(
            self,
            Self::Expression {
                condition: true,
                ..
            }
        )
    }

    /// Compiles a text with statements.
    pub(super) fn text(source: &str) -> Result<Self, Error> {
        let mut environment = ENVIRONMENT.clone();
        environment.add_template_owned("", source.to_owned())?;
        Ok(Self::Text {
            source: source.into(),
            environment,
            parameters: Parameters::default(),
        })
    }

    /// Sets the parameters that it may name, and its source as written.
    pub(super) fn know(&mut self, given: &level::Parameters, written: &str) {
        let (Self::Expression {
            parameters, source, ..
        }
        | Self::Text {
            parameters, source, ..
        }) = self;
        *parameters = Arc::new(value::constants(given));
        *source = written.into();
    }

    /// Compiles an XML text with statements: substituted values are escaped.
    pub(super) fn xml(source: &str) -> Result<Self, Error> {
        let mut environment = ENVIRONMENT.clone();
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
        environment.add_template_owned("", source.to_owned())?;
        Ok(Self::Text {
            source: source.into(),
            environment,
            parameters: Parameters::default(),
        })
    }

    /// Returns the names that the source uses and doesn't set itself.
    pub(super) fn undeclared(&self) -> Vec<String> {
        let names = match self {
            Self::Expression { compiled, .. } => compiled.undeclared_variables(false),
            Self::Text { environment, .. } => environment
                .get_template("")
                .map(|template| template.undeclared_variables(false))
                .unwrap_or_default(),
        };
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort();
        names
    }

    /// Appends the value.
    pub(super) fn render(
        &self,
        scope: &mut UserScope,
        out: &mut String,
    ) -> Result<Output, RenderError> {
        let cell = Arc::new(ScopeCell(Mutex::new(Borrowed {
            scope: std::mem::take(scope),
            empty: None,
            failed: None,
            parameters: self.parameters(),
            condition: self.is_condition(),
            source: match self {
                Self::Expression { source, .. } | Self::Text { source, .. } => Arc::clone(source),
            },
            is_text: self.is_text(),
        })));
        let result = self.evaluate(Value::from_dyn_object(Arc::clone(&cell)), out);
        let mut borrowed = cell.0.lock().unwrap_or_else(PoisonError::into_inner);
        *scope = std::mem::take(&mut borrowed.scope);
        if self.is_condition() && result.is_err() && borrowed.empty.is_some() {
            // A condition that needs a missing value doesn't hold.
            out.push_str("false");
            return Ok(Output::Json);
        }
        result.map_err(|error| match (borrowed.failed.take(), borrowed.empty) {
            (None, Some(slot)) => scope.missing(slot),
            (failed, _) => RenderError::Failed {
                template: self.source().trim().to_owned(),
                cause: failed.unwrap_or_else(|| cause(&error)),
            },
        })
    }

    /// Appends the value in a separate context, without a user.
    pub(super) fn render_with(&self, context: Value, out: &mut String) -> Result<(), RenderError> {
        let failed = |error: Error| RenderError::Failed {
            template: self.source().trim().to_owned(),
            cause: cause(&error),
        };
        self.evaluate(context, out).map(drop).map_err(failed)
    }

    fn evaluate(&self, context: Value, out: &mut String) -> Result<Output, Error> {
        match self {
            Self::Expression {
                compiled,
                condition,
                ..
            } => {
                let value = compiled.eval(context)?;
                match condition {
                    true => push_value(&Value::from(value.is_true()), out),
                    false => push_value(&value, out),
                }
            }
            Self::Text { environment, .. } => {
                out.push_str(&environment.get_template("")?.render(context)?);
                Ok(Output::Text)
            }
        }
    }

    fn parameters(&self) -> Parameters {
        let (Self::Expression { parameters, .. } | Self::Text { parameters, .. }) = self;
        Arc::clone(parameters)
    }

    /// Returns true for a whole text with statements, false for one expression.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Text { .. })
    }

    /// Returns the source as written.
    pub(super) fn source(&self) -> &str {
        match self {
            Self::Expression { source, .. } | Self::Text { source, .. } => source,
        }
    }
}

/// Returns minijinja's message, without its name of the template.
pub(super) fn cause(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

fn push_value(value: &Value, out: &mut String) -> Result<Output, Error> {
    use std::fmt::Write as _;
    if let Some(Digits(text)) = value.downcast_object_ref::<Digits>() {
        out.push_str(text);
        return Ok(Output::Json);
    }
    if let Some(captured) = value.downcast_object_ref::<Captured>()
        && captured.kind == JsonKind::Json
    {
        let _ = write!(out, "{value}");
        return Ok(Output::Json);
    }
    match value.kind() {
        ValueKind::Undefined => return Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::None => {
            out.push_str("null");
            return Ok(Output::Json);
        }
        ValueKind::Bool => {
            out.push_str(if value.is_true() { "true" } else { "false" });
            return Ok(Output::Json);
        }
        ValueKind::Number => {
            let _ = write!(out, "{value}");
            // JSON has no infinity; it stays a text.
            let finite = f64::try_from(value.clone()).is_ok_and(f64::is_finite);
            return Ok(if finite { Output::Json } else { Output::Text });
        }
        _ => {}
    }
    match value.as_str() {
        Some(text) => out.push_str(text),
        None if value.kind() == ValueKind::Bytes => return Err(bytes()),
        None => {
            let _ = write!(out, "{value}");
        }
    }
    Ok(Output::Text)
}

/// A user's scope during an evaluation, the first variable found without a value, and the error message of a function
/// of this crate.
struct Borrowed {
    scope: UserScope,
    empty: Option<Slot>,
    failed: Option<String>,
    parameters: Parameters,
    condition: bool,
    source: Arc<str>,
    is_text: bool,
}

impl Borrowed {
    /// Handles a variable without a value. It doesn't stand for a function with its name, unless that is called.
    fn nothing(&mut self, slot: Slot) -> Option<Value> {
        self.empty.get_or_insert(slot);
        let name = self.scope.name(slot);
        function::find(name)?;
        let words = token::words(&self.source, self.is_text);
        let calls = |at: usize| words[at].text == name && token::mark(&words, at + 1, "(");
        let is_called = (0..words.len()).any(calls);
        (!is_called).then_some(Value::UNDEFINED)
    }

    /// Returns a variable in a condition: numbers and booleans are parsed, and lists may be empty.
    fn seen(&mut self, slot: Slot) -> Option<Value> {
        match self.scope.seen(slot) {
            Seen::One(text) => Some(scalar(&text)),
            Seen::List(texts) => Some(texts.iter().map(|text| scalar(text)).collect()),
            Seen::Nothing => self.nothing(slot),
        }
    }
}

struct ScopeCell(Mutex<Borrowed>);

impl ScopeCell {
    fn with<T>(&self, act: impl FnOnce(&mut Borrowed) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for ScopeCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("user")
    }
}

impl Object for ScopeCell {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            SCOPE => Some(Value::from_dyn_object(Arc::clone(self))),
            "index" => Some(self.with(|b| Value::from(b.scope.index()))),
            "users" => Some(self.with(|b| Value::from(b.scope.users()))),
            "round" => Some(self.with(|b| Value::from(b.scope.round()))),
            "cycle" => Some(self.with(|b| Value::from(b.scope.cycle()))),
            name => self.with(|borrowed| {
                if let Some(value) = borrowed.parameters.get(name) {
                    return Some(value.clone());
                }
                let slot = borrowed.scope.slot(name)?;
                if borrowed.condition {
                    return borrowed.seen(slot);
                }
                let is_single = borrowed.scope.is_single(slot);
                let kind = borrowed.scope.kind(slot);
                match borrowed.scope.entries(slot) {
                    Some((mut texts, false)) => texts.pop().map(Value::from),
                    Some((texts, true)) if !texts.is_empty() => {
                        Some(Value::from_object(Captured {
                            texts,
                            is_single,
                            kind,
                        }))
                    }
                    _ => borrowed.nothing(slot),
                }
            }),
        }
    }
}

fn with_scope<T>(
    state: &State,
    act: impl FnOnce(&mut Borrowed) -> Result<T, Error>,
) -> Result<T, Error> {
    let value = state.lookup(SCOPE);
    match value
        .as_ref()
        .and_then(Value::downcast_object_ref::<ScopeCell>)
    {
        Some(cell) => cell.with(act),
        None => Err(invalid("there is no user here".into())),
    }
}

fn call_list(call: Call, state: &State, name: &str) -> Result<Value, Error> {
    with_scope(state, |borrowed| {
        let Some(slot) = borrowed.scope.slot(name) else {
            return Err(invalid(format!("there is no list `{name}`")));
        };
        let mut text = String::new();
        let found = match call {
            Call::Take => borrowed.scope.take(slot, &mut text),
            _ => borrowed.scope.pick(slot, &mut text),
        };
        match found {
            // The same as a variable with this value.
            Some(kind @ JsonKind::Json) if !borrowed.condition => {
                return Ok(Value::from_object(Captured {
                    texts: vec![text],
                    is_single: true,
                    kind,
                }));
            }
            Some(_) => return Ok(Value::from(text)),
            None => {}
        }
        borrowed.empty = Some(slot);
        Err(invalid(format!("`{name}` has no entry left")))
    })
}

/// Returns a random entry of a list literal.
fn pick_written(state: &State, list: &Value) -> Result<String, Error> {
    let entries: Vec<Value> = list.try_iter()?.collect();
    with_scope(state, |borrowed| {
        let count = entries.len() as u64;
        if count == 0 {
            let cause = "the list is empty".to_owned();
            borrowed.failed = Some(cause.clone());
            return Err(invalid(cause));
        }
        let at = borrowed.scope.choice().below(count) as usize;
        Ok(entries[at].to_string())
    })
}

fn call_numbers(
    function: &function::Function,
    count: usize,
    state: &State,
    arguments: &[Value],
) -> Result<Value, Error> {
    if arguments.len() != count {
        return Err(invalid(function.usage.into()));
    }
    // The lookup has already recorded the variable without a value.
    if arguments.iter().any(Value::is_undefined) {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    with_scope(state, |borrowed| {
        let mut text = String::new();
        let numbers: Result<Vec<i64>, String> = arguments.iter().map(whole_number).collect();
        let called = numbers.and_then(|numbers| {
            function::call_numbers(function.call, &numbers, &mut borrowed.scope, &mut text)
        });
        match called {
            Ok(Outcome::Number(number)) => Ok(Value::from(number)),
            Ok(Outcome::Text | Outcome::Json) => Ok(Value::from(text)),
            Err(cause) => {
                borrowed.failed = Some(cause.clone());
                Err(invalid(cause))
            }
        }
    })
}

/// Converts a number, or a text that is one: captures are text, and the plain pieces parse it likewise.
fn whole_number(argument: &Value) -> Result<i64, String> {
    i64::try_from(argument.clone()).or_else(|_| function::whole_number(&argument.to_string()))
}

/// Converts a number, or a text that is one.
fn real(argument: &Value) -> Result<f64, Error> {
    if argument.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let number = f64::try_from(argument.clone()).ok();
    let number = number.or_else(|| argument.to_string().trim().parse().ok());
    number.ok_or_else(|| invalid(format!("`{argument}` is not a number")))
}

fn invalid(detail: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}
