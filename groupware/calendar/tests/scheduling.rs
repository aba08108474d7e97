//! Scheduling between local users: the calendars after each action.

use crate::support::{World, meeting, refusal, user};
use groupware_calendar::{Target, UpdateOptions};
use serde_json::{Value, json};

const NONE: Value = Value::Null;

/// user00000 invites users 1 and 2.
fn two_invited() -> (World, String) {
    let mut world = World::new(10);
    let uid = world.create(0, &meeting(5, &[1, 2])).unwrap();
    (world, uid)
}

fn the_notice(world: &World, owner: u32) -> String {
    let mut ids = world.notice_ids(owner);
    assert_eq!(ids.len(), 1, "{ids:?}");
    ids.remove(0)
}

/// User 1 performs an action on their notice.
fn act_on_notice(world: &mut World, action: &str, body: &Value) {
    let id = the_notice(world, 1);
    world.act(1, Target::Notice(&id), action, body).unwrap();
}

fn is_ghost(line: &Value) -> bool {
    line["x-lotus-noticetype"]["data"] == "I"
}

#[test]
fn a_meeting_shows_as_ghost_and_notice_until_it_is_answered() {
    let (world, uid) = two_invited();
    let own = world.events(0, &[]);
    assert!(own.len() == 1 && !is_ghost(&own[0]));
    let line = &world.events(1, &[])[0];
    assert!(is_ghost(line));
    assert_eq!(line["id"], uid.as_str());
    assert_eq!(line["x-lotus-organizer"]["data"], "user00000@localhost");
    let notice = world.notice(1, &the_notice(&world, 1)).unwrap();
    assert_eq!(notice["events"][0]["id"], uid.as_str());
    assert_eq!(notice["events"][0]["href"], NONE);
    assert_eq!(refusal(world.event(1, &uid)), (400, Some(1029)));
}

#[test]
fn accept_and_tentative_move_the_invitation_into_the_calendar() {
    for (action, status) in [("accept", "accepted"), ("TENTATIVE", "tentative")] {
        let (mut world, uid) = two_invited();
        let id = the_notice(&world, 1);
        act_on_notice(&mut world, action, &NONE);
        assert!(!is_ghost(&world.events(1, &[])[0]));
        assert!(world.notice_ids(1).is_empty());
        assert_eq!(world.status_of(0, &uid, 1), status);
        assert_eq!(world.status_of(1, &uid, 1), status);
        assert_eq!(world.status_of(0, &uid, 2), "needs-action");
        assert_eq!(refusal(world.notice(1, &id)), (404, Some(1031)));
        assert_eq!(
            refusal(world.act(1, Target::Notice(&id), action, &NONE)),
            (404, Some(1031))
        );
    }
}

#[test]
fn decline_removes_the_entry_and_tells_the_organizer() {
    let (mut world, uid) = two_invited();
    act_on_notice(
        &mut world,
        "decline",
        &json!({"comments": "ill", "keepInformed": true}),
    );
    assert!(world.events(1, &[]).is_empty());
    assert!(world.notice_ids(1).is_empty());
    assert_eq!(world.status_of(0, &uid, 1), "declined");
    assert_eq!(refusal(world.event(1, &uid)), (404, Some(1031)));
}

#[test]
fn an_accepted_event_can_still_be_declined() {
    let (mut world, uid) = two_invited();
    act_on_notice(&mut world, "accept", &NONE);
    world.act(1, Target::Event(&uid), "decline", &NONE).unwrap();
    assert!(world.events(1, &[]).is_empty());
    assert_eq!(world.status_of(0, &uid, 1), "declined");
}

#[test]
fn a_delegate_is_invited_in_the_delegators_place() {
    for from_event in [false, true] {
        let (mut world, uid) = two_invited();
        let body = json!({"delegateTo": "mailto:user00007@localhost"});
        if from_event {
            act_on_notice(&mut world, "accept", &NONE);
            world
                .act(1, Target::Event(&uid), "delegate", &body)
                .unwrap();
        } else {
            act_on_notice(&mut world, "delegate", &body);
        }
        assert!(world.events(1, &[]).is_empty());
        assert!(world.notice_ids(1).is_empty());
        assert_eq!(world.status_of(0, &uid, 1), "delegated");
        assert_eq!(world.status_of(0, &uid, 7), "needs-action");
        let people = world.event(0, &uid).unwrap()["attendees"].clone();
        assert_eq!(people[0]["delegatedTo"], "user00007@localhost");
        assert_eq!(people[2]["delegatedFrom"], "user00001@localhost");
        let id = the_notice(&world, 7);
        world.act(7, Target::Notice(&id), "accept", &NONE).unwrap();
        assert_eq!(world.status_of(0, &uid, 7), "accepted");
    }
}

