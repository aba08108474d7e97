//! A reused account name: the meetings of the earlier account don't belong to the new one.

use groupware_calendar::{Target, UpdateOptions};
use serde_json::json;

use crate::support::{NOW, World, meeting, user};

/// User 1 holds an accepted meeting of user 0, user 2 an invitation to it. Then user 0 is deleted, and a new user of
/// that name creates a meeting of the same UID.
fn world(is_another: bool) -> (World, String) {
    let mut world = World::new(10);
    world.now = NOW - 1000;
    let mut event = meeting(5, &[1, 2]);
    event["id"] = json!("pier");
    let uid = world.create(0, &event).unwrap();
    let notice = world.notice_ids(1).remove(0);
    world
        .act(1, Target::Notice(&notice), "accept", &json!(null))
        .unwrap();
    let mut batch = groupware_store::Batch::new();
    batch.delete_partition(user(0));
    world.store.commit_blocking(batch).unwrap();
    if is_another {
        world.users.1.insert(user(0), NOW - 500);
    }
    world.now = NOW;
    event["summary"] = json!("Of the new one");
    world.create(0, &event).unwrap();
    (world, uid)
}

/// A user's view of the meeting, as an event or an invitation.
fn seen(world: &World, owner: u32, uid: &str) -> Option<String> {
    let notices = world.notice_ids(owner);
    let event = match notices.first() {
        Some(notice) => world.notice(owner, notice).unwrap()["events"][0].clone(),
        None => world.event(owner, uid).ok()?,
    };
    let summary = event["summary"].as_str().unwrap();
    Some(match event["status"].as_str() {
        Some("cancelled") => format!("{summary}, cancelled"),
        _ => summary.to_owned(),
    })
}

#[test]
fn copies_of_the_account_before_are_not_changed() {
    let old = Some("Meeting on 5".to_owned());
    // The same account may overwrite its copies; another one may not.
    for is_another in [false, true] {
        let (mut world, uid) = world(is_another);
        let new = |text: &str| match is_another {
            true => old.clone(),
            false => Some(text.to_owned()),
        };
        for owner in [1, 2] {
            assert_eq!(seen(&world, owner, &uid), new("Of the new one"));
        }
        let mut event = meeting(6, &[1, 2]);
        event["summary"] = json!("Moved");
        world
            .update(0, &uid, &event, UpdateOptions::default())
            .unwrap();
        for owner in [1, 2] {
            assert_eq!(seen(&world, owner, &uid), new("Moved"));
        }
        world.delete(0, &uid, true).unwrap();
        for owner in [1, 2] {
            let expected = is_another.then(|| old.clone()).flatten();
            assert_eq!(seen(&world, owner, &uid), expected);
        }
    }
}

#[test]
fn answers_to_the_account_before_dont_reach_the_new_one() {
    for (is_another, status) in [(false, "accepted"), (true, "needs-action")] {
        let (mut world, uid) = world(is_another);
        let notice = world.notice_ids(2).remove(0);
        world
            .act(2, Target::Notice(&notice), "accept", &json!(null))
            .unwrap();
        assert_eq!(world.status_of(0, &uid, 2), status);
    }
}

#[test]
fn the_new_account_invites_to_meetings_of_its_own() {
    // The registering server may have a clock that is ahead.
    for registered in [NOW - 500, NOW + 500] {
        let (mut world, _) = world(true);
        world.users.1.insert(user(0), registered);
        let uid = world.create(0, &meeting(7, &[1])).unwrap();
        let notice = world.notice_ids(1).remove(0);
        world
            .act(1, Target::Notice(&notice), "accept", &json!(null))
            .unwrap();
        assert_eq!(world.status_of(0, &uid, 1), "accepted");
    }
}
