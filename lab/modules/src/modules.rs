//! The files of a script: which there are, and what they import and export.

use std::collections::HashMap;

use oxc_allocator::Allocator;
use oxc_ast::ast::*;
use oxc_parser::Parser;
use oxc_semantic::{Scoping, SemanticBuilder};
use oxc_span::{GetSpan as _, SourceType};
use serde_json::value::RawValue;

use crate::deep::{NESTING, deep, too_deep};
use crate::edit::{Edit, Lines, applied, place_of};
use crate::facts::{Export, Facts, Imported, Module, Symbol, Value};
use crate::paths::joined;
use crate::source::{Api, Files, LoadError, Source};
use crate::values;
use crate::{common, typescript};

/// The binding of a default export without a name. It is as long as that `const` replaces `export default`.
pub(crate) const DEFAULT: &str = "$$deft";

/// The most files of a script.
const FILES: usize = 1_000;
/// The longest file that is read as a module, in bytes.
const LONGEST: usize = 16 << 20;

/// A file of the script as JavaScript.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    /// The JavaScript; the source itself unless it is TypeScript or JSON.
    pub(crate) text: String,
    /// The line in the source of each line of the text, if they differ.
    pub(crate) lines: Option<Vec<u32>>,
    /// The modules of the specifiers.
    pub(crate) specifiers: HashMap<String, Module>,
}

impl File {
    /// The line in the source of a line of the text.
    pub(crate) fn original(&self, line: u32) -> u32 {
        let lines = self.lines.as_ref();
        let found = lines.and_then(|lines| lines.get((line as usize).saturating_sub(1)));
        found.copied().unwrap_or(line)
    }
}

/// All files of a script, the entry first.
#[derive(Debug, Default)]
pub(crate) struct FileSet {
    pub(crate) files: Vec<File>,
    pub(crate) sources: Vec<Source>,
}

/// Reads the entry and all that it imports.
pub(crate) fn read(
    entry: &str,
    files: &dyn Files,
    api: &dyn Api,
) -> Result<FileSet, Vec<LoadError>> {
    let mut all = FileSet::default();
    let mut numbers = HashMap::new();
    let mut problems = Vec::new();
    let entry = joined("", entry);
    match file(&entry, files, &mut all) {
        Ok(()) => numbers.insert(entry, 0),
        Err(problem) => return Err(vec![*problem]),
    };
    let mut at = 0;
    while at < all.files.len() {
        for (specifier, place) in deep(|| specifiers(&all.files[at])) {
            let name = all.files[at].name.clone();
            match module(&name, &specifier, (files, api), &mut all, &mut numbers) {
                Ok(module) => {
                    all.files[at].specifiers.insert(specifier, module);
                }
                Err((message, help)) => problems.push(error(&all.files[at], place, message, help)),
            }
        }
        at += 1;
    }
    if problems.is_empty() {
        Ok(all)
    } else {
        Err(problems)
    }
}

/// An error at an offset of a file.
pub(crate) fn error(file: &File, at: u32, message: String, help: String) -> LoadError {
    let (line, column) = Lines::new(&file.text).place(at);
    let column = if file.lines.is_none() { column } else { 1 };
    LoadError {
        file: file.name.clone(),
        line: file.original(line),
        column,
        message,
        help,
    }
}

fn file(name: &str, files: &dyn Files, all: &mut FileSet) -> Result<(), Box<LoadError>> {
    let failed = |message: String| {
        Box::new(LoadError {
            file: name.to_owned(),
            line: 1,
            column: 1,
            message,
            help: String::new(),
        })
    };
    let bytes = files.read(name).map_err(&failed)?;
    if bytes.len() > LONGEST {
        return Err(failed(format!(
            "the file is longer than {} MiB",
            LONGEST >> 20
        )));
    }
    let source =
        std::str::from_utf8(&bytes).map_err(|_| failed("the file is not UTF-8 text".to_owned()))?;
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    if let Some(at) = too_deep(source) {
        let (line, column) = Lines::new(source).place(at);
        let message = format!("brackets are nested more than {NESTING} deep");
        return Err(Box::new(LoadError {
            line,
            column,
            ..*failed(message)
        }));
    }
    let (text, lines) = if name.ends_with(".json") {
        let _: &RawValue = serde_json::from_str(source)
            .map_err(|problem| failed(format!("the file is not JSON: {problem}")))?;
        (format!("export default {source}"), None)
    } else if name.ends_with(".ts") || name.ends_with(".mts") {
        let made = deep(|| typescript::javascript(name, source))?;
        (made.text, Some(made.lines))
    } else {
        (common(name, source)?, None)
    };
    all.sources.push(Source {
        name: name.to_owned(),
        text: bytes,
    });
    all.files.push(File {
        name: name.to_owned(),
        text: deep(|| named_default(text)),
        lines,
        specifiers: HashMap::new(),
    });
    Ok(())
}

