//! Finds the origin of a connection: its peer, or the client that a proxy names in a header.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use groupware_proto_proxy::{Header, NoHeader, ProxiedClient, header};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::admission::ConnectionPermit;

/// Longest wait for a proxy's header, which is in the first packet or the next one.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of the first look. Hardly any header is longer.
const LOOK_BYTES: usize = 512;

/// The origin of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The peer.
    Peer,
    /// This address, as named by the proxy.
    Behind(IpAddr),
    /// Unknown: the proxy doesn't name it.
    Unknown,
}

/// Why a connection was rejected.
#[derive(Debug, thiserror::Error)]
pub enum NotLetIn {
    /// The connection ended, or failed.
    #[error("the connection failed")]
    Gone(#[from] io::Error),
    /// The proxy took too long to name the client.
    #[error("no PROXY header came within {} s", HEADER_TIMEOUT.as_secs())]
    Late,
    /// The proxy sent something else than a header.
    #[error(transparent)]
    Header(#[from] NoHeader),
    /// The named client has no free permit.
    #[error("there is no room for the client")]
    Full,
}

/// Reads the header that a connection must begin with, if any. The permit is then the client's, and
/// the stream begins with the client's first byte.
///
/// # Errors
/// See [`NotLetIn`]. The connection can't be used afterwards.
pub async fn arrive(
    stream: &mut TcpStream,
    slot: ConnectionPermit,
) -> Result<(Origin, ConnectionPermit), NotLetIn> {
    if !slot.ticket().awaits_proxy_header() {
        return Ok((Origin::Peer, slot));
    }
    let told = timeout(HEADER_TIMEOUT, read(stream)).await;
    let told = match told.unwrap_or(Err(NotLetIn::Late)) {
        Ok(told) => told,
        Err(problem) => {
            slot.refuse();
            return Err(problem);
        }
    };
    let (origin, client) = match told {
        ProxiedClient::Client(client) => (Origin::Behind(client), client),
        ProxiedClient::Nobody => (Origin::Unknown, slot.ticket().client()),
    };
    let slot = slot.of_client(client).ok_or(NotLetIn::Full)?;
    Ok((origin, slot))
}

/// Reads exactly the header, and no byte behind it: the rest may be a handshake.
async fn read(stream: &mut TcpStream) -> Result<ProxiedClient, NotLetIn> {
    let (mut read, mut look) = (Vec::new(), [0; LOOK_BYTES]);
    loop {
        let seen = match stream.peek(&mut look).await? {
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            count => &look[..count],
        };
        let before = read.len();
        read.extend_from_slice(seen);
        let (mine, told) = match header(&read)? {
            // All bytes belong to the header: they are consumed, so that the next look waits for more.
            Header::Partial => (read.len() - before, None),
            Header::Whole {
                bytes,
                client: told,
            } => (bytes - before, Some(told)),
        };
        stream.read_exact(&mut look[..mine]).await?;
        if let Some(told) = told {
            return Ok(told);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::{Admission, Networks, TrustedNetworks};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// The result for a connection of a trusted proxy that sends these pieces.
    async fn arrived(pieces: &[&[u8]]) -> Result<(Origin, ConnectionPermit, Vec<u8>), NotLetIn> {
        let known = TrustedNetworks::new(Networks::loopback(), Networks::loopback());
        let admission = Arc::new(Admission::new(8, known).with_most_of_client(1));
        let listener = TcpListener::bind((HERE, 0)).await?;
        let mut client = TcpStream::connect(listener.local_addr()?).await?;
        let (mut stream, _) = listener.accept().await?;
        let send = async {
            for piece in pieces {
                client.write_all(piece).await?;
                // Lets the other side read each piece separately.
                tokio::task::yield_now().await;
            }
            client.shutdown().await
        };
        let slot = admission.enter(HERE, true).unwrap();
        let (sent, arrived) = tokio::join!(send, arrive(&mut stream, slot));
        let (origin, slot) = arrived?;
        sent?;
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await?;
        Ok((origin, slot, rest))
    }

    #[tokio::test]
    async fn a_proxy_says_who_comes_and_the_rest_is_the_clients() {
        let pieces: [&[u8]; 3] = [b"PRO", b"XY TCP4 127.0.0.9 192.0.2.2 1 2\r", b"\nEHLO"];
        let (origin, slot, rest) = arrived(&pieces).await.unwrap();
        let client = [127, 0, 0, 9].into();
        assert_eq!(
            (origin, rest.as_slice()),
            (Origin::Behind(client), &b"EHLO"[..])
        );
        // The named client is not trusted, whatever the proxy is.
        assert!(!slot.ticket().is_trusted() && slot.ticket().client() == client);
        let health: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
        let (origin, slot, rest) = arrived(&[health, b"GET"]).await.unwrap();
        assert_eq!((origin, rest.as_slice()), (Origin::Unknown, &b"GET"[..]));
        assert!(!slot.ticket().is_trusted() && slot.ticket().client() == HERE);
    }

    #[tokio::test]
    async fn a_proxy_that_says_nothing_is_not_let_in() {
        let missing = arrived(&[b"GET / HTTP/1.1\r\n"]).await;
        assert!(matches!(missing, Err(NotLetIn::Header(NoHeader::Missing))));
        let ended = arrived(&[b"PROXY TCP4 127.0.0.9"]).await;
        assert!(matches!(ended, Err(NotLetIn::Gone(_))));
        let endless = arrived(&[&[b' '; 4096]]).await;
        assert!(endless.is_err());
    }
}
