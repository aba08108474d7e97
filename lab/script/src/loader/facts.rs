//! What the loader knows of a file: its functions, calls, and flows of values, with places in the text.

use std::collections::{HashMap, HashSet};

/// A binding of a file, by the number that the analysis of scopes gives it.
pub(super) type Symbol = usize;
/// A function, by the offset at which its node begins; the module is [`MODULE`].
pub(super) type Start = u32;
/// The module's own code, as a function.
pub(super) const MODULE: Start = u32::MAX;

/// All facts of a file.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) functions: HashMap<Start, Function>,
    pub(super) calls: Vec<Call>,
    /// Values that move: the target may hold the value.
    pub(super) flows: Vec<(Target, Value)>,
    /// Calls and constructions by which arguments move into parameters.
    pub(super) passed: Vec<(Value, Vec<Value>)>,
    /// The same of `new`.
    pub(super) constructed: Vec<(Value, Vec<Value>)>,
    /// Imported bindings: the module, and the name there.
    pub(super) imports: HashMap<Symbol, (Module, Imported)>,
    pub(super) exports: Vec<(String, Export)>,
    /// Modules whose names are all exported.
    pub(super) all_from: Vec<Module>,
    /// Bindings that may hold what isn't known: parameters, parts of unknown values.
    pub(super) opaque: HashSet<Symbol>,
    /// The constructors of classes.
    pub(super) constructors: HashMap<Symbol, Start>,
    /// Starts of statements that are expressions.
    pub(super) statements: HashSet<u32>,
    /// Chains with `?.`, from start to end.
    pub(super) chains: HashMap<u32, u32>,
    /// Statements of blocks within functions.
    pub(super) blocks: Vec<Vec<(u32, u32)>>,
    pub(super) locals: Vec<Local>,
    pub(super) uses: HashMap<Symbol, Use>,
    /// Function literals that don't outlive the call that they are passed to, and the functions around them.
    pub(super) passing: HashMap<Start, Start>,
    /// Names of `__ENV` that are mentioned.
    pub(super) variables: Vec<String>,
    /// Edits that don't depend on what waits: specifiers, `open`, hashbangs.
    pub(super) fixed: Vec<super::edit::Edit>,
    pub(super) problems: Vec<(u32, String, String)>,
}

/// A module: a file of the script, or one of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Module {
    File(usize),
    Api(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Imported {
    All,
    Name(String),
}

#[derive(Debug, Clone)]
pub(super) enum Export {
    Local(Symbol),
    Value(Value),
    From(Module, Imported),
}

/// What a value flows into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Symbol(Symbol),
    Property(String),
    /// What a function returns.
    Return(Start),
}

/// What an expression may be, as far as waiting is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
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
pub(super) enum Kind {
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
pub(super) struct Function {
    pub(super) kind: Kind,
    pub(super) is_async: bool,
    pub(super) is_generator: bool,
    /// A callback of a function of JavaScript that can't wait; its name.
    pub(super) callback_of: Option<String>,
    /// A callback that may be a promise's.
    pub(super) becomes_async: bool,
    /// Used with `new`.
    pub(super) constructs: bool,
    pub(super) uses_this: bool,
    /// Where `*` goes, or `(function*` for an arrow.
    pub(super) head: u32,
    /// The parameters with their parentheses, if there are any.
    pub(super) params: (u32, u32),
    pub(super) bare_param: bool,
    /// The place of `=>`.
    pub(super) arrow: u32,
    /// An arrow without braces.
    pub(super) expression: bool,
    pub(super) end: u32,
    pub(super) parameters: Vec<Option<Symbol>>,
}

impl Function {
    /// Whether it can be made a generator.
    pub(super) fn can_wait(&self) -> bool {
        let kind = matches!(self.kind, Kind::Function | Kind::Arrow | Kind::Method);
        let callback = self.callback_of.is_some() && !self.becomes_async;
        kind && !self.is_async && !self.is_generator && !self.constructs && !callback
    }
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) span: (u32, u32),
    pub(super) function: Start,
    /// At a place in its function where it can't wait: a default of a parameter, a field of a class.
    pub(super) fixed: bool,
    pub(super) callee: Value,
    pub(super) args: Vec<Arg>,
    /// The place of the method's name in `value.name(…)`.
    pub(super) method: Option<(String, u32)>,
    /// The name of the request, group, or check.
    pub(super) label: Option<String>,
    pub(super) groups: Vec<String>,
}

/// A `let` or `const` of a block.
#[derive(Debug, Clone)]
pub(super) struct Local {
    pub(super) function: Start,
    pub(super) symbol: Symbol,
    pub(super) name: String,
    pub(super) block: usize,
    /// The place of its statement in the block.
    pub(super) statement: usize,
    pub(super) is_const: bool,
}

/// The uses of a binding.
#[derive(Debug, Clone, Default)]
pub(super) struct Use {
    /// The functions that use it.
    pub(super) functions: Vec<Start>,
    pub(super) last: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Arg {
    pub(super) span: (u32, u32),
    pub(super) value: Value,
    /// The values of an object literal.
    pub(super) members: Option<Vec<Value>>,
}