/// A module whose default export is a binding if it is a value or a class: as all bindings, it is then shared and
/// frozen, or of each user. A text that can't be parsed stays.
fn named_default(text: String) -> String {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, &text, SourceType::mjs()).parse();
    if !parsed.errors.is_empty() {
        return text;
    }
    let found = parsed.program.body.iter().find_map(|it| match it {
        Statement::ExportDefaultDeclaration(it) => Some(it),
        _ => None,
    });
    let Some(it) = found else {
        return text;
    };
    let (start, mut end) = (it.span.start, it.declaration.span().start);
    let (head, name) = match &it.declaration {
        ExportDefaultDeclarationKind::FunctionDeclaration(_) => return text,
        ExportDefaultDeclarationKind::ClassDeclaration(class) => match &class.id {
            Some(id) => (String::new(), id.name.as_str()),
            None => (format!("const {DEFAULT} ="), DEFAULT),
        },
        other => match other.as_expression().map(Expression::without_parentheses) {
            Some(Expression::FunctionExpression(_) | Expression::ArrowFunctionExpression(_)) => {
                return text;
            }
            Some(Expression::Identifier(own)) if is_declared(&parsed.program, &own.name) => {
                end = it.span.end;
                (String::new(), own.name.as_str())
            }
            _ => (format!("const {DEFAULT} ="), DEFAULT),
        },
    };
    // Columns stay.
    let width = (end - start) as usize;
    let mut edits = vec![
        Edit::replace(start, end, format!("{head:width$}")),
        Edit::close(
            text.len() as u32,
            0,
            format!("\n;export{{{name} as default}}"),
        ),
    ];
    if let ExportDefaultDeclarationKind::ClassDeclaration(class) = &it.declaration {
        edits.push(Edit::close(class.span.end, 0, ";"));
    }
    applied(&text, edits)
}

fn is_declared(program: &Program<'_>, name: &str) -> bool {
    let scoping = SemanticBuilder::new()
        .build(program)
        .semantic
        .into_scoping();
    scoping.get_root_binding(name.into()).is_some()
}

/// The text of a JavaScript file, as a module.
fn common(name: &str, source: &str) -> Result<String, Box<LoadError>> {
    match deep(|| common::module(source)) {
        None => Ok(source.to_owned()),
        Some(Ok(text)) => Ok(text),
        Some(Err((at, message))) => {
            let (line, column) = Lines::new(source).place(at);
            Err(Box::new(LoadError {
                file: name.to_owned(),
                line,
                column,
                message,
                help: "bundle the script as a module: esbuild --bundle --format=esm --external:k6"
                    .to_owned(),
            }))
        }
    }
}

/// The specifiers that a file imports, with their places.
fn specifiers(file: &File) -> Vec<(String, u32)> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, &file.text, SourceType::mjs()).parse();
    let mut all = Vec::new();
    for statement in &parsed.program.body {
        let source = match statement {
            Statement::ImportDeclaration(it) => Some(&it.source),
            Statement::ExportNamedDeclaration(it) => it.source.as_ref(),
            Statement::ExportAllDeclaration(it) => Some(&it.source),
            _ => None,
        };
        if let Some(source) = source {
            all.push((source.value.to_string(), source.span.start));
        }
    }
    all
}

/// Why a text isn't a module.
pub(crate) fn problem(text: &str) -> Option<String> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::mjs()).parse();
    let problem = parsed
        .errors
        .first()
        .map(|problem| problem.message.to_string());
    problem.or_else(|| {
        let semantic = SemanticBuilder::new()
            .with_check_syntax_error(true)
            .build(&parsed.program);
        semantic
            .errors
            .first()
            .map(|problem| problem.message.to_string())
    })
}

type Refusal = (String, String);

