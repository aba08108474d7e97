//! Version 2: a signature that no other protocol starts with, two bytes for command and family, the
//! length, addresses, and further fields of the proxy, which are skipped.

use crate::outcome::{Header, MAX_BYTES, NoHeader, ProxiedClient};

pub(crate) const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const HEAD_BYTES: usize = 16;
/// Upper half of the byte behind the signature.
const VERSION: u8 = 2;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;

pub(crate) fn header(bytes: &[u8]) -> Result<Header, NoHeader> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        // An unknown command is rejected at once.
        let command = bytes.get(12).copied();
        return match command.is_none_or(is_known) {
            true => Ok(Header::Partial),
            false => Err(NoHeader::Malformed),
        };
    };
    let [.., command, family, high, low] = *head;
    if !is_known(command) {
        return Err(NoHeader::Malformed);
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    if HEAD_BYTES + length > MAX_BYTES {
        return Err(NoHeader::Large);
    }
    let Some(block) = rest.get(..length) else {
        return Ok(Header::Partial);
    };
    let is_for_itself = command & 0xF == 0;
    let told = match family {
        _ if is_for_itself => ProxiedClient::Nobody,
        TCP_OVER_IPV4 => ProxiedClient::Client(from::<4, 12>(block)?.into()),
        TCP_OVER_IPV6 => ProxiedClient::Client(from::<16, 36>(block)?.into()),
        _ => ProxiedClient::Nobody,
    };
    Ok(Header::Whole {
        bytes: HEAD_BYTES + length,
        client: told,
    })
}

/// Returns true for version 2, for the proxy's own connection (0) or a client's (1).
fn is_known(command: u8) -> bool {
    command >> 4 == VERSION && command & 0xF <= 1
}

/// Returns the first address of a block, which must have room for both and their ports.
fn from<const BYTES: usize, const ALL: usize>(block: &[u8]) -> Result<[u8; BYTES], NoHeader> {
    match (block.len() >= ALL, block.first_chunk()) {
        (true, Some(address)) => Ok(*address),
        _ => Err(NoHeader::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    /// A header with this block, of addresses or other bytes.
    fn binary(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
        let length = u16::try_from(block.len()).unwrap().to_be_bytes();
        let head = [0x20 | command, family, length[0], length[1]];
        [SIGNATURE, &head, block].concat()
    }

    const BLOCK: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 1, 0xDC, 4, 1, 0xBB];

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<ProxiedClient, NoHeader>) {
        let whole = expected.map(|told| Header::Whole {
            bytes: bytes.len(),
            client: told,
        });
        assert_eq!(header(bytes), whole, "{bytes:?}");
    }

    #[test]
    fn addresses_of_tcp_count_and_nothing_else() {
        let client = Ok(ProxiedClient::Client(IpAddr::from([192, 0, 2, 1])));
        check(&binary(1, 0x11, &BLOCK), client);
        // The server name that the client requested, behind the addresses.
        let more = [&BLOCK[..], &[2, 0, 3, b'a', b'.', b'b']].concat();
        check(&binary(1, 0x11, &more), client);
        check(&binary(0, 0x11, &BLOCK), Ok(ProxiedClient::Nobody));
        check(&binary(0, 0, b""), Ok(ProxiedClient::Nobody));
        for other in [0, 0x12, 0x31, 0x41] {
            check(&binary(1, other, &BLOCK), Ok(ProxiedClient::Nobody));
        }
    }

    #[test]
    fn what_is_cut_or_of_another_version_is_refused() {
        check(&binary(1, 0x11, &BLOCK[..11]), Err(NoHeader::Malformed));
        check(&binary(1, 0x21, &BLOCK), Err(NoHeader::Malformed));
        check(&binary(2, 0x11, &BLOCK), Err(NoHeader::Malformed));
        let mut other = binary(1, 0x11, &BLOCK);
        other[12] = 0x11;
        check(&other, Err(NoHeader::Malformed));
        assert_eq!(header(&other[..13]), Err(NoHeader::Malformed));
        check(&binary(1, 0x11, &[0; MAX_BYTES]), Err(NoHeader::Large));
    }
}
