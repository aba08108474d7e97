//! Splits stream data into messages: each has a byte that flags compression, a length of four bytes, and its content.
//! The content is opaque here.

/// Longest message.
const MAX_MESSAGE: usize = 16 << 20;
/// Length of the prefix of each message.
const HEAD: usize = 5;

/// Reads messages incrementally.
#[derive(Default)]
pub struct GrpcMessages {
    heard: Vec<u8>,
    read: usize,
}

impl GrpcMessages {
    /// Adds received data.
    pub fn hear(&mut self, data: &[u8]) {
        self.heard.drain(..self.read);
        self.read = 0;
        self.heard.extend_from_slice(data);
    }

    /// Returns the next message once it is complete.
    ///
    /// # Errors
    /// Describes data that is no message, or an unsupported one.
    pub fn take(&mut self) -> Result<Option<&[u8]>, String> {
        let left = &self.heard[self.read..];
        let Some((&[kind, a, b, c, d], rest)) = left.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        match kind {
            0 => {}
            1 => return Err("a message came compressed, and none is asked for so".to_owned()),
            _ => {
                return Err(format!(
                    "what came is no message: it begins with byte {kind}"
                ));
            }
        }
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > MAX_MESSAGE {
            let most = MAX_MESSAGE >> 20;
            return Err(format!(
                "a message has {length} bytes, and {most} MiB are the most"
            ));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let begin = self.read + HEAD;
        self.read = begin + length;
        Ok(Some(&self.heard[begin..self.read]))
    }

    /// Returns true if part of a message was received.
    #[must_use]
    pub fn is_within(&self) -> bool {
        self.read < self.heard.len()
    }
}

/// Appends a message whose content `write` appends.
pub(super) fn framed<E>(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let begin = out.len();
    out.extend_from_slice(&[0; HEAD]);
    write(out)?;
    let length = out.len() - begin - HEAD;
    // Rendered content is bounded far below this.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    out[begin + 1..begin + HEAD].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(reader: &mut GrpcMessages) -> Result<Vec<Vec<u8>>, String> {
        let mut found = Vec::new();
        while let Some(message) = reader.take()? {
            found.push(message.to_vec());
        }
        Ok(found)
    }

    proptest! {
        #[test]
        fn messages_are_read_as_they_were_written_however_they_are_cut(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8),
            cuts in proptest::collection::vec(1_usize..20, 0..40),
        ) {
            let mut bytes = Vec::new();
            for message in &messages {
                let written = framed(&mut bytes, |out| {
                    out.extend_from_slice(message);
                    Ok::<_, String>(())
                });
                prop_assert_eq!(written, Ok(()));
            }
            let mut reader = GrpcMessages::default();
            let (mut found, mut rest) = (Vec::new(), &bytes[..]);
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                reader.hear(piece);
                found.extend(all(&mut reader).unwrap());
                rest = after;
            }
            reader.hear(rest);
            found.extend(all(&mut reader).unwrap());
            prop_assert_eq!(found, messages);
            prop_assert!(!reader.is_within());
        }
    }

    #[test]
    fn what_is_no_message_is_told() {
        for (bytes, told) in [
            (&[1, 0, 0, 0, 0][..], "compressed"),
            (&[7, 0, 0, 0, 0], "begins with byte 7"),
            (&[0, 255, 255, 255, 255], "4294967295 bytes"),
        ] {
            let mut reader = GrpcMessages::default();
            reader.hear(bytes);
            let error = reader.take().unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