fn module(
    from: &str,
    specifier: &str,
    (files, api): (&dyn Files, &dyn Api),
    all: &mut FileSet,
    numbers: &mut HashMap<String, usize>,
) -> Result<Module, Refusal> {
    if let Some(name) = api.resolve(specifier) {
        return Ok(Module::Api(name.to_owned()));
    }
    if let Some(refusal) = refused(specifier, api) {
        return Err(refusal);
    }
    let path = joined(from, specifier);
    let tried = [
        path.clone(),
        format!("{path}.js"),
        format!("{path}.ts"),
        format!("{path}/index.js"),
        format!("{path}/index.ts"),
    ];
    if let Some(number) = tried.iter().find_map(|name| numbers.get(name)) {
        return Ok(Module::File(*number));
    }
    if all.files.len() >= FILES {
        return Err((
            format!("the script has more than {FILES} files"),
            String::new(),
        ));
    }
    let mut first = None;
    for name in &tried {
        match file(name, files, all) {
            Ok(()) => {
                let number = all.files.len() - 1;
                numbers.insert(name.clone(), number);
                return Ok(Module::File(number));
            }
            Err(problem) => {
                first.get_or_insert(problem.message);
            }
        }
    }
    let reason = first.unwrap_or_default();
    Err((
        format!("the file '{specifier}' can't be imported: {reason}"),
        String::new(),
    ))
}

/// Why a specifier that isn't a path is refused.
fn refused(specifier: &str, api: &dyn Api) -> Option<Refusal> {
    let refusal = |message: String, help: &str| Some((message, help.to_owned()));
    if let Some((message, help)) = api.refused(specifier) {
        return refusal(message, help);
    }
    if specifier == "k6" || specifier.starts_with("k6/") {
        return refusal(
            format!("the module {specifier} isn't available"),
            "remove the import, or its use",
        );
    }
    let path = specifier.starts_with('.')
        || specifier.starts_with('/')
        || specifier.starts_with("file://");
    if !path {
        return refusal(
            format!("'{specifier}' is neither a path nor a module of k6"),
            "bundle packages of npm into one file, and import that; paths begin with './'",
        );
    }
    None
}

/// A parsed file.
pub(crate) struct Parsed<'a> {
    pub(crate) program: &'a Program<'a>,
    pub(crate) scoping: Scoping,
}

/// Parses a file; its problems if it isn't JavaScript.
pub(crate) fn parsed<'a>(
    allocator: &'a Allocator,
    file: &'a File,
) -> Result<Parsed<'a>, Vec<LoadError>> {
    let parsed = Parser::new(allocator, &file.text, SourceType::mjs()).parse();
    let problem = |diagnostic: &oxc_diagnostics::OxcDiagnostic| {
        error(
            file,
            place_of(diagnostic),
            diagnostic.message.to_string(),
            diagnostic.help.as_deref().unwrap_or("").to_owned(),
        )
    };
    if !parsed.errors.is_empty() || parsed.panicked {
        return Err(parsed.errors.iter().map(problem).collect());
    }
    let program = parsed.program;
    let program: &Program<'a> = allocator.alloc(program);
    let semantic = SemanticBuilder::new()
        .with_check_syntax_error(true)
        .build(program);
    if !semantic.errors.is_empty() {
        return Err(semantic.errors.iter().map(problem).collect());
    }
    Ok(Parsed {
        program,
        scoping: semantic.semantic.into_scoping(),
    })
}

/// The imported bindings of a file.
#[derive(Debug, Default)]
pub(crate) struct Imports(pub(crate) HashMap<Symbol, (Module, Imported)>);

impl Imports {
    /// Whether a name is imported from a module of the API.
    pub(crate) fn is_api(
        &self,
        scoping: &Scoping,
        name: &IdentifierReference<'_>,
        module: &str,
    ) -> bool {
        let symbol = values::symbol(scoping, name);
        let found = symbol.and_then(|symbol| self.0.get(&symbol));
        matches!(found, Some((Module::Api(api), _)) if api == module)
    }

    /// Whether a callee is `group` of `k6`.
    pub(crate) fn is_group(&self, scoping: &Scoping, callee: &Expression<'_>) -> bool {
        self.is_named(scoping, callee, "k6", &["group"])
    }

    /// Whether a callee is one of some functions of a module of the API.
    pub(crate) fn is_named(
        &self,
        scoping: &Scoping,
        callee: &Expression<'_>,
        module: &str,
        names: &[&str],
    ) -> bool {
        match callee {
            Expression::Identifier(name) => {
                let symbol = values::symbol(scoping, name);
                match symbol.and_then(|symbol| self.0.get(&symbol)) {
                    Some((Module::Api(api), Imported::Name(name))) => {
                        api == module && names.contains(&name.as_str())
                    }
                    _ => false,
                }
            }
            Expression::StaticMemberExpression(member) => match &member.object {
                Expression::Identifier(name) => {
                    names.contains(&member.property.name.as_str())
                        && self.is_api(scoping, name, module)
                }
                _ => false,
            },
            _ => false,
        }
    }

