//! Any text as a script: it is refused with a place, or what the loader makes of it is JavaScript.

use lab_script::{Files, Program};

/// The first part is the entry, the other one a file that it may import.
struct Two<'t>(&'t str, &'t str);

impl Files for Two<'_> {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        match name {
            "main.js" | "main.ts" => Ok(self.0.into()),
            "lib.js" => Ok(self.1.into()),
            _ => Err("there is no such file".to_owned()),
        }
    }
}

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (main, lib) = text.split_once('\0').unwrap_or((text, ""));
    for entry in ["main.js", "main.ts"] {
        if let Err(problems) = Program::check(entry, &Two(main, lib)) {
            assert!(!problems.is_empty());
            for problem in problems {
                assert!(problem.line > 0 && problem.column > 0, "{problem:?}");
                assert!(!problem.message.contains("what the loader made"), "{problem:?}\n{text}");
            }
        }
    }
}
