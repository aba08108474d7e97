//! MQTT: mosquitto.

use std::fs;
use std::future::poll_fn;
use std::process::Command;
use std::task::Poll;
use std::time::Duration;

use lab_client::{Client as _, ErrorClass};
use lab_dialogues::Mqtt;
use lab_workload::{MqttRequest, ProtocolRequest, RawBytes, SignIn, Speech};

use super::{Playing, Running, free_port, literal, run, sends, start};

fn speech(is_five: bool, password: &str) -> Speech {
    Speech::Mqtt {
        sign_in: SignIn {
            username: Some(literal("me")),
            password: Some(literal(password)),
            database: None,
        },
        client_id: None,
        is_five,
    }
}

fn publish(topic: &str, text: &str, qos: u8, receive: Option<&str>) -> ProtocolRequest {
    ProtocolRequest::Mqtt(MqttRequest::Publish {
        topic: literal(topic),
        payload: RawBytes::Text(literal(text)),
        qos,
        retain: false,
        receive: receive.map(literal),
    })
}

fn subscribe(topic: &str, qos: u8) -> ProtocolRequest {
    let topics = vec![literal(topic)];
    ProtocolRequest::Mqtt(MqttRequest::Subscribe { topics, qos })
}

fn receive(topic: &str) -> ProtocolRequest {
    let topic = literal(topic);
    ProtocolRequest::Mqtt(MqttRequest::Receive { topic })
}

/// A broker whose only user may write and read below `rooms`, and only read `locked`.
fn broker() -> Option<(Running, u16, tempfile::TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let made = Command::new("mosquitto_passwd")
        .args(["-b", "-c", &at("passwords"), "me", "sesame"])
        .output();
    if made.is_err() {
        eprintln!("SKIPPED: mosquitto is not on this machine");
        return None;
    }
    fs::write(at("rights"), "user me\ntopic rooms/#\ntopic read locked\n").unwrap();
    let port = free_port();
    let settings = format!(
        "listener {port} 127.0.0.1\nallow_anonymous false\nuser root\npassword_file {}\nacl_file {}\n",
        at("passwords"),
        at("rights")
    );
    fs::write(at("settings"), settings).unwrap();
    let running = start("mosquitto", &["-c", &at("settings")], Some(port))?;
    Some((running, port, folder))
}

#[test]
fn messages_arrive_at_each_quality_of_service() {
    let Some((_running, port, _folder)) = broker() else {
        return;
    };
    for is_five in [false, true] {
        let mut requests = vec![subscribe("rooms/+/heat", 2), receive("rooms/#")];
        for qos in 0..=2 {
            requests.push(publish("rooms/1/heat", &format!("at {qos}"), qos, None));
            let round = format!("round {qos}");
            requests.push(publish("rooms/2/heat", &round, qos, Some("rooms/2/+")));
        }
        requests.push(ProtocolRequest::Mqtt(MqttRequest::Unsubscribe {
            topics: vec![literal("rooms/+/heat")],
        }));
        run(async {
            let mut user = Playing::new(port, speech(is_five, "sesame"), requests, Mqtt::new);
            assert_eq!(user.play(0).await.unwrap(), "");
            for qos in 0..=2 {
                assert_eq!(user.play(2 + 2 * qos).await.unwrap(), "");
                // The user's own message is unread, or arrives now.
                assert_eq!(user.play(1).await.unwrap(), format!("at {qos}"));
                assert_eq!(
                    user.play(3 + 2 * qos).await.unwrap(),
                    format!("round {qos}")
                );
            }
            assert_eq!(user.play(8).await.unwrap(), "");
            assert_eq!(user.client_connects(), 1);
        });
    }
}

#[test]
fn refusals_have_their_class_and_reason() {
    let Some((_running, port, _folder)) = broker() else {
        return;
    };
    for is_five in [false, true] {
        run(async {
            let requests = || vec![publish("locked", "x", 1, None), subscribe("rooms/#", 0)];
            let mut user = Playing::new(port, speech(is_five, "wrong"), requests(), Mqtt::new);
            let (class, why) = user.play(0).await.unwrap_err();
            assert_eq!(class, ErrorClass::Connect);
            assert!(
                why.contains("authorized") || why.contains("password"),
                "{why}"
            );
            let mut user = Playing::new(port, speech(is_five, "sesame"), requests(), Mqtt::new);
            let refused = user.play(0).await;
            // Version 3.1.1 has no answer but success.
            match is_five {
                false => assert_eq!(refused, Ok(String::new())),
                true => {
                    let (class, why) = refused.unwrap_err();
                    assert_eq!(class, ErrorClass::Status);
                    assert!(why.contains("not authorized"), "{why}");
                }
            }
            assert_eq!(user.play(1).await.unwrap(), "");
        });
    }
}

#[test]
fn connection_that_ends_between_requests_fails_the_next_one() {
    // CONNACK, then an acknowledgement and a DISCONNECT because another client has the name.
    let port = sends(&[&[b"\x20\x03\0\0\0", b"\x40\x02\0\x01\xe0\x01\x8e"]]);
    run(async {
        let requests = vec![publish("t", "x", 1, None)];
        let mut user = Playing::new(port, speech(true, "sesame"), requests, Mqtt::new);
        assert_eq!(user.play(0).await.unwrap(), "");
        tokio::time::sleep(Duration::from_millis(20)).await;
        let (class, why) = user.play(0).await.unwrap_err();
        assert_eq!(class, ErrorClass::Reset);
        assert!(why.contains("session taken over"), "{why}");
    });
}

#[test]
fn idle_user_keeps_the_connection_alive() {
    // CONNACK with a keep-alive of 1 s, PUBACK, PINGRESP, and PUBACK.
    let port = sends(&[&[
        b"\x20\x06\0\0\x03\x13\0\x01",
        b"\x40\x02\0\x01",
        b"\xd0\0",
        b"\x40\x02\0\x02",
    ]]);
    run(async {
        let requests = vec![publish("t", "x", 1, None)];
        let mut user = Playing::new(port, speech(true, "sesame"), requests, Mqtt::new);
        assert_eq!(user.play(0).await.unwrap(), "");
        let idle = poll_fn(|cx| {
            user.client.poll_idle(&mut user.session, cx);
            Poll::<()>::Pending
        });
        let _over = tokio::time::timeout(Duration::from_millis(900), idle).await;
        // Without a ping, the server would answer this with PINGRESP.
        let played = tokio::time::timeout(Duration::from_secs(20), user.play(0)).await;
        assert_eq!(played.expect("an acknowledgement").unwrap(), "");
    });
}
