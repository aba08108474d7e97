//! Functions for templates, captures, and expectations: hashes, HMAC, encodings, content codings, JSON Web Tokens, patterns; paths into
//! JSON, XML, HTML; schemas; rows of files. All are deterministic, except for ECDSA and RSA-PSS signatures.

pub mod auth;
mod bytes;
pub mod coding;
mod draw;
mod encoding;
mod escape;
mod filter;
mod hash;
mod html_path;
mod json_path;
mod json_schema;
pub mod json_text;
mod key;
mod number;
mod pattern;
mod people;
mod protobuf;
pub mod reading;
mod secret_name;
mod secrets;
pub mod sign;
mod size;
mod table;
pub mod text_list;
mod token;
mod trace;
mod written;
mod xml_path;

use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error};

use bytes::invalid;
use token::{claims, jwt};

pub use draw::{Draw, Drawn, normal_quantile, share_at, shares, weighted};
pub use encoding::Encoding;
pub use escape::{Escape, push_form, push_json, push_part_name, push_url, push_xml};
pub use filter::{Filter, Output};
pub use hash::{Hash, sha256};
pub use html_path::{HtmlPath, HtmlPathError};
pub use json_path::{JsonPath, JsonStep};
pub use json_schema::{JsonSchema, JsonSchemaError, MAX_SCHEMA_BYTES};
pub use key::KeyKind;
pub use number::{compare_numbers, is_json_number, is_same_number};
pub use pattern::regex;
pub use people::{Person, push_words};
pub use protobuf::{
    Descriptors, DescriptorsError, Field, MAX_DESCRIPTOR_BYTES, MAX_READ_BYTES, MessageKind, Method,
};
pub use secret_name::looks_secret;
pub use secrets::{Secrets, password_of};
pub use size::{SizeError, size};
pub use table::{Bytes, Table, TableError};
pub use token::is_random;
pub use trace::{TraceContext, Traced, Tracing};
pub use written::{mask_forms, written};
pub use xml_path::{XmlPath, XmlPathError};

/// Adds the filters to an environment.
pub fn add(environment: &mut Environment<'static>) {
    for hash in Hash::ALL {
        environment.add_filter(hash.name(), move |value: &Value, output: Option<&str>| {
            let output = output.map_or(Ok(Output::default()), Output::named);
            filtered(Filter::Hash(hash, output.map_err(invalid)?), value, None)
        });
    }
    environment.add_filter(
        "hmac",
        |value: &Value, key: &Value, hash: Option<&str>, output: Option<&str>| {
            let filter = Filter::hmac(hash, output).map_err(invalid)?;
            filtered(filter, value, Some(key))
        },
    );
    for name in [
        "base64",
        "base64url",
        "hex",
        "unbase64",
        "unhex",
        "urldecode",
    ] {
        if let Some(filter) = Filter::named(name, &[]) {
            environment.add_filter(name, move |value: &Value| filtered(filter, value, None));
        }
    }
    environment.add_filter("match", |value: &Value, pattern: &Value| {
        let found = pattern::first(&bytes::text(value)?, &bytes::text(pattern)?);
        let found = found.map_err(invalid)?;
        Ok::<_, Error>(found.map_or(Value::UNDEFINED, Value::from))
    });
    environment.add_filter(
        "replace_all",
        |value: &Value, pattern: &Value, by: &Value| {
            let (pattern, by) = (bytes::text(pattern)?, bytes::text(by)?);
            pattern::replace_all(&bytes::text(value)?, &pattern, &by).map_err(invalid)
        },
    );
    environment.add_filter("json_path", |value: &Value, path: &Value| {
        let found = pattern::json_path(&bytes::text(value)?, &bytes::text(path)?);
        let found = found.map_err(invalid)?;
        Ok::<_, Error>(found.map_or(Value::UNDEFINED, |found| Value::from(Serde(found))))
    });
    environment.add_filter("floor", |value: &Value| whole(value, f64::floor));
    environment.add_filter("ceil", |value: &Value| whole(value, f64::ceil));
    environment.add_filter("jwt_claims", |value: &Value| {
        let claims = claims(&bytes::text(value)?).map_err(invalid)?;
        Ok::<_, Error>(Value::from(Serde(claims)))
    });
}

/// The function `jwt`: a token with these claims, key, algorithm, and header fields.
///
/// # Errors
/// Claims that are no object, an unknown algorithm, a key of the wrong kind, and a wrong number of arguments.
pub fn token(arguments: &[Value]) -> Result<String, Error> {
    let [claims, key, more @ ..] = arguments else {
        return Err(invalid(token::USAGE.to_owned()));
    };
    let (algorithm, header) = match more {
        [] => ("HS256".into(), None),
        [algorithm] => (bytes::text(algorithm)?, None),
        [algorithm, header] => (bytes::text(algorithm)?, Some(json(header)?)),
        _ => return Err(invalid(token::USAGE.to_owned())),
    };
    jwt(&json(claims)?, &bytes::of(key)?, &algorithm, header).map_err(invalid)
}

fn filtered(filter: Filter, value: &Value, key: Option<&Value>) -> Result<Value, Error> {
    let key = key.map(bytes::of).transpose()?;
    let mut out = Vec::new();
    let input = bytes::of(value)?;
    filter
        .apply(&input, key.as_deref().unwrap_or_default(), &mut out)
        .map_err(invalid)?;
    Ok(match filter.gives_bytes() {
        true => Value::from_bytes(out),
        false => bytes::value(out),
    })
}

fn whole(value: &Value, round: fn(f64) -> f64) -> Result<i64, Error> {
    const SHOWN: usize = 100;
    let text = bytes::text(value)?;
    let shown: String = text.chars().take(SHOWN).collect();
    let number = text.trim().parse();
    let number: f64 = number.map_err(|_| invalid(format!("`{shown}` is not a number")))?;
    let rounded = round(number);
    match rounded.abs() < 9e15 {
        // An integer, far from the limits of both types.
        true => Ok(rounded as i64),
        false => Err(invalid(format!(
            "`{shown}` has no whole number near it that fits"
        ))),
    }
}

fn json(value: &Value) -> Result<serde_json::Value, Error> {
    serde_json::to_value(value).map_err(|error| invalid(error.to_string()))
}

#[cfg(test)]
mod tests;
