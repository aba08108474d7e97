//! Challenges of the header `WWW-Authenticate` (RFC 9110, section 11.6.1).

/// A challenge: its scheme, and its parameters. Names are in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Challenge {
    /// The scheme, such as `digest`.
    pub scheme: String,
    /// The parameters in order, values without quotes.
    pub parameters: Vec<(String, String)>,
}

impl Challenge {
    /// The first parameter of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The challenges of a header, in order. Text outside the grammar is skipped.
#[must_use]
pub fn challenges(header: &str) -> Vec<Challenge> {
    let mut all: Vec<Challenge> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let word = token(rest);
        if word.is_empty() {
            // No element of the grammar starts like this: skip to the next comma.
            match rest.split_once(',') {
                Some((_, after)) => rest = after,
                None => return all,
            }
            continue;
        }
        let after = rest[word.len()..].trim_start_matches([' ', '\t']);
        match after.strip_prefix('=') {
            Some(value) if !all.is_empty() => {
                let (value, after) = parameter(value.trim_start_matches([' ', '\t']));
                rest = after;
                let name = word.to_ascii_lowercase();
                if let Some(last) = all.last_mut() {
                    last.parameters.push((name, value));
                }
            }
            Some(_) => rest = after.split_once(',').map_or("", |(_, rest)| rest),
            None => {
                all.push(Challenge {
                    scheme: word.to_ascii_lowercase(),
                    parameters: Vec::new(),
                });
                rest = without_token68(after);
            }
        }
    }
}

/// The token at the start of a text (RFC 9110, section 5.6.2).
fn token(text: &str) -> &str {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c: char| !is_of_token(c));
    &text[..end.unwrap_or(text.len())]
}

/// The text after a `token68`, which a scheme such as `Negotiate` has instead of parameters.
fn without_token68(text: &str) -> &str {
    let is_of_it = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
    let word = text.trim_start_matches(is_of_it);
    let end = word.trim_start_matches('=').trim_start_matches([' ', '\t']);
    match word.len() < text.len() && (end.is_empty() || end.starts_with(',')) {
        true => end,
        false => text,
    }
}

/// The value at the start of a text, and the rest.
fn parameter(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let value = token(text);
        return (value.to_owned(), &text[value.len()..]);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            _ => value.push(c),
        }
    }
    (value, "")
}