#[test]
fn a_delegate_who_holds_the_meeting_keeps_their_answer() {
    let (mut world, uid) = two_invited();
    let id = the_notice(&world, 2);
    world.act(2, Target::Notice(&id), "accept", &NONE).unwrap();
    act_on_notice(&mut world, "delegate", &json!({"delegateTo": "user00002"}));
    assert_eq!(world.status_of(0, &uid, 1), "delegated");
    assert_eq!(world.status_of(0, &uid, 2), "accepted");
    assert!(world.notice_ids(2).is_empty());
    let copy = world.event(2, &uid).unwrap();
    assert_eq!(copy["attendees"][1]["delegatedFrom"], "user00001@localhost");
}

#[test]
fn a_delegation_can_come_back() {
    let (mut world, uid) = two_invited();
    act_on_notice(&mut world, "delegate", &json!({"delegateTo": "user00007"}));
    let id = the_notice(&world, 7);
    let back = json!({"delegateTo": "user00001"});
    world
        .act(7, Target::Notice(&id), "delegate", &back)
        .unwrap();
    assert_eq!(world.status_of(0, &uid, 7), "delegated");
    assert_eq!(world.status_of(0, &uid, 1), "needs-action");
    assert_eq!(
        world.event(0, &uid).unwrap()["attendees"][0]["delegatedTo"],
        NONE
    );
    assert_eq!(world.notice_ids(1).len(), 1);
}

#[test]
fn a_delegate_elsewhere_is_noted_and_not_told() {
    let (mut world, uid) = two_invited();
    act_on_notice(
        &mut world,
        "delegate",
        &json!({"delegateTo": "eve@example.org"}),
    );
    let people = world.event(0, &uid).unwrap()["attendees"].clone();
    assert_eq!(people[2]["email"], "eve@example.org");
    assert_eq!(people[2]["status"], "needs-action");
}

#[test]
fn impossible_actions_are_refused_and_change_nothing() {
    let (mut world, uid) = two_invited();
    let id = the_notice(&world, 1);
    let (notice, event) = (Target::Notice(&id), Target::Event(&uid));
    let cases = [
        (1, notice, "delegate", NONE, (400, Some(1033))),
        (
            1,
            notice,
            "delegate",
            json!({"delegateTo": ""}),
            (400, Some(1033)),
        ),
        (
            1,
            notice,
            "delegate",
            json!({"delegateTo": "nobody"}),
            (400, Some(1033)),
        ),
        (
            1,
            notice,
            "delegate",
            json!({"delegateTo": "user00001"}),
            (400, Some(1033)),
        ),
        (
            1,
            notice,
            "delegate",
            json!({"delegateTo": "user00000"}),
            (400, Some(1033)),
        ),
        (1, notice, "delegate", json!({"delegateTo": 7}), (400, None)),
        (1, notice, "counter", NONE, (400, Some(1028))),
        (1, notice, "requestInfo", NONE, (400, Some(1028))),
        (1, notice, "processAll", NONE, (400, Some(1028))),
        (1, notice, "removeCancelled", NONE, (400, Some(1028))),
        (1, notice, "cancel", NONE, (400, Some(1033))),
        (1, notice, "dance", NONE, (400, None)),
        (1, notice, "", NONE, (400, None)),
        (1, event, "accept", NONE, (400, Some(1029))),
        (2, notice, "accept", NONE, (404, Some(1031))),
        (0, event, "accept", NONE, (400, Some(1033))),
        (0, event, "decline", NONE, (400, Some(1033))),
        (
            0,
            event,
            "delegate",
            json!({"delegateTo": "user00007"}),
            (400, Some(1033)),
        ),
        (0, event, "counter", NONE, (400, Some(1028))),
        (3, event, "accept", NONE, (404, Some(1031))),
    ];
    let before = (world.event(0, &uid).unwrap(), world.events(1, &[]));
    for (owner, target, action, body, expected) in cases {
        let result = world.act(owner, target, action, &body);
        assert_eq!(refusal(result), expected, "{owner} {action} {body}");
    }
    assert_eq!(
        before,
        (world.event(0, &uid).unwrap(), world.events(1, &[]))
    );
}

