//! A message as its signatures see it. Its body is hashed separately: that takes long for a large body, and needs no
//! DNS queries.

use groupware_proto_mime::head_bytes;
use mail_auth::AuthenticatedMessage;

/// The maximum number of signatures that are checked, the first ones.
pub(crate) const SIGNATURES: usize = 5;
/// The maximum number of fields in a signature; each is searched among all fields.
const SIGNED_FIELDS: usize = 200;

/// The hashes of a message's body for its signatures: of two canonical forms, by two functions.
#[derive(Debug, Clone, Default)]
pub struct BodyHashes(Vec<Vec<u8>>);

/// Parses the head of a message.
fn head(message: &[u8]) -> Option<AuthenticatedMessage<'_>> {
    AuthenticatedMessage::parse(&message[..head_bytes(message)])
}

/// Hashes a message's body for its signatures.
pub fn body_hashes(message: &[u8]) -> BodyHashes {
    let Some(head) = head(message) else {
        return BodyHashes::default();
    };
    let body = &message[head.body_offset()..];
    let hashes = head.body_hashes.iter().map(|(form, function, length, _)| {
        let hash = function.hash(form.canonical_body(body, *length));
        hash.as_ref().to_vec()
    });
    BodyHashes(hashes.collect())
}

/// Parses a message with the hashes of its body; `None` if it has no head.
pub(crate) fn parse<'a>(
    message: &'a [u8],
    hashes: &BodyHashes,
) -> Option<AuthenticatedMessage<'a>> {
    let mut head = head(message)?;
    for (known, hash) in head.body_hashes.iter_mut().zip(&hashes.0) {
        known.3.clone_from(hash);
    }
    head.dkim_headers
        .retain(|field| field.header.h.len() <= SIGNED_FIELDS);
    head.dkim_headers.truncate(SIGNATURES);
    head.errors.truncate(SIGNATURES);
    for field in &mut head.dkim_headers {
        // No reports are sent and no third-party signatures (RFC 6541) are accepted: neither needs queries.
        field.header.r = false;
        field.header.atps = None;
    }
    Some(head)
}
