//! Base64 and hexadecimal digits of `k6/encoding` and `k6/crypto`, forms, and multipart bodies. It knows no JavaScript.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const STANDARD_RAW: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, LENIENT.with_encode_padding(false));
const URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);
const URL_RAW: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT.with_encode_padding(false));

fn engine(alphabet: &str) -> Result<&'static GeneralPurpose, String> {
    match alphabet {
        "std" => Ok(&STANDARD),
        "rawstd" => Ok(&STANDARD_RAW),
        "url" => Ok(&URL),
        "rawurl" => Ok(&URL_RAW),
        other => Err(format!(
            "unknown Base64 alphabet '{other}': use std, rawstd, url, or rawurl"
        )),
    }
}

/// Bytes as Base64.
pub(crate) fn to_base64(bytes: &[u8], alphabet: &str) -> Result<String, String> {
    Ok(engine(alphabet)?.encode(bytes))
}

/// Base64 as bytes; line ends in it are skipped, padding may be absent.
pub(crate) fn from_base64(text: &str, alphabet: &str) -> Result<Vec<u8>, String> {
    let engine = engine(alphabet)?;
    let decoded = if text.contains(['\r', '\n']) {
        engine.decode(text.replace(['\r', '\n'], ""))
    } else {
        engine.decode(text)
    };
    decoded.map_err(|error| {
        format!("the text is not valid Base64 of the alphabet '{alphabet}': {error}")
    })
}

/// A hash in the form that a script asks for; `None` stands for the bytes themselves.
pub(crate) fn written(bytes: &[u8], form: &str) -> Result<Option<String>, String> {
    Ok(Some(match form {
        "hex" => hex::encode(bytes),
        "base64" => STANDARD.encode(bytes),
        "base64url" => URL.encode(bytes),
        "base64rawurl" => URL_RAW.encode(bytes),
        "binary" => return Ok(None),
        other => {
            return Err(format!(
                "unknown output encoding '{other}': use hex, base64, base64url, base64rawurl, or binary"
            ));
        }
    }))
}

/// A field of a multipart body.
pub(crate) struct Field {
    pub name: String,
    pub data: Vec<u8>,
    pub file: Option<(String, String)>,
}

/// A multipart body (RFC 7578).
pub(crate) fn multipart(boundary: &str, fields: &[Field]) -> Vec<u8> {
    let mut body = Vec::new();
    for field in fields {
        let name = quoted(&field.name);
        body.extend_from_slice(
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"").as_bytes(),
        );
        if let Some((file, kind)) = &field.file {
            let kind = kind.replace(['\r', '\n'], " ");
            body.extend_from_slice(
                format!("; filename=\"{}\"\r\nContent-Type: {kind}", quoted(file)).as_bytes(),
            );
        }
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(&field.data);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    body
}

/// Quotes and line ends as browsers escape them (HTML, multipart/form-data encoding algorithm).
fn quoted(text: &str) -> String {
    text.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}
