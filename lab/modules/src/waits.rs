//! Which functions may wait: a fixpoint over names of bindings and properties, and over functions that are passed.

use std::collections::{HashMap, HashSet};

use crate::facts::{
    Call, Export, Facts, Imported, Kind, MODULE, Module, Start, Symbol, Target, Value,
};
use crate::literals::WAITERS;

/// What a name stands for, through imports and exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    Api(String, Imported),
    Local(usize, Symbol),
    Value(usize, Value),
    Namespace(usize),
    Unknown,
}

/// The deepest chain of exports that is followed.
const DEPTH: usize = 32;

pub(crate) struct Waits<'f> {
    pub(crate) facts: &'f [Facts],
    functions: HashSet<(usize, Start)>,
    symbols: HashSet<(usize, Symbol)>,
    opaque: HashSet<(usize, Symbol)>,
    properties: HashSet<String>,
    returns: HashSet<(usize, Start)>,
    /// The functions that a binding or a property may hold.
    held: HashMap<(usize, Symbol), Vec<(usize, Start)>>,
    methods: HashMap<String, Vec<(usize, Start)>>,
}

/// What a name of a file stands for.
pub(crate) fn named(facts: &[Facts], file: usize, symbol: Symbol) -> Named {
    match facts[file].imports.get(&symbol) {
        Some((module, imported)) => imported_name(facts, module, imported, DEPTH),
        None => Named::Local(file, symbol),
    }
}

fn imported_name(facts: &[Facts], module: &Module, imported: &Imported, depth: usize) -> Named {
    let number = match module {
        Module::Api(name) => return Named::Api(name.clone(), imported.clone()),
        Module::File(number) => *number,
    };
    match imported {
        Imported::All => Named::Namespace(number),
        Imported::Name(name) => exported(facts, number, name, depth),
    }
}

/// What an export of a file stands for.
pub(crate) fn exported(facts: &[Facts], file: usize, name: &str, depth: usize) -> Named {
    if depth == 0 {
        return Named::Unknown;
    }
    let own = facts[file].exports.iter().find(|(own, _)| own == name);
    match own.map(|(_, export)| export) {
        Some(Export::Local(symbol)) => match facts[file].imports.get(symbol) {
            Some((module, imported)) => imported_name(facts, module, imported, depth - 1),
            None => Named::Local(file, *symbol),
        },
        Some(Export::Value(value)) => Named::Value(file, value.clone()),
        Some(Export::From(module, imported)) => imported_name(facts, module, imported, depth - 1),
        None => {
            let all = facts[file].all_from.iter().map(|module| {
                let imported = Imported::Name(name.to_owned());
                imported_name(facts, module, &imported, depth - 1)
            });
            all.into_iter()
                .find(|found| *found != Named::Unknown)
                .unwrap_or(Named::Unknown)
        }
    }
}

/// Whether a function of the API may return a wait.
pub(crate) fn api_waits(module: &str, name: &str) -> bool {
    match module {
        "k6" => matches!(name, "sleep" | "group" | "check"),
        "k6/http" => SENDERS.contains(&name),
        "k6/metrics" | "k6/data" | "k6/encoding" | "k6/crypto" | "k6/execution" | "k6/html"
        | "k6/timers" | "k6/secrets" | "k6/net/grpc" | "jslib/k6-summary" | "jslib/url"
        | "jslib/formdata" | "jslib/papaparse" | "jslib/k6-testing" | "jslib/k6-reporter" => false,
        "jslib/k6-utils" => name == "check",
        "plimsoll" => matches!(name, "step" | "transaction" | "wait"),
        _ => true,
    }
}

/// The names of methods of the API's objects that may wait.
fn methods_that_wait(facts: &[Facts]) -> HashSet<String> {
    let mut names: HashSet<String> = ["submitForm", "clickLink", "each"]
        .map(str::to_owned)
        .into();
    let sessions = |facts: &Facts| {
        let mut modules = facts.imports.values();
        modules.any(|(module, _)| matches!(module, Module::Api(name) if name == "jslib/httpx"))
    };
    if facts.iter().any(sessions) {
        names.extend(SENDERS.map(str::to_owned));
        names.extend(["delete", "trace"].map(str::to_owned));
    }
    names
}

