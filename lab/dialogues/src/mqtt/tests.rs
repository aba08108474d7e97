//! Acknowledgements and messages that a broker sends in an unusual order.

use lab_client::dialogue::{Dialogue as _, Out, Turn};

use super::*;

/// A dialogue of version 5 without requests.
fn mqtt() -> Mqtt {
    Mqtt {
        is_five: true,
        sign_in: SignIn::default(),
        client_id: None,
        requests: Vec::new(),
    }
}

/// A request that publishes at this quality of service.
fn publishing(qos: u8) -> MqttExchange {
    MqttExchange {
        first: kind::PUBLISH << 4 | qos << 1,
        before: b"\0\x01t".to_vec(),
        after: b"\0hi".to_vec(),
        qos,
        ..MqttExchange::default()
    }
}

/// Starts a request and passes these bytes; returns the turn and the bytes sent after the request.
fn answered(talk: &mut MqttExchange, bytes: &[u8]) -> (Result<Turn, String>, Vec<u8>) {
    let (mut line, mut out) = (MqttLine::default(), Out::default());
    let started = mqtt().turn(&mut line, talk, &mut &[][..], &mut out);
    assert_eq!(started, Ok(Turn::Listen));
    out.say.clear();
    let turn = mqtt().turn(&mut line, talk, &mut &bytes[..], &mut out);
    (turn, out.say)
}

#[test]
fn only_acknowledgements_of_its_own_kind_complete_a_request() {
    let done = || Ok(Turn::Done(Reply::default()));
    assert_eq!(answered(&mut publishing(1), b"\x40\x02\0\x01").0, done());
    let (turn, say) = answered(&mut publishing(2), b"\x50\x02\0\x01");
    assert_eq!((turn, &say[..]), (Ok(Turn::Listen), &b"\x62\x02\0\x01"[..]));
    for (qos, bytes) in [
        (1, &b"\x70\x02\0\x01"[..]),
        (2, b"\x40\x02\0\x01"),
        (1, b"\x90\x04\0\x01\0\0"),
    ] {
        let (turn, _) = answered(&mut publishing(qos), bytes);
        assert!(turn.is_err(), "{bytes:?}: {turn:?}");
    }
    // The acknowledgement of an earlier request.
    let (turn, _) = answered(&mut publishing(1), b"\x40\x02\0\x09");
    assert_eq!(turn, Ok(Turn::Listen));
}

#[test]
fn late_acknowledgement_of_quality_2_is_released() {
    let mut say = Vec::new();
    let mut line = MqttLine::default();
    assert_eq!(
        mqtt().overhear(&mut line, &mut &b"\x50\x02\0\x07"[..], &mut say),
        Ok(())
    );
    assert_eq!(say, b"\x62\x02\0\x07");
    say.clear();
    let refused = b"\x50\x03\0\x07\x87";
    assert_eq!(
        mqtt().overhear(&mut line, &mut &refused[..], &mut say),
        Ok(())
    );
    assert_eq!(say, b"");
}

#[test]
fn broker_that_disconnects_refuses_the_request() {
    let (turn, _) = answered(&mut publishing(1), b"\xe0\x02\x97\0");
    let Ok(Turn::Done(reply)) = turn else {
        panic!("{turn:?}");
    };
    assert!(reply.ends);
    assert!(reply.refused.unwrap_or_default().contains("quota exceeded"));
    let mut line = MqttLine::default();
    let ended = mqtt().overhear(&mut line, &mut &b"\xe0\x01\x8b"[..], &mut Vec::new());
    assert!(ended.is_err_and(|why| why.contains("server shutting down (0x8b)")));
}

