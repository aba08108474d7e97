//! Values that must not be in a file: those with names of secrets.

use lab_units::names::word;

/// Shortest value that is searched: shorter ones occur in unrelated words.
const LOOKED_FOR: usize = 6;

/// Found secrets, and their environment variables.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    found: Vec<(String, String)>,
    asked: Vec<String>,
}

impl Secrets {
    /// The expression for a secret, by its name.
    pub(crate) fn code(&mut self, name: &str, value: &str) -> String {
        if let Some((_, known)) = self.found.iter().find(|(found, _)| found == value) {
            return format!("secret('{known}')");
        }
        let wish = word(name).to_ascii_uppercase();
        let wish = if wish.is_empty() {
            "SECRET".to_owned()
        } else {
            wish
        };
        let mut name = wish.clone();
        let mut n = 2;
        while self.asked.contains(&name) {
            name = format!("{wish}_{n}");
            n += 1;
        }
        self.found.push((value.to_owned(), name.clone()));
        self.asked.push(name.clone());
        format!("secret('{name}')")
    }

    /// Adds another variable that a run needs.
    pub(crate) fn ask(&mut self, name: &str) {
        if !self.asked.iter().any(|asked| asked == name) {
            self.asked.push(name.to_owned());
        }
    }

    /// Values to search everywhere, with their expressions; the longest first.
    pub(crate) fn values(&self) -> Vec<(String, String)> {
        let long = self
            .found
            .iter()
            .filter(|(value, _)| value.len() >= LOOKED_FOR);
        let mut values: Vec<_> = long
            .map(|(value, name)| (value.clone(), format!("secret('{name}')")))
            .collect();
        values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        values
    }

    pub(crate) fn asked(self) -> Vec<String> {
        self.asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_one_name() {
        let mut secrets = Secrets::default();
        assert_eq!(secrets.code("password", "abc"), "secret('PASSWORD')");
        assert_eq!(secrets.code("again", "abc"), "secret('PASSWORD')");
        assert_eq!(secrets.code("password", "xyz1234"), "secret('PASSWORD_2')");
        assert_eq!(secrets.values().len(), 1, "short ones are not looked for");
        assert_eq!(secrets.asked(), ["PASSWORD", "PASSWORD_2"]);
    }
}
