//! The header by which a proxy names its client: HAProxy's PROXY protocol, version 1 (a line of
//! text) and version 2 (binary). Its specification is `doc/proxy-protocol.txt` of HAProxy.
//!
//! This crate knows no sockets, and not which proxies are trusted.

mod binary;
mod outcome;
mod text;

pub use outcome::{Header, MAX_BYTES, NoHeader, ProxiedClient};

/// Parses the header at the start of a connection from the bytes received so far.
///
/// # Errors
/// As soon as these bytes can't become a header.
pub fn header(bytes: &[u8]) -> Result<Header, NoHeader> {
    if begins_alike(bytes, text::SIGNATURE) {
        text::header(bytes)
    } else if begins_alike(bytes, binary::SIGNATURE) {
        binary::header(bytes)
    } else {
        Err(NoHeader::Missing)
    }
}

fn begins_alike(bytes: &[u8], signature: &[u8]) -> bool {
    bytes.iter().zip(signature).all(|(one, other)| one == other)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::*;

    /// A header of version 2 with these addresses as its block.
    fn binary(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
        let length = u8::try_from(block.len()).unwrap();
        let head = [0x20 | command, family, 0, length];
        [binary::SIGNATURE, &head, block].concat()
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_the_same_however_it_is_cut(
            start in prop_oneof![
                Just(Vec::new()),
                Just(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n".to_vec()),
                Just(b"PROXY UNKNOWN ".to_vec()),
                Just(binary(1, 0x11, &[1; 12])),
                Just(binary(0, 0, b"")),
            ],
            at in 0..60_usize, byte: u8, rest: Vec<u8>, cut in 0..80_usize
        ) {
            let mut bytes = [start, rest].concat();
            if let Some(changed) = bytes.get_mut(at) {
                *changed = byte;
            }
            let whole = header(&bytes);
            match header(&bytes[..cut.min(bytes.len())]) {
                Ok(Header::Partial) => {}
                decided => prop_assert_eq!(decided, whole),
            }
            if let Ok(Header::Whole { bytes: length, .. }) = whole {
                prop_assert!(length <= bytes.len().min(MAX_BYTES));
                prop_assert_eq!(header(&bytes[..length - 1]), Ok(Header::Partial));
            }
            prop_assert!(bytes.len() < MAX_BYTES || whole != Ok(Header::Partial));
        }

        #[test]
        fn both_versions_have_any_address(address: IpAddr, port: u16) {
            let client = ProxiedClient::Client(address);
            let (kind, family, mut block) = match address {
                IpAddr::V4(v4) => ("TCP4", 0x11, v4.octets().repeat(2)),
                IpAddr::V6(v6) => ("TCP6", 0x21, v6.octets().repeat(2)),
            };
            let line = format!("PROXY {kind} {address} {address} {port} 25\r\n");
            let whole = Header::Whole { bytes: line.len(), client };
            prop_assert_eq!(header(line.as_bytes()), Ok(whole));
            block.extend(port.to_be_bytes().repeat(2));
            let bytes = binary(1, family, &block);
            prop_assert_eq!(header(&bytes), Ok(Header::Whole { bytes: bytes.len(), client }));
        }
    }
}