#[test]
fn actions_without_effect_on_events_succeed() {
    let (mut world, uid) = two_invited();
    for action in ["processAll", "removecancelled"] {
        world.act(0, Target::Event(&uid), action, &NONE).unwrap();
    }
    assert_eq!(world.events(0, &[]).len(), 1);
}

#[test]
fn a_notice_can_be_thrown_away_unanswered() {
    let (mut world, uid) = two_invited();
    act_on_notice(&mut world, "delete", &NONE);
    assert!(world.events(1, &[]).is_empty());
    assert_eq!(world.status_of(0, &uid, 1), "needs-action");
}

#[test]
fn deleting_a_meeting_cancels_it_at_its_attendees() {
    for by_action in [false, true] {
        let (mut world, uid) = two_invited();
        act_on_notice(&mut world, "accept", &NONE);
        if by_action {
            world.act(0, Target::Event(&uid), "cancel", &NONE).unwrap();
        } else {
            world.delete(0, &uid, true).unwrap();
        }
        assert!(world.events(0, &[]).is_empty());
        assert!(
            world.events(2, &[]).is_empty(),
            "an unanswered invitation disappears"
        );
        assert!(world.notice_ids(2).is_empty());
        let line = &world.events(1, &[])[0];
        assert_eq!(line["status"], "cancelled");
        assert_eq!(line["transparency"], "transparent");
        assert_eq!(
            refusal(world.act(1, Target::Event(&uid), "accept", &NONE)),
            (400, Some(1033))
        );
        world.delete(1, &uid, true).unwrap();
        assert!(world.events(1, &[]).is_empty());
    }
}

#[test]
fn an_attendee_who_deletes_declines() {
    for (workflow, status) in [(true, "declined"), (false, "accepted")] {
        let (mut world, uid) = two_invited();
        act_on_notice(&mut world, "accept", &NONE);
        world.delete(1, &uid, workflow).unwrap();
        assert!(world.events(1, &[]).is_empty());
        assert_eq!(world.status_of(0, &uid, 1), status);
    }
}

#[test]
fn without_workflow_nobody_is_told() {
    let mut world = World::new(10);
    let uid = world
        .create_quietly(0, &meeting(5, &[1, 2]), false)
        .unwrap();
    assert!(world.events(1, &[]).is_empty());
    world
        .update(0, &uid, &meeting(5, &[1, 2]), UpdateOptions::default())
        .unwrap();
    assert_eq!(
        world.notice_ids(1).len(),
        1,
        "the next change with workflow makes up for it"
    );
    world.delete(0, &uid, false).unwrap();
    let id = the_notice(&world, 1);
    world.act(1, Target::Notice(&id), "accept", &NONE).unwrap();
    assert_eq!(world.status_of(1, &uid, 1), "accepted");
    let other = the_notice(&world, 2);
    let body = json!({"delegateTo": "user00007"});
    assert_eq!(
        refusal(world.act(2, Target::Notice(&other), "delegate", &body)),
        (400, Some(1033))
    );
}

#[test]
fn a_change_of_time_or_place_asks_again() {
    let mut elsewhere = meeting(5, &[1, 2]);
    elsewhere["location"] = json!("Room 2");
    for (changed, date) in [
        (meeting(6, &[1, 2]), "2026-01-06"),
        (elsewhere, "2026-01-05"),
    ] {
        let (mut world, uid) = two_invited();
        act_on_notice(&mut world, "accept", &NONE);
        let declined = the_notice(&world, 2);
        world
            .act(2, Target::Notice(&declined), "decline", &NONE)
            .unwrap();
        let entry = world
            .update(0, &uid, &changed, UpdateOptions::default())
            .unwrap();
        assert_eq!(entry.event.sequence, 1);
        for attendee in [1, 2] {
            assert_eq!(world.status_of(0, &uid, attendee), "needs-action");
            let lines = world.events(attendee, &[]);
            assert_eq!(lines.len(), 1, "the old line is gone");
            assert!(is_ghost(&lines[0]));
            assert_eq!(lines[0]["start"]["date"], date);
            assert_eq!(world.notice_ids(attendee).len(), 1);
        }
    }
}

