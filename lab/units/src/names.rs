//! Generates unique names of variables and steps.

use std::collections::HashSet;

/// Names with a meaning in templates.
const TAKEN: [&str; 44] = [
    "index",
    "users",
    "round",
    "cycle",
    "loop",
    "true",
    "false",
    "none",
    "range",
    "dict",
    "password",
    "take",
    "pick",
    "pad",
    "neighbour",
    "uuid",
    "date",
    "date_in",
    "month_start",
    "month_end",
    "int_in",
    "text_of_size",
    "profile",
    "env",
    "secret",
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
    "for",
    "set",
    "endfor",
    "endif",
    "elif",
    "with",
    "block",
    "filter",
    "macro",
    "import",
    "include",
    "do",
];
/// Longest name of a variable.
const LONGEST: usize = 40;
/// Longest name of a step.
const LONGEST_STEP: usize = 60;

/// Names in use.
#[derive(Debug, Default)]
pub struct Names(HashSet<String>);

impl Names {
    /// A unique variable name like `wish`.
    pub fn variable(&mut self, wish: &str) -> String {
        let mut name = word(wish);
        if name.is_empty() || TAKEN.contains(&name.as_str()) {
            name = format!("{name}_value").trim_start_matches('_').to_owned();
        }
        self.unique(name, |name, n| format!("{name}_{n}"))
    }

    /// A unique step name like `wish`.
    pub fn step(&mut self, wish: &str) -> String {
        let name: String = wish.chars().take(LONGEST_STEP).collect();
        self.unique(name, |name, n| format!("{name} ({n})"))
    }

    fn unique(&mut self, name: String, next: impl Fn(&str, usize) -> String) -> String {
        let mut given = name.clone();
        let mut n = 2;
        while !self.0.insert(given.clone()) {
            given = next(&name, n);
            n += 1;
        }
        given
    }
}

/// Lower-case letters, digits, and underscores; `userId` is `user_id`.
#[must_use]
pub fn word(text: &str) -> String {
    let mut out = String::new();
    let mut was_lower = false;
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            if c.is_ascii_uppercase() && was_lower {
                out.push('_');
            }
            was_lower = !c.is_ascii_uppercase();
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
            was_lower = false;
        }
        if out.len() >= LONGEST {
            break;
        }
    }
    let out = out.trim_end_matches('_');
    match out.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("v{out}"),
        false => out.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_each_stands_once() {
        let mut names = Names::default();
        for (wish, name) in [
            ("X-CSRF-Token", "x_csrf_token"),
            ("userId", "user_id"),
            ("x_csrf_token", "x_csrf_token_2"),
            ("index", "index_value"),
            ("2fa", "v2fa"),
            ("…", "value"),
            ("items[*].id", "items_id"),
        ] {
            assert_eq!(names.variable(wish), name);
        }
        let mut steps = Names::default();
        assert_eq!(steps.step("GET /"), "GET /");
        assert_eq!(steps.step("GET /"), "GET / (2)");
        assert_eq!(steps.step(&"x".repeat(99)).len(), 60);
    }
}
