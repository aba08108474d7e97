//! A message as its signatures see it. Its body is hashed apart from everything else: that takes long for a
//! large one, and asks nobody.

use groupware_proto_mime::head_bytes;
use mail_auth::AuthenticatedMessage;

/// Most signatures of a message that are looked at, the first ones.
pub(crate) const SIGNATURES: usize = 5;
/// Most fields that a signature may name; each is looked for among all fields.
const SIGNED_FIELDS: usize = 200;

/// The hashes of a message's body that its signatures are about: of two ways to write it, by two functions.
#[derive(Debug, Clone, Default)]
pub struct BodyHashes(Vec<Vec<u8>>);

/// The head, taken apart.
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

/// A message with the hashes of its body; `None` if it has no head.
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
        // Nobody is sent reports, and nobody signs for others (RFC 6541): neither is asked about.
        field.header.r = false;
        field.header.atps = None;
    }
    Some(head)
}
