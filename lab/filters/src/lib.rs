//! What templates, captures, and expectations do with texts, without a user: hashes, HMAC, encodings, JSON Web Tokens,
//! patterns; paths into JSON, XML, and HTML; schemas. All is deterministic, except for signatures by ECDSA and RSA-PSS.

mod bytes;
mod encoding;
mod hash;
mod html_path;
mod json_path;
mod json_schema;
mod pattern;
mod token;
mod xml_path;

use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error};

use bytes::invalid;
use hash::{Hash, digest, hmac};
use token::{claims, jwt};

pub use encoding::Encoding;
pub use hash::sha256;
pub use html_path::{HtmlPath, HtmlPathError};
pub use json_path::{JsonPath, JsonStep};
pub use json_schema::{JsonSchema, JsonSchemaError, MAX_SCHEMA_BYTES};
pub use pattern::regex;
pub use token::is_random;
pub use xml_path::{XmlPath, XmlPathError};

/// The largest input of a hash.
const MAX_BYTES: usize = 16 << 20;

/// Adds the filters.
pub fn add(environment: &mut Environment<'static>) {
    for hash in Hash::ALL {
        environment.add_filter(hash.name(), move |value: &Value, encoding: Option<&str>| {
            let input = input(value)?;
            let sum = digest(hash, &input);
            written(sum, encoding.unwrap_or("hex"))
        });
    }
    environment.add_filter(
        "hmac",
        |value: &Value, key: &Value, hash: Option<&str>, encoding: Option<&str>| {
            let hash = hash.unwrap_or("sha256");
            let hash = Hash::named(hash)
                .ok_or_else(|| unknown("hash", hash, &Hash::ALL.map(Hash::name)))?;
            let sum = hmac(hash, &bytes::of(key)?, &input(value)?).map_err(invalid)?;
            written(sum, encoding.unwrap_or("hex"))
        },
    );
    for encoding in [Encoding::Base64, Encoding::Base64Url, Encoding::Hex] {
        environment.add_filter(encoding.name(), move |value: &Value| {
            Ok::<_, Error>(encoding.encode(&bytes::of(value)?))
        });
    }
    environment.add_filter("unbase64", |value: &Value| {
        let text = encoding::from_base64(&bytes::of(value)?);
        text.map(bytes::value).map_err(invalid)
    });
    environment.add_filter("unhex", |value: &Value| {
        let text = hex::decode(&*bytes::of(value)?);
        text.map(bytes::value)
            .map_err(|error| invalid(format!("it is not hexadecimal: {error}")))
    });
    environment.add_filter("urldecode", |value: &Value| {
        let bytes = bytes::of(value)?;
        let decoded = percent_encoding::percent_decode(&bytes).collect();
        Ok::<_, Error>(bytes::value(decoded))
    });
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

/// The function `jwt`: a token of these claims, by this key, this algorithm, and with these fields in its header.
///
/// # Errors
/// Claims that are no object, an algorithm that is unknown, a key that is not of its kind, and other numbers of arguments.
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

/// What a hash is of.
fn input(value: &Value) -> Result<std::borrow::Cow<'_, [u8]>, Error> {
    let input = bytes::of(value)?;
    match input.len() {
        ..=MAX_BYTES => Ok(input),
        n => Err(invalid(format!(
            "{n} bytes are more than the {MAX_BYTES} that a hash may be of"
        ))),
    }
}

fn written(sum: Vec<u8>, encoding: &str) -> Result<Value, Error> {
    match (Encoding::named(encoding), encoding) {
        (Some(encoding), _) => Ok(Value::from(encoding.encode(&sum))),
        (None, "raw") => Ok(Value::from_bytes(sum)),
        _ => Err(unknown(
            "encoding",
            encoding,
            &["hex", "base64", "base64url", "raw"],
        )),
    }
}

fn whole(value: &Value, round: fn(f64) -> f64) -> Result<i64, Error> {
    const SHOWN: usize = 100;
    let text = bytes::text(value)?;
    let shown: String = text.chars().take(SHOWN).collect();
    let number = text.trim().parse();
    let number: f64 = number.map_err(|_| invalid(format!("`{shown}` is not a number")))?;
    let rounded = round(number);
    match rounded.abs() < 9e15 {
        // Whole, and far from the limits of both.
        true => Ok(rounded as i64),
        false => Err(invalid(format!(
            "`{shown}` has no whole number near it that fits"
        ))),
    }
}

fn json(value: &Value) -> Result<serde_json::Value, Error> {
    serde_json::to_value(value).map_err(|error| invalid(error.to_string()))
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    invalid(format!(
        "there is no {what} `{name}`: it is one of {}",
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests;
