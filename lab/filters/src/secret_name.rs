//! Which names indicate secrets: the one list for studies, recordings, and reports.

/// Substrings of secret names.
const WITHIN: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "credential",
    "apikey",
    "authorization",
    "bearer",
];
/// Words that mark a secret name, alone or at the end of a word.
const WORDS: &[&str] = &[
    "token",
    "key",
    "pwd",
    "pass",
    "auth",
    "cookie",
    "credentials",
];
/// Suffixes of names about a secret whose value is no secret.
const ABOUT: &[&str] = &[
    "file", "path", "dir", "folder", "size", "length", "count", "ttl", "timeout", "limit", "bits",
    "type", "kind", "name",
];

/// Returns true if a name looks like that of a secret: `DB_PASSWORD`, `apiKey`, `PGPASSWORD`, `auth-token`.
#[must_use]
pub fn looks_secret(name: &str) -> bool {
    let words = words(name);
    if words
        .last()
        .is_some_and(|last| ABOUT.contains(&last.as_str()))
    {
        return false;
    }
    let whole = words.concat();
    let ends = |word: &String| WORDS.iter().any(|ending| word.ends_with(ending));
    WITHIN.iter().any(|part| whole.contains(part)) || words.iter().any(ends)
}

/// Splits a name into words in lower case: `apiKey` is `api`, `key`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        let begins = c.is_uppercase() && after_lower;
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
