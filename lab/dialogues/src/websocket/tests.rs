//! Limits on unsolicited messages that are kept.

use super::*;

fn websocket() -> WebSocket {
    WebSocket {
        host: String::new(),
        path: Template::literal("/"),
        headers: Vec::new(),
        subprotocol: None,
        asked: Vec::new(),
    }
}

/// However long a server sends more than its users request.
#[test]
fn what_is_kept_between_requests_is_bounded() {
    let (websocket, mut line) = (websocket(), WebSocketLine::open());
    let message = *b"\x81\x04tick";
    let all = message.repeat(10_000);
    let (mut taken, mut heard) = (0, 0);
    for _ in 0..1_000 {
        let mut rest = &all[..];
        assert_eq!(
            websocket.overhear(&mut line, &mut rest, &mut Vec::new()),
            Ok(())
        );
        let (mut talk, mut out) = (WebSocketExchange::default(), Out::default());
        (talk.count, talk.at_most) = (Some(1), 1);
        let turn = websocket.turn(&mut line, &mut talk, &mut rest, &mut out);
        assert!(matches!(turn, Ok(Turn::Done(_))));
        taken += all.len() - rest.len();
        heard += message.len();
        assert!(
            taken - heard <= 2 * all.len(),
            "{taken} bytes, {heard} heard"
        );
    }
    assert_eq!(heard, 1_000 * message.len());
}

#[test]
fn any_number_of_pings_is_answered_between_requests() {
    let (websocket, mut line) = (websocket(), WebSocketLine::open());
    let ping = [&[0x89, 100][..], &[b'p'; 100]].concat();
    let mut said = Vec::new();
    for _ in 0..100 {
        let all = ping.repeat(50);
        let mut heard = &all[..];
        assert_eq!(websocket.overhear(&mut line, &mut heard, &mut said), Ok(()));
        assert!(heard.is_empty());
    }
    // With a mask.
    assert_eq!(said.len(), 5_000 * (ping.len() + 4));
}

/// Pings may come between its fragments.
#[test]
fn a_message_that_is_never_whole_is_read_no_further() {
    let (websocket, mut line) = (websocket(), WebSocketLine::open());
    let begins = [&[0x01, 100][..], &[b'm'; 100]].concat();
    let goes_on = [&[0x00, 100][..], &[b'm'; 100], &[0x89, 1, b'p']].concat();
    let mut all = [begins, goes_on.repeat(10_000)].concat();
    for _ in 0..1_000 {
        let mut heard = &all[..all.len().min(1_000)];
        let before = heard.len();
        assert_eq!(
            websocket.overhear(&mut line, &mut heard, &mut Vec::new()),
            Ok(())
        );
        all.drain(..before - heard.len());
    }
    assert!(all.len() > 9_000 * goes_on.len(), "{}", all.len());
    assert!(websocket.keeps(&line));
}

#[test]
fn what_is_no_websocket_between_requests_is_told_to_the_next() {
    let (websocket, mut line) = (websocket(), WebSocketLine::open());
    // A message, and a frame with a reserved bit that was not negotiated.
    let mut heard = &b"\x81\x04tick\xf1\x04tick"[..];
    assert_eq!(
        websocket.overhear(&mut line, &mut heard, &mut Vec::new()),
        Ok(())
    );
    let mut ask = |message, count| {
        let (mut talk, mut out) = (WebSocketExchange::default(), Out::default());
        (talk.message, talk.count, talk.at_most) = (message, count, 1);
        websocket.turn(&mut line, &mut talk, &mut &[][..], &mut out)
    };
    for count in [0, 1] {
        let told = ask(Some(Kind::Text), Some(count)).expect_err("no answer");
        assert!(told.contains("no WebSocket"), "{told}");
    }
    // A request that only listens receives the earlier message.
    assert!(matches!(ask(None, Some(1)), Ok(Turn::Done(_))));
    let told = ask(None, Some(1)).expect_err("no message");
    assert!(told.contains("no WebSocket"), "{told}");
}
