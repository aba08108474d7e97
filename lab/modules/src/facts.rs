//! What the loader knows of a file: its functions, calls, and flows of values, with places in the text.

use std::collections::{HashMap, HashSet};

use crate::source::Mentions;

/// A binding of a file, by the number that the analysis of scopes gives it.
pub(crate) type Symbol = usize;
/// A function, by the offset at which its node begins; the module is [`MODULE`].
pub(crate) type Start = u32;
/// The module's own code, as a function.
pub(crate) const MODULE: Start = u32::MAX;

/// All facts of a file.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) functions: HashMap<Start, Function>,
    pub(crate) calls: Vec<Call>,
    /// Values that move: the target may hold the value.
    pub(crate) flows: Vec<(Target, Value)>,
    /// Calls and constructions by which arguments move into parameters.
    pub(crate) passed: Vec<(Value, Vec<Value>)>,
    /// The same of `new`.
    pub(crate) constructed: Vec<(Value, Vec<Value>)>,
    /// Imported bindings: the module, and the name there.
    pub(crate) imports: HashMap<Symbol, (Module, Imported)>,
    pub(crate) exports: Vec<(String, Export)>,
    /// Modules whose names are all exported.
    pub(crate) all_from: Vec<Module>,
    /// Bindings that may hold what isn't known: parameters, parts of unknown values.
    pub(crate) opaque: HashSet<Symbol>,
    /// The constructors of classes.
    pub(crate) constructors: HashMap<Symbol, Start>,
    /// Starts of statements that are expressions.
    pub(crate) statements: HashSet<u32>,
    /// Chains with `?.`, from start to end.
    pub(crate) chains: HashMap<u32, u32>,
    /// Statements of blocks within functions.
    pub(crate) blocks: Vec<Vec<(u32, u32)>>,
    pub(crate) locals: Vec<Local>,
    pub(crate) uses: HashMap<Symbol, Use>,
    /// Function literals that don't outlive the call that they are passed to, and the functions around them.
    pub(crate) passing: HashMap<Start, Start>,
    /// Names of `__ENV` that are mentioned.
    pub(crate) variables: Vec<String>,
    /// The texts of `tags: { name: '…' }`.
    pub(crate) tag_names: Vec<String>,
    /// The files that `open('…')` names.
    pub(crate) opened: Vec<String>,
    pub(crate) mentions: Mentions,
    /// Edits that don't depend on what waits: specifiers, `open`, hashbangs.
    pub(crate) fixed: Vec<super::edit::Edit>,
    pub(crate) problems: Vec<(u32, String, String)>,
}

/// A module: a file of the script, or one of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Module {
    File(usize),
    Api(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Imported {
    All,
    Name(String),
}

#[derive(Debug, Clone)]
pub(crate) enum Export {
    Local(Symbol),
    Value(Value),
    From(Module, Imported),
}

/// What a value flows into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Symbol(Symbol),
    Property(String),
    /// What a function returns.
    Return(Start),
}

/// What an expression may be, as far as waiting is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Symbol(Symbol),
    Global(String),
    Member(Box<Value>, String),
    Function(Start),
    Call(Box<Value>),
    Any(Vec<Value>),
    /// No function, and nothing that holds unknown functions.
    Plain,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `function name() {}` or an expression: `*` goes behind `function`.
    Function,
    Arrow,
    Method,
    Getter,
    Setter,
    Constructor,
    Module,
}

#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) kind: Kind,
    pub(crate) is_async: bool,
    pub(crate) is_generator: bool,
    /// A callback of a function of JavaScript that can't wait; its name.
    pub(crate) callback_of: Option<String>,
    /// A callback that may be a promise's.
    pub(crate) becomes_async: bool,
    /// Used with `new`.
    pub(crate) constructs: bool,
    pub(crate) uses_this: bool,
    /// Where `*` goes, or `(function*` for an arrow.
    pub(crate) head: u32,
    /// The parameters with their parentheses, if there are any.
    pub(crate) params: (u32, u32),
    pub(crate) bare_param: bool,
    /// The place of `=>`.
    pub(crate) arrow: u32,
    /// An arrow without braces.
    pub(crate) expression: bool,
    pub(crate) end: u32,
    pub(crate) parameters: Vec<Option<Symbol>>,
}

impl Function {
    /// A function without parameters, which begins at 0.
    pub(crate) fn new(kind: Kind, end: u32) -> Function {
        Function {
            kind,
            is_async: false,
            is_generator: false,
            callback_of: None,
            becomes_async: false,
            constructs: false,
            uses_this: false,
            head: 0,
            params: (0, 0),
            bare_param: false,
            arrow: 0,
            expression: false,
            end,
            parameters: Vec::new(),
        }
    }

    /// Whether it can be made a generator.
    pub(crate) fn can_wait(&self) -> bool {
        let kind = matches!(self.kind, Kind::Function | Kind::Arrow | Kind::Method);
        let callback = self.callback_of.is_some() && !self.becomes_async;
        kind && !self.is_async && !self.is_generator && !self.constructs && !callback
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) span: (u32, u32),
    pub(crate) function: Start,
    /// At a place in its function where it can't wait: a default of a parameter, a field of a class.
    pub(crate) fixed: bool,
    pub(crate) callee: Value,
    pub(crate) args: Vec<Arg>,
    /// The place of the method's name in `value.name(…)`.
    pub(crate) method: Option<(String, u32)>,
    /// The name of the request, group, or check.
    pub(crate) label: Option<String>,
    /// The name of the request by its tag.
    pub(crate) tag_name: Option<String>,
    pub(crate) groups: Vec<String>,
}

/// A `let` or `const` of a block.
#[derive(Debug, Clone)]
pub(crate) struct Local {
    pub(crate) function: Start,
    pub(crate) symbol: Symbol,
    pub(crate) name: String,
    pub(crate) block: usize,
    /// The place of its statement in the block.
    pub(crate) statement: usize,
    pub(crate) is_const: bool,
}

/// The uses of a binding.
#[derive(Debug, Clone, Default)]
pub(crate) struct Use {
    /// The functions that use it.
    pub(crate) functions: Vec<Start>,
    pub(crate) last: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct Arg {
    pub(crate) span: (u32, u32),
    pub(crate) value: Value,
    /// The values of an object literal.
    pub(crate) members: Option<Vec<Value>>,
}
