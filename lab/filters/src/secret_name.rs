//! Which names stand for secrets: the one list for studies, recordings, and what is shown.

/// What names of secrets have in them, whatever else.
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
/// Words that names of secrets have as a word of their own, or at the end of one.
const WORDS: &[&str] = &[
    "token",
    "key",
    "pwd",
    "pass",
    "auth",
    "cookie",
    "credentials",
];
/// A name that ends so is about a secret, and its value is none.
const ABOUT: &[&str] = &[
    "file", "path", "dir", "folder", "size", "length", "count", "ttl", "timeout", "limit", "bits",
    "type", "kind", "name",
];

/// Whether a name is one that secrets have: `DB_PASSWORD`, `apiKey`, `PGPASSWORD`, `auth-token`.
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

/// In lower case: `apiKey` is `api`, `key`.
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