#[test]
fn unread_messages_are_bounded() {
    let mut line = MqttLine::default();
    for number in 0..=MAX_UNREAD {
        line.keep("t", number.to_string().as_bytes());
    }
    let mut body = Vec::new();
    assert!(line.take("t", &mut body));
    assert_eq!(
        (body.as_slice(), line.unread.len()),
        (&b"1"[..], MAX_UNREAD - 1)
    );
    line.keep("t", &vec![0; MAX_UNREAD_BYTES]);
    assert_eq!((line.unread.len(), line.dropped), (1, MAX_UNREAD as u64));
    let mut receive = || {
        let (mut out, mut talk) = (Out::default(), MqttExchange::default());
        talk.receive = Some("t".into());
        let turn = mqtt().turn(&mut line, &mut talk, &mut &[][..], &mut out);
        let Ok(Turn::Done(reply)) = turn else {
            panic!("{turn:?}");
        };
        (reply.refused, out.body.len())
    };
    let (refused, _) = receive();
    assert_eq!(
        refused.as_deref(),
        Some("1000 messages were dropped unread")
    );
    assert_eq!(receive(), (None, MAX_UNREAD_BYTES));
}

#[test]
fn late_answer_is_not_taken_for_the_next_one() {
    for (receive, goes_on) in [(Some("t"), false), (None, true)] {
        let (mut line, mut out, mut talk) = (MqttLine::default(), Out::default(), publishing(1));
        talk.receive = receive.map(Into::into);
        let started = mqtt().turn(&mut line, &mut talk, &mut &[][..], &mut out);
        assert_eq!(started, Ok(Turn::Listen));
        assert_eq!(mqtt().give_up(&mut line, &mut Vec::new()), goes_on);
    }
}

#[test]
fn lower_quality_of_service_than_asked_is_a_refusal() {
    for (granted, refusal) in [
        (&b"\x90\x05\0\x01\0\x01\x01"[..], None),
        (
            b"\x90\x05\0\x01\0\x01\0",
            Some("the broker grants only QoS 0"),
        ),
        (
            b"\x90\x05\0\x01\0\0\x87",
            Some("the broker refuses: not authorized (0x87)"),
        ),
    ] {
        let mut talk = MqttExchange {
            first: kind::SUBSCRIBE << 4 | 2,
            after: b"\0\0\x01t\x01\0\x01u\x01".to_vec(),
            qos: 1,
            ..MqttExchange::default()
        };
        let (turn, _) = answered(&mut talk, granted);
        let Ok(Turn::Done(reply)) = turn else {
            panic!("{turn:?}");
        };
        assert_eq!(reply.refused.as_deref(), refusal);
    }
}

#[test]
fn greeting_may_require_a_keep_alive_or_refuse() {
    for (answer, seconds, refusal) in [
        (&b"\x20\x06\0\0\x03\x21\0\x14"[..], None, ""),
        (b"\x20\x09\0\0\x06\x21\0\x14\x13\0\x3c", Some(60), ""),
        (b"\x20\x02\0\x01", None, "`version: 3.1.1` (0x01)"),
        (b"\x20\x03\0\x9f\0", None, "connection rate exceeded (0x9f)"),
    ] {
        let mut talk = MqttExchange {
            first: kind::CONNECT << 4,
            ..MqttExchange::default()
        };
        let (mut line, mut out) = (MqttLine::default(), Out::default());
        let turn = mqtt().turn(&mut line, &mut talk, &mut &answer[..], &mut out);
        let Ok(Turn::Done(reply)) = turn else {
            panic!("{turn:?}");
        };
        let refused = reply.refused.unwrap_or_default();
        assert!(refused.ends_with(refusal), "{refused}");
        assert_eq!(refused.is_empty(), refusal.is_empty());
        let kept = mqtt().keep_alive(&line);
        assert_eq!(kept.map(|(longest, _)| longest.as_secs()), seconds);
    }
}

#[test]
fn credentials_are_not_spelled() {
    let mut packet = Vec::new();
    put(&mut packet, kind::CONNECT << 4, |out| {
        put_text(out, b"MQTT");
        put_text(out, b"sesame");
    });
    assert_eq!(mqtt().spell(Side::User, &packet), "CONNECT");
}

#[test]
fn only_refusals_are_spelled_as_such() {
    for (bytes, text) in [
        (&b"\x40\x02\0\x01"[..], "PUBACK 1"),
        (b"\x40\x03\0\x01\x10", "PUBACK 1: 0x10"),
        (b"\x90\x04\0\x01\0\x01", "SUBACK 1: 0x01"),
        (b"\x90\x04\0\x01\0\x87", "SUBACK 1: not authorized (0x87)"),
    ] {
        assert_eq!(mqtt().spell(Side::Server, bytes), text);
    }
}