/// The functions of `k6/http` that send requests.
const SENDERS: [&str; 9] = [
    "get", "head", "post", "put", "patch", "del", "options", "request", "batch",
];

impl<'f> Waits<'f> {
    pub(crate) fn new(facts: &'f [Facts]) -> Waits<'f> {
        let mut waits = Waits {
            facts,
            functions: HashSet::new(),
            symbols: HashSet::new(),
            opaque: HashSet::new(),
            properties: methods_that_wait(facts),
            returns: HashSet::new(),
            held: HashMap::new(),
            methods: HashMap::new(),
        };
        waits.holders();
        while waits.pass() {}
        waits
    }

    /// Whether a function is changed so that it can wait.
    pub(crate) fn waits(&self, file: usize, function: Start) -> bool {
        self.functions.contains(&(file, function))
    }

    fn holders(&mut self) {
        for (file, facts) in self.facts.iter().enumerate() {
            self.opaque
                .extend(facts.opaque.iter().map(|symbol| (file, *symbol)));
            for (target, value) in &facts.flows {
                for start in literals(value) {
                    match target {
                        Target::Symbol(symbol) => {
                            self.held
                                .entry((file, *symbol))
                                .or_default()
                                .push((file, start));
                        }
                        Target::Property(name) => {
                            self.methods
                                .entry(name.clone())
                                .or_default()
                                .push((file, start));
                        }
                        Target::Return(_) => {}
                    }
                }
            }
            for (symbol, start) in &facts.constructors {
                self.held
                    .entry((file, *symbol))
                    .or_default()
                    .push((file, *start));
            }
        }
    }

    /// One pass over all calls and flows; whether it found anything new.
    fn pass(&mut self) -> bool {
        let before = self.found();
        for (file, facts) in self.facts.iter().enumerate() {
            for call in &facts.calls {
                let function = (file, call.function);
                if call.fixed || self.functions.contains(&function) {
                    continue;
                }
                let can = facts
                    .functions
                    .get(&call.function)
                    .is_some_and(|f| f.can_wait());
                if can && self.call_waits(file, call) {
                    self.functions.insert(function);
                }
            }
            for (target, value) in &facts.flows {
                self.flow(file, target, value);
            }
            for (callee, args) in facts.passed.iter().chain(&facts.constructed) {
                self.pass_arguments(file, callee, args);
            }
        }
        self.found() > before
    }

    fn found(&self) -> usize {
        self.functions.len()
            + self.symbols.len()
            + self.opaque.len()
            + self.properties.len()
            + self.returns.len()
    }

    fn flow(&mut self, file: usize, target: &Target, value: &Value) {
        match target {
            Target::Symbol(symbol) => {
                if self.may(file, value) {
                    self.symbols.insert((file, *symbol));
                } else if self.unknown(file, value) {
                    self.opaque.insert((file, *symbol));
                }
            }
            Target::Property(name) => {
                if !self.properties.contains(name) && self.may(file, value) {
                    self.properties.insert(name.clone());
                }
            }
            Target::Return(start) => {
                if self.may(file, value) {
                    self.returns.insert((file, *start));
                }
            }
        }
    }

    fn pass_arguments(&mut self, file: usize, callee: &Value, args: &[Value]) {
        if args.iter().all(|arg| *arg == Value::Plain) {
            return;
        }
        for (other, start) in self.callees(file, callee) {
            let Some(function) = self.facts[other].functions.get(&start) else {
                continue;
            };
            for (parameter, arg) in function.parameters.iter().zip(args) {
                if let Some(symbol) = parameter
                    && self.may(file, arg)
                {
                    self.symbols.insert((other, *symbol));
                }
            }
        }
        // A module of the API that is passed on, such as `new Client(http)`.
        for arg in args {
            self.spread_api(file, arg);
        }
    }

    /// The methods of a module of the API that is a value may be called under their names anywhere.
    fn spread_api(&mut self, file: usize, value: &Value) {
        if self.is_http(file, value) {
            self.properties.extend(SENDERS.map(str::to_owned));
        }
    }

    fn is_http(&self, file: usize, value: &Value) -> bool {
        let Value::Symbol(symbol) = value else {
            return false;
        };
        match named(self.facts, file, *symbol) {
            Named::Api(module, imported) => {
                module == "k6/http"
                    && (imported == Imported::All
                        || imported == Imported::Name("default".to_owned()))
            }
            _ => false,
        }
    }

    /// The functions that a callee may be, as far as they are known.
    fn callees(&self, file: usize, callee: &Value) -> Vec<(usize, Start)> {
        match callee {
            Value::Function(start) => vec![(file, *start)],
            Value::Symbol(symbol) => match named(self.facts, file, *symbol) {
                Named::Local(file, symbol) => {
                    self.held.get(&(file, symbol)).cloned().unwrap_or_default()
                }
                Named::Value(file, value) => literals(&value).map(|start| (file, start)).collect(),
                _ => Vec::new(),
            },
            Value::Member(object, name) => {
                if WAITERS.contains(&name.as_str()) {
                    return Vec::new();
                }
                if let Value::Symbol(symbol) = &**object
                    && let Named::Namespace(file) = named(self.facts, file, *symbol)
                {
                    return match exported(self.facts, file, name, DEPTH) {
                        Named::Local(file, symbol) => {
                            self.held.get(&(file, symbol)).cloned().unwrap_or_default()
                        }
                        _ => Vec::new(),
                    };
                }
                self.methods.get(name).cloned().unwrap_or_default()
            }
            Value::Any(all) => all
                .iter()
                .flat_map(|value| self.callees(file, value))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a value may be a function that waits.
    pub(crate) fn may(&self, file: usize, value: &Value) -> bool {
        match value {
            Value::Function(start) => self.functions.contains(&(file, *start)),
            Value::Symbol(symbol) => self.named_may(&named(self.facts, file, *symbol)),
            Value::Member(object, name) => match self.member(file, object, name) {
                Some(named) => self.named_may(&named),
                None => self.properties.contains(name),
            },
            Value::Any(all) => all.iter().any(|value| self.may(file, value)),
            Value::Call(callee) => {
                let callees = self.callees(file, callee);
                callees
                    .iter()
                    .any(|function| self.returns.contains(function))
            }
            Value::Global(_) | Value::Plain | Value::Other => false,
        }
    }

    fn named_may(&self, named: &Named) -> bool {
        match named {
            Named::Api(module, Imported::Name(name)) => api_waits(module, name),
            Named::Local(file, symbol) => self.symbols.contains(&(*file, *symbol)),
            Named::Value(file, value) => self.may(*file, value),
            Named::Api(_, Imported::All) | Named::Namespace(_) | Named::Unknown => false,
        }
    }

    /// What a member of an imported module stands for.
    fn member(&self, file: usize, object: &Value, name: &str) -> Option<Named> {
        let Value::Symbol(symbol) = object else {
            return None;
        };
        match named(self.facts, file, *symbol) {
            Named::Api(module, imported) => {
                let whole =
                    imported == Imported::All || imported == Imported::Name("default".to_owned());
                whole.then(|| Named::Api(module, Imported::Name(name.to_owned())))
            }
            Named::Namespace(file) => Some(exported(self.facts, file, name, DEPTH)),
            _ => None,
        }
    }

    /// Whether nothing is known of a value.
    fn unknown(&self, file: usize, value: &Value) -> bool {
        match value {
            Value::Symbol(symbol) => match named(self.facts, file, *symbol) {
                Named::Local(file, symbol) => self.opaque.contains(&(file, symbol)),
                Named::Value(file, value) => self.unknown(file, &value),
                Named::Unknown => true,
                Named::Api(..) | Named::Namespace(_) => false,
            },
            Value::Any(all) => all.iter().any(|value| self.unknown(file, value)),
            Value::Call(_) | Value::Other => true,
            Value::Member(..) | Value::Global(_) | Value::Function(_) | Value::Plain => false,
        }
    }

    /// The function of the API that is called.
    pub(crate) fn api(&self, file: usize, callee: &Value) -> Option<(String, String)> {
        let named = match callee {
            Value::Symbol(symbol) => named(self.facts, file, *symbol),
            Value::Member(object, name) => self.member(file, object, name)?,
            _ => return None,
        };
        match named {
            Named::Api(module, Imported::Name(name)) => Some((module, name)),
            _ => None,
        }
    }

    /// Whether the callback of a method of arrays may wait, so that its form of the prelude is called.
    pub(crate) fn waits_for_callback(&self, file: usize, call: &Call) -> bool {
        let (Value::Member(object, name), Some((_, _))) = (&call.callee, &call.method) else {
            return false;
        };
        let from = **object == Value::Global("Array".to_owned());
        if !WAITERS.contains(&name.as_str()) || from != (name == "from") {
            return false;
        }
        if self.api(file, &call.callee).is_some() {
            return false;
        }
        let callback = call.args.get(usize::from(from)).map(|arg| &arg.value);
        callback.is_some_and(|value| self.may(file, value))
    }

    /// Whether a call may return a wait.
    pub(crate) fn call_waits(&self, file: usize, call: &Call) -> bool {
        if self.waits_for_callback(file, call) {
            return true;
        }
        if let Some((module, name)) = self.api(file, &call.callee) {
            return api_waits(&module, &name)
                && !(name == "check" && module == "k6" && self.plain_check(file, call));
        }
        self.callee_waits(file, &call.callee)
    }

    /// Whether no test of a check waits.
    fn plain_check(&self, file: usize, call: &Call) -> bool {
        let members = call.args.get(1).and_then(|arg| arg.members.as_ref());
        members.is_some_and(|members| {
            members
                .iter()
                .all(|value| !self.may(file, value) && !self.unknown(file, value))
        })
    }

    fn callee_waits(&self, file: usize, callee: &Value) -> bool {
        match callee {
            Value::Member(object, name) if matches!(name.as_str(), "call" | "apply") => {
                self.callee_waits(file, object) && !matches!(**object, Value::Global(_))
            }
            Value::Member(object, name) => match self.member(file, object, name) {
                Some(named) => self.named_may(&named),
                None if matches!(**object, Value::Global(_)) => false,
                None => self.properties.contains(name),
            },
            value => self.may(file, value) || self.unknown(file, value),
        }
    }
}

/// The function literals of a value.
fn literals(value: &Value) -> impl Iterator<Item = Start> + '_ {
    let all: Vec<Start> = match value {
        Value::Function(start) => vec![*start],
        Value::Any(all) => all.iter().flat_map(literals).collect(),
        _ => Vec::new(),
    };
    all.into_iter()
}

/// Marks the functions that are used with `new`: these can't be generators.
pub(crate) fn mark_constructors(all: &mut [Facts]) {
    let mut marked = Vec::new();
    for (file, facts) in all.iter().enumerate() {
        for (callee, _) in &facts.constructed {
            let Value::Symbol(symbol) = callee else {
                continue;
            };
            if let Named::Local(file, symbol) = named(all, file, *symbol) {
                let held = all[file]
                    .flows
                    .iter()
                    .filter_map(|(target, value)| match value {
                        Value::Function(start) if *target == Target::Symbol(symbol) => Some(*start),
                        _ => None,
                    });
                marked.extend(held.map(|start| (file, start)));
            }
        }
    }
    for (file, start) in marked {
        if let Some(function) = all[file].functions.get_mut(&start)
            && function.kind == Kind::Function
            && start != MODULE
        {
            function.constructs = true;
        }
    }
}