#[test]
fn other_changes_reach_the_copies_silently() {
    let (mut world, uid) = two_invited();
    act_on_notice(&mut world, "accept", &NONE);
    let pending = the_notice(&world, 2);
    let mut changed = meeting(5, &[1, 2]);
    changed["summary"] = json!("Renamed");
    world
        .update(0, &uid, &changed, UpdateOptions::default())
        .unwrap();
    assert_eq!(world.status_of(0, &uid, 1), "accepted");
    assert_eq!(world.events(1, &[])[0]["summary"], "Renamed");
    assert_eq!(world.events(1, &[])[0]["sequence"], 1);
    assert_eq!(the_notice(&world, 2), pending, "the notice keeps its name");
    assert_eq!(world.invitations(2, &[])[0]["summary"], "Renamed");
}

#[test]
fn attendees_come_and_go_with_a_change() {
    let (mut world, uid) = two_invited();
    act_on_notice(&mut world, "accept", &NONE);
    world
        .update(0, &uid, &meeting(5, &[3]), UpdateOptions::default())
        .unwrap();
    assert_eq!(world.events(1, &[])[0]["status"], "cancelled");
    assert!(world.events(2, &[]).is_empty());
    assert_eq!(world.notice_ids(3).len(), 1);
    world
        .update(0, &uid, &meeting(5, &[1, 3]), UpdateOptions::default())
        .unwrap();
    assert!(is_ghost(&world.events(1, &[])[0]), "invited anew");
}

#[test]
fn who_has_delegated_stays_out_when_asked_again() {
    let (mut world, uid) = two_invited();
    act_on_notice(&mut world, "delegate", &json!({"delegateTo": "user00007"}));
    world
        .update(0, &uid, &meeting(6, &[1, 2, 7]), UpdateOptions::default())
        .unwrap();
    assert_eq!(world.status_of(0, &uid, 1), "delegated");
    assert!(world.events(1, &[]).is_empty());
    assert_eq!(world.notice_ids(7).len(), 1);
}

#[test]
fn an_older_list_of_attendees_does_not_send_delegates_away() {
    let (mut world, uid) = two_invited();
    act_on_notice(&mut world, "delegate", &json!({"delegateTo": "user00007"}));
    let id = the_notice(&world, 7);
    let on = json!({"delegateTo": "user00008"});
    world.act(7, Target::Notice(&id), "delegate", &on).unwrap();
    let id = the_notice(&world, 8);
    world.act(8, Target::Notice(&id), "accept", &NONE).unwrap();
    let mut changed = meeting(5, &[1, 2]);
    changed["summary"] = json!("Renamed");
    let usual = UpdateOptions::default();
    world.update(0, &uid, &changed, usual).unwrap();
    assert_eq!(world.status_of(0, &uid, 7), "delegated");
    assert_eq!(world.status_of(0, &uid, 8), "accepted");
    assert_eq!(world.events(8, &[])[0]["summary"], "Renamed");
    world.update(0, &uid, &meeting(6, &[1, 2]), usual).unwrap();
    assert_eq!(world.status_of(0, &uid, 8), "needs-action");
    assert_eq!(world.notice_ids(8).len(), 1, "the delegate is asked again");
    world.update(0, &uid, &meeting(6, &[2]), usual).unwrap();
    let people = world.event(0, &uid).unwrap()["attendees"].clone();
    assert_eq!(people.as_array().unwrap().len(), 1, "{people}");
    assert!(world.events(8, &[]).is_empty(), "gone with the delegator");
}

#[test]
fn wrong_updates_are_refused() {
    let (mut world, uid) = two_invited();
    act_on_notice(&mut world, "accept", &NONE);
    let with = |name: &str, value: Value| {
        let mut event = meeting(5, &[1, 2]);
        event[name] = value;
        event
    };
    let strict = UpdateOptions {
        strict_sequence: true,
        ..UpdateOptions::default()
    };
    let usual = UpdateOptions::default();
    world
        .update(0, &uid, &with("sequence", json!(4)), strict)
        .unwrap();
    let cases = [
        (0, with("sequence", json!(3)), usual, (409, Some(1027))),
        (0, with("sequence", NONE), strict, (409, Some(1027))),
        (0, with("id", json!("another")), usual, (400, Some(1025))),
        (
            0,
            with("organizer", json!({"email": "user00001@localhost"})),
            usual,
            (400, None),
        ),
        (1, meeting(5, &[1, 2]), usual, (400, Some(1028))),
        (2, meeting(5, &[1, 2]), usual, (400, Some(1029))),
        (3, meeting(5, &[1, 2]), usual, (404, Some(1031))),
    ];
    for (owner, event, options, expected) in cases {
        let result = world.update(owner, &uid, &event, options);
        assert_eq!(refusal(result), expected, "{owner} {event}");
    }
}

