//! The secrets of a study file: their places in it, and the stored file without them.

use std::ops::Range;

use crate::node::{Node, Value};
use crate::{OneOrMany, Problems, Secrets, password_of, unknown_name};

/// Replaces a secret in the stored file; without its quotes, the secret part of a text.
const MASK: &[u8] = b"'***'";
const MASK_OF_PART: &[u8] = b"***";
/// The key whose entries are variables of an environment.
const ENV: &str = "env";
/// The key whose entries are values for the workload's parameters.
const PARAMETERS: &str = "parameters";

/// Returns the names listed under `secrets`, from the tree alone, so that they are known before any error in the file
/// is reported.
#[must_use]
pub fn listed(root: &Node) -> Vec<String> {
    match root.get("secrets").map(|node| &node.value) {
        Some(Value::Text(one)) => vec![one.clone()],
        Some(Value::List(items)) => {
            let names = items.iter().filter_map(|item| match &item.value {
                Value::Text(name) => Some(name.clone()),
                _ => None,
            });
            names.collect()
        }
        _ => Vec::new(),
    }
}

/// Reports a listed name that no key has: it protects nothing.
pub fn check(listed: Option<&OneOrMany>, root: &Node, problems: &mut Problems) {
    let mut keys = Vec::new();
    all_keys(root, &mut keys);
    for name in listed.map_or(&[][..], OneOrMany::as_slice) {
        let text = name.text();
        if !keys.contains(&text.as_str()) {
            let (message, help) = unknown_name("key", &text, &keys);
            let mut problem = name.span.first_line().problem(message, "nothing to mask");
            problem.help = Some(help).filter(|help| help.starts_with("did you mean"));
            problems.push(problem);
        }
    }
}

fn all_keys<'n>(node: &'n Node, keys: &mut Vec<&'n str>) {
    match &node.value {
        Value::Map(entries) => {
            for (key, value) in entries {
                keys.push(&key.text);
                all_keys(value, keys);
            }
        }
        Value::List(items) => items.iter().for_each(|item| all_keys(item, keys)),
        _ => {}
    }
}

/// The place of a secret in a file.
#[derive(Debug)]
pub struct SecretSpan {
    range: Range<usize>,
    /// Whether it is a part of a text.
    part: bool,
}

/// Finds the secrets below a node, learns them, and returns their places.
pub fn learn(root: &Node, secrets: &mut Secrets) -> Vec<SecretSpan> {
    let mut places = Vec::new();
    below(root, "", secrets, &mut places);
    places
}

/// Finds literal secrets in a workload's `auth`, learns them, and returns their places.
pub fn credentials(workload: &Node, secrets: &mut Secrets) -> Vec<SecretSpan> {
    let mut places = Vec::new();
    if let Some(auth) = workload.get("auth") {
        telling(auth, secrets, &mut places);
    }
    places
}

/// Fields of token requests that authenticate the client or the user (RFC 7521, 8628).
const SHOWN: [&str; 5] = [
    "assertion",
    "client_assertion",
    "otp",
    "code",
    "device_code",
];

fn telling(node: &Node, secrets: &mut Secrets, places: &mut Vec<SecretSpan>) {
    let Value::Map(entries) = &node.value else {
        return;
    };
    for (name, value) in entries {
        match &value.value {
            Value::Map(_) => telling(value, secrets, places),
            // `token` is the endpoint and no secret; the names in `SHOWN` don't look secret, but are.
            _ if name.text != "token"
                && (secrets.is_secret(&name.text) || SHOWN.contains(&&*name.text)) =>
            {
                all(value, secrets, places);
            }
            _ => {}
        }
    }
}

fn below(node: &Node, key: &str, secrets: &mut Secrets, places: &mut Vec<SecretSpan>) {
    match &node.value {
        Value::Map(entries) => {
            for (name, value) in entries {
                let by_look = matches!(key, ENV | PARAMETERS) && secrets.is_secret(&name.text);
                if by_look || secrets.is_listed(&name.text) {
                    all(value, secrets, places);
                } else {
                    let is_variable = key == ENV && matches!(value.value, Value::Text(_));
                    let under = if is_variable { ENV } else { &name.text };
                    below(value, under, secrets, places);
                }
            }
        }
        Value::List(items) => {
            for item in items {
                below(item, key, secrets, places);
            }
        }
        Value::Text(text) if key == ENV => {
            let Some(password) = password_of(text) else {
                return;
            };
            secrets.learn(password);
            let before = format!(":{password}@");
            if let Some(at) = node.span.text().find(&before) {
                let start = node.span.range.start + at + 1;
                let range = start..start + password.len();
                places.push(SecretSpan { range, part: true });
            }
        }
        _ => {}
    }
}

/// Treats all values of a node as secrets.
pub fn all(node: &Node, secrets: &mut Secrets, places: &mut Vec<SecretSpan>) {
    let text = match &node.value {
        Value::Map(entries) => {
            return entries
                .iter()
                .for_each(|(_, one)| all(one, secrets, places));
        }
        Value::List(items) => return items.iter().for_each(|one| all(one, secrets, places)),
        Value::Null => return,
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(number) => number.written(),
        Value::Text(text) => text.clone(),
    };
    // A reference to a factor is no secret, and readers need it.
    if !text.contains("{{") {
        secrets.learn(&text);
        let range = node.span.range.clone();
        places.push(SecretSpan { range, part: false });
    }
}

/// Replaces these places of a file; a YAML file stays valid.
#[must_use]
pub fn without(bytes: &[u8], mut places: Vec<SecretSpan>) -> Vec<u8> {
    places.sort_by_key(|place| place.range.start);
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for SecretSpan { range, part } in places {
        let (Some(before), Some(secret)) = (bytes.get(at..range.start), bytes.get(range.clone()))
        else {
            continue;
        };
        out.extend_from_slice(before);
        out.extend_from_slice(if part { MASK_OF_PART } else { MASK });
        // A block ends at the start of the next key.
        out.extend_from_slice(&secret[secret.trim_ascii_end().len()..]);
        at = range.end;
    }
    out.extend_from_slice(bytes.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node;

    #[test]
    fn a_file_without_its_secrets_says_the_same_otherwise() {
        let text = "\
secrets: [pin]
system:
  command:
    env:
      TOKEN: plain text   # a comment
      KEY: \"with: \\\"quotes\\\"\"
      DB_PASSWORD: |
        two
        lines
      URL: 'pg://me:pw@db/x'
      FROM_FACTOR_KEY: \"{{ k }}\"
      USER: me
parameters: { password: 12, pin: [1, 2], users: 5 }
";
        let file = node::text_file("s", text.as_bytes()).unwrap();
        let root = node::parse(&file).unwrap();
        let mut secrets = Secrets::named(listed(&root));
        let places = learn(&root, &mut secrets);
        let without = String::from_utf8(without(text.as_bytes(), places)).unwrap();
        let expected = "\
secrets: [pin]
system:
  command:
    env:
      TOKEN: '***'   # a comment
      KEY: '***'
      DB_PASSWORD: |
        '***'
      URL: 'pg://me:***@db/x'
      FROM_FACTOR_KEY: \"{{ k }}\"
      USER: me
parameters: { password: '***', pin: ['***', '***'], users: 5 }
";
        assert_eq!(without, expected);
        assert!(node::parse(&node::text_file("s", without.as_bytes()).unwrap()).is_ok());
    }
}
