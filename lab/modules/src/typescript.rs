//! JavaScript of TypeScript, with the lines of the source.

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{TransformOptions, Transformer};

use crate::edit::{Lines, place_of};
use crate::source::LoadError;

pub(crate) struct Made {
    pub(crate) text: String,
    /// The line in the source of each line.
    pub(crate) lines: Vec<u32>,
}

/// Removes the types of a file.
pub(crate) fn javascript(name: &str, source: &str) -> Result<Made, Box<LoadError>> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::ts().with_module(true)).parse();
    let failed = |diagnostic: &oxc_diagnostics::OxcDiagnostic| {
        let (line, column) = Lines::new(source).place(place_of(diagnostic));
        Box::new(LoadError {
            file: name.to_owned(),
            line,
            column,
            message: diagnostic.message.to_string(),
            help: diagnostic.help.as_deref().unwrap_or("").to_owned(),
        })
    };
    if let Some(problem) = parsed.errors.first() {
        return Err(failed(problem));
    }
    let mut program = parsed.program;
    let semantic = SemanticBuilder::new().build(&program);
    if let Some(problem) = semantic.errors.first() {
        return Err(failed(problem));
    }
    let scoping = semantic.semantic.into_scoping();
    let options = TransformOptions::default();
    let done = Transformer::new(&allocator, Path::new(name), &options)
        .build_with_scoping(scoping, &mut program);
    if let Some(problem) = done.errors.first() {
        return Err(failed(problem));
    }
    let options = CodegenOptions {
        source_map_path: Some(Path::new(name).to_owned()),
        ..CodegenOptions::default()
    };
    let made = Codegen::new().with_options(options).build(&program);
    let count = made.code.lines().count();
    let mut lines = vec![0; count];
    if let Some(map) = &made.map {
        for token in map.get_tokens() {
            if let Some(line) = lines.get_mut(token.get_dst_line() as usize)
                && *line == 0
            {
                *line = token.get_src_line() + 1;
            }
        }
    }
    let mut last = 1;
    for line in &mut lines {
        if *line == 0 {
            *line = last;
        }
        last = *line;
    }
    Ok(Made {
        text: made.code,
        lines,
    })
}