#[test]
fn a_missing_description_stays_unless_taken_literally() {
    let mut world = World::new(3);
    let mut event = meeting(5, &[1]);
    event["description"] = json!("agenda");
    let uid = world.create(0, &event).unwrap();
    let usual = UpdateOptions::default();
    world.update(0, &uid, &meeting(5, &[1]), usual).unwrap();
    assert_eq!(world.event(0, &uid).unwrap()["description"], "agenda");
    let literally = UpdateOptions {
        literally: true,
        ..usual
    };
    world.update(0, &uid, &meeting(5, &[1]), literally).unwrap();
    assert_eq!(world.event(0, &uid).unwrap()["description"], NONE);
}

#[test]
fn attendees_may_be_named_in_several_ways_and_count_once() {
    let mut world = World::new(10);
    let mut event = meeting(5, &[1]);
    event["attendees"] = json!([
        {"email": "MAILTO:user00001@localhost"},
        {"email": "user00001"},
        {"email": "user00002", "displayName": "Two"},
        {"displayName": "user00003"},
        {"email": "eve@example.org", "status": "accepted"},
        {"email": "user00000@localhost", "role": "chair"},
    ]);
    let uid = world.create(0, &event).unwrap();
    let people = world.event(0, &uid).unwrap()["attendees"].clone();
    let emails: Vec<_> = people
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["email"].clone())
        .collect();
    assert_eq!(
        emails,
        [
            "user00001@localhost",
            "user00002@localhost",
            "user00003@localhost",
            "eve@example.org",
            "user00000@localhost"
        ]
    );
    assert_eq!(
        people[3]["status"], "needs-action",
        "nobody answers for others"
    );
    assert_eq!(people[4]["status"], "accepted", "the organizer comes");
    for attendee in [1, 2, 3] {
        assert_eq!(world.notice_ids(attendee).len(), 1);
    }
    assert!(world.notice_ids(0).is_empty());
}

#[test]
fn nobody_takes_over_an_identifier() {
    let mut world = World::new(10);
    let mut event = meeting(5, &[1]);
    event["id"] = json!("shared/uid 1");
    world.create(0, &event).unwrap();
    assert_eq!(refusal(world.create(0, &event)), (409, Some(1032)));
    world.create(2, &event).unwrap();
    let held = world.events(1, &[]);
    assert_eq!(held.len(), 1, "user 1 holds another's and is not told");
    assert_eq!(held[0]["x-lotus-organizer"]["data"], "user00000@localhost");
    assert_eq!(world.notice_ids(1).len(), 1);
    let line = &world.events(0, &[])[0];
    assert_eq!(
        line["href"],
        "/mail/user00000/api/calendar/events/shared%2Fuid%201"
    );
}

#[test]
fn an_attendees_own_event_with_the_same_identifier_is_not_in_the_way() {
    let mut world = World::new(10);
    let mut own = meeting(9, &[]);
    own["id"] = json!("UID");
    for owner in [1, 7] {
        world.create(owner, &own).unwrap();
    }
    let mut event = meeting(5, &[1, 2]);
    event["id"] = json!("UID");
    world.create(0, &event).unwrap();
    let usual = UpdateOptions::default();
    for day in [6, 6, 7] {
        world
            .update(0, "UID", &meeting(day, &[1, 2]), usual)
            .unwrap();
        assert_eq!(world.invitations(2, &[]).len(), 1);
    }
    let id = the_notice(&world, 2);
    let to = json!({"delegateTo": "user00007"});
    world.act(2, Target::Notice(&id), "delegate", &to).unwrap();
    assert_eq!(world.status_of(0, "UID", 7), "needs-action");
    for owner in [1, 7] {
        let held = world.events(owner, &[]);
        assert_eq!(held.len(), 1);
        assert_eq!(held[0]["start"]["date"], "2026-01-09", "theirs is theirs");
        assert!(world.notice_ids(owner).is_empty());
    }
    world.delete(0, "UID", true).unwrap();
    assert_eq!(world.events(1, &[]).len(), 1);
}