    pub(crate) fn of(file: &File, program: &Program<'_>) -> Imports {
        let mut all = HashMap::new();
        for statement in &program.body {
            let Statement::ImportDeclaration(it) = statement else {
                continue;
            };
            let Some(module) = file.specifiers.get(it.source.value.as_str()) else {
                continue;
            };
            for specifier in it.specifiers.iter().flatten() {
                let (local, imported) = match specifier {
                    ImportDeclarationSpecifier::ImportSpecifier(it) => {
                        (&it.local, Imported::Name(it.imported.name().to_string()))
                    }
                    ImportDeclarationSpecifier::ImportDefaultSpecifier(it) => {
                        (&it.local, Imported::Name("default".to_owned()))
                    }
                    ImportDeclarationSpecifier::ImportNamespaceSpecifier(it) => {
                        (&it.local, Imported::All)
                    }
                };
                if let Some(symbol) = local.symbol_id.get() {
                    all.insert(symbol.index(), (module.clone(), imported));
                }
            }
        }
        Imports(all)
    }
}

/// Reads the exports of a file, and renames the modules that it imports.
pub(crate) fn exports(
    file: &File,
    names: &[String],
    program: &Program<'_>,
    scoping: &Scoping,
    facts: &mut Facts,
) {
    for statement in &program.body {
        match statement {
            Statement::ImportDeclaration(it) => rename(file, names, &it.source, facts),
            Statement::ExportAllDeclaration(it) => {
                rename(file, names, &it.source, facts);
                let Some(module) = file.specifiers.get(it.source.value.as_str()).cloned() else {
                    continue;
                };
                match &it.exported {
                    Some(name) => {
                        let export = Export::From(module, Imported::All);
                        facts.exports.push((name.name().to_string(), export));
                    }
                    None => facts.all_from.push(module),
                }
            }
            Statement::ExportNamedDeclaration(it) => {
                if let Some(source) = &it.source {
                    rename(file, names, source, facts);
                }
                named_exports(file, it, scoping, facts);
            }
            Statement::ExportDefaultDeclaration(it) => {
                let value = match &it.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(it) => {
                        Value::Function(it.span.start)
                    }
                    ExportDefaultDeclarationKind::ClassDeclaration(_) => Value::Plain,
                    other => other
                        .as_expression()
                        .map_or(Value::Other, |it| values::value(scoping, it)),
                };
                facts
                    .exports
                    .push(("default".to_owned(), Export::Value(value)));
            }
            _ => {}
        }
    }
}

fn named_exports(
    file: &File,
    it: &ExportNamedDeclaration<'_>,
    scoping: &Scoping,
    facts: &mut Facts,
) {
    let local = |name: &BindingIdentifier<'_>, facts: &mut Facts| {
        if let Some(symbol) = name.symbol_id.get() {
            facts
                .exports
                .push((name.name.to_string(), Export::Local(symbol.index())));
        }
    };
    match &it.declaration {
        Some(Declaration::FunctionDeclaration(function)) => {
            if let Some(id) = &function.id {
                local(id, facts);
            }
        }
        Some(Declaration::ClassDeclaration(class)) => {
            if let Some(id) = &class.id {
                local(id, facts);
            }
        }
        Some(Declaration::VariableDeclaration(declaration)) => {
            for declarator in &declaration.declarations {
                for name in declarator.id.get_binding_identifiers() {
                    local(name, facts);
                }
            }
        }
        _ => {}
    }
    let source = it
        .source
        .as_ref()
        .and_then(|source| file.specifiers.get(source.value.as_str()));
    for specifier in &it.specifiers {
        let exported = specifier.exported.name().to_string();
        let export = match source {
            Some(module) => Export::From(
                module.clone(),
                Imported::Name(specifier.local.name().to_string()),
            ),
            None => match &specifier.local {
                ModuleExportName::IdentifierReference(name) => {
                    match values::symbol(scoping, name) {
                        Some(symbol) => Export::Local(symbol),
                        None => continue,
                    }
                }
                _ => continue,
            },
        };
        facts.exports.push((exported, export));
    }
}

fn rename(file: &File, names: &[String], source: &StringLiteral<'_>, facts: &mut Facts) {
    let Some(module) = file.specifiers.get(source.value.as_str()) else {
        return;
    };
    let name = module_name(module, names);
    let span = source.span();
    facts
        .fixed
        .push(Edit::replace(span.start, span.end, format!("{name:?}")));
}

/// The name of a module in the engine.
pub(crate) fn module_name(module: &Module, names: &[String]) -> String {
    match module {
        Module::File(number) => format!("script:{}", names.get(*number).map_or("", String::as_str)),
        Module::Api(name) => name.clone(),
    }
}