#[test]
fn bounds_are_kept() {
    let mut world = World::new(300);
    let everybody: Vec<u32> = (1..=201).collect();
    assert_eq!(
        refusal(world.create(0, &meeting(5, &everybody))),
        (400, None)
    );
    let mut wordy = meeting(5, &[1]);
    wordy["description"] = json!("x".repeat(70_000));
    assert_eq!(refusal(world.create(0, &wordy)), (400, None));
    let many: Vec<u32> = (1..=200).collect();
    let uid = world.create(0, &meeting(5, &many)).unwrap();
    let id = the_notice(&world, 7);
    let body = json!({"delegateTo": "user00250"});
    assert_eq!(
        refusal(world.act(7, Target::Notice(&id), "delegate", &body)),
        (400, None)
    );
    assert_eq!(world.status_of(0, &uid, 7), "needs-action");
}

#[test]
fn what_is_presumed_not_to_be_there_is_asserted() {
    use groupware_calendar::{Context, Ids, create, parse_json_events};
    let mut world = World::new(3);
    let mut event = meeting(5, &[]);
    event["id"] = json!("taken");
    world.create(1, &event).unwrap();
    event["attendees"] = meeting(5, &[1, 2])["attendees"].clone();
    let new = parse_json_events(event.to_string().as_bytes()).unwrap();
    let decided = |presumes_absent| {
        let decision = world.store.read(|snapshot| {
            let context = Context {
                snapshot,
                directory: &world.users,
                mailbox: "user00000",
                now: world.now,
                ids: Ids::from_random(9),
                presumes_absent,
            };
            create(&context, new[0].clone(), true)
        });
        decision.unwrap().batch
    };
    let lost = world.store.commit_blocking(decided(true)).unwrap_err();
    let index = match lost {
        groupware_store::CommitError::Conflict { index } => index,
        other => panic!("{other}"),
    };
    assert_eq!(index, 1);
    world.store.commit_blocking(decided(false)).unwrap();
    // A user with an own event of this name keeps it, and the others are invited.
    assert!(world.notice_ids(1).is_empty());
    assert_eq!(world.notice_ids(2).len(), 1);
}

#[test]
fn an_older_decision_loses_the_commit() {
    use groupware_calendar::{Action, ActionBody, Context, Ids, answer};
    let (world, uid) = two_invited();
    let decide = |owner: u32, id: &str| {
        let mailbox = user(owner);
        let decision = world.store.read(|snapshot| {
            let context = Context {
                snapshot,
                directory: &world.users,
                mailbox: &mailbox,
                now: world.now,
                ids: Ids::from_random(9),
                presumes_absent: true,
            };
            answer(
                &context,
                Target::Notice(id),
                Action::Accept,
                &ActionBody::default(),
            )
        });
        decision.unwrap().batch
    };
    let first = decide(1, &the_notice(&world, 1));
    let second = decide(2, &the_notice(&world, 2));
    world.store.commit_blocking(first).unwrap();
    let lost = world.store.commit_blocking(second).unwrap_err();
    assert!(
        matches!(lost, groupware_store::CommitError::Conflict { .. }),
        "{lost}"
    );
    world
        .store
        .commit_blocking(decide(2, &the_notice(&world, 2)))
        .unwrap();
    assert_eq!(world.status_of(0, &uid, 1), "accepted");
    assert_eq!(world.status_of(0, &uid, 2), "accepted");
}

/// The registration of report 000: each of N users invites the next six, and accepts four of the six received
/// invitations.
#[test]
fn a_ring_of_users_ends_with_seven_events_and_two_invitations_each() {
    const USERS: u32 = 20;
    let mut world = World::new(USERS);
    for organizer in 0..USERS {
        let six: Vec<u32> = (1..=6).map(|k| (organizer + k) % USERS).collect();
        world
            .create(organizer, &meeting(1 + organizer % 14, &six))
            .unwrap();
    }
    for owner in 0..USERS {
        let ids = world.notice_ids(owner);
        assert_eq!(ids.len(), 6);
        for id in &ids[..4] {
            world
                .act(owner, Target::Notice(id), "accept", &NONE)
                .unwrap();
        }
    }
    for owner in 0..USERS {
        let lines = world.events(owner, &[]);
        assert_eq!(lines.len(), 7);
        assert_eq!(lines.iter().filter(|line| is_ghost(line)).count(), 2);
        assert_eq!(world.invitations(owner, &[]).len(), 2);
        let starts: Vec<_> = lines
            .iter()
            .map(|line| line["start"]["date"].to_string())
            .collect();
        assert!(starts.is_sorted(), "{starts:?}");
    }
}
