//! Tests of fair sharing.

use super::*;

fn client(last: u8) -> Principal {
    Principal::Client([192, 0, 2, last].into())
}

fn user(name: &str) -> Principal {
    Principal::User(name.into())
}

#[test]
fn strangers_leave_half_to_users_and_a_quarter_to_each_other() {
    let pool = FairSemaphore::new(16);
    let first: Vec<_> = (0..9).map_while(|_| pool.try_take(&client(1), 1)).collect();
    assert_eq!(first.len(), 4);
    let second: Vec<_> = (0..9).map_while(|_| pool.try_take(&client(2), 1)).collect();
    assert_eq!(second.len(), 4);
    assert!(pool.try_take(&client(3), 1).is_none());
    let stats = pool.gauge().read();
    assert_eq!((stats.units, stats.taken, stats.strangers), (16, 8, 8));
    assert_eq!((stats.trusted, stats.refusals), (None, 3));
    let ada: Vec<_> = (0..9)
        .map_while(|_| pool.try_take(&user("ada"), 1))
        .collect();
    assert_eq!(ada.len(), 4);
    let bob = pool.try_take(&user("bob"), 4);
    assert!(bob.is_some() && pool.free() == 0);
    drop(first);
    assert!(pool.try_take(&client(3), 4).is_some());
    assert!(pool.try_take(&Principal::Trusted, 5).is_none());
    drop((second, ada, bob));
    assert!(pool.try_take(&Principal::Trusted, 16).is_some());
    assert_eq!(pool.free(), 16);
}

#[test]
fn what_is_apart_for_the_trusted_is_theirs_alone() {
    let pool = FairSemaphore::new(4).with_trusted(100);
    assert_eq!(
        (pool.most(&Principal::Trusted), pool.most(&client(1))),
        (100, 1)
    );
    let trusted = pool.try_take(&Principal::Trusted, 100);
    assert!(trusted.is_some() && pool.free() == 4);
    assert_eq!(pool.gauge().read().trusted, Some((100, 100)));
    assert!(pool.try_take(&client(1), 1).is_some());
    assert!(pool.try_take(&Principal::Trusted, 1).is_none());
}

#[test]
fn the_smallest_pool_serves_everybody_in_turn() {
    let pool = FairSemaphore::new(1);
    for source in [Principal::Trusted, client(1), user("ada")] {
        assert!(pool.try_take(&source, 1).is_some(), "{source:?}");
    }
}

#[tokio::test]
async fn who_waits_for_the_own_share_holds_up_nobody() {
    let pool = FairSemaphore::new(8);
    let held = pool.take(&user("ada"), 100).await;
    assert_eq!(held.units(), 2);
    {
        let ada = user("ada");
        let mut more = std::pin::pin!(pool.take(&ada, 1));
        tokio::select! {
            biased;
            _ = more.as_mut() => panic!("that was all of hers"),
            () = std::future::ready(()) => {}
        }
        assert_eq!((pool.free(), pool.gauge().read().waits), (6, 1));
        drop(pool.take(&Principal::Trusted, 6).await);
        drop(held);
        assert_eq!(more.await.units(), 1);
    }
    assert_eq!(pool.free(), 8);
}

#[tokio::test]
async fn a_permit_grows_and_gives_way() {
    let pool = FairSemaphore::new(8);
    let mut permit = pool.none(&client(1));
    permit.grow(1).await;
    permit.grow(1).await;
    assert_eq!((permit.units(), pool.free()), (2, 6));
    permit
        .yield_until(async { assert_eq!(pool.free(), 8) })
        .await;
    assert_eq!((permit.units(), pool.free()), (2, 6));
    drop(permit);
    assert_eq!(pool.free(), 8);
}

#[test]
fn shares_that_nobody_uses_are_forgotten() {
    let pool = FairSemaphore::new(8);
    let held = pool.try_take(&user("ada"), 1);
    for number in 0..10_000_u32 {
        let source = Principal::Client(IpAddr::from(number.to_be_bytes()));
        assert!(pool.try_take(&source, 1).is_some());
    }
    assert_eq!(pool.0.lock().shares.len(), 1);
    drop(held);
    assert!(pool.0.lock().shares.is_empty());
}

/// The connection of a permit, and whether it must close.
fn ticket() -> Arc<ConnectionIdentity> {
    let admission = Arc::new(crate::Admission::new(1, crate::TrustedNetworks::default()));
    let slot = admission.enter([192, 0, 2, 1].into(), false).unwrap();
    Arc::clone(slot.ticket())
}

async fn has_to_end(ticket: &ConnectionIdentity) -> bool {
    tokio::select! {
        biased;
        () = ticket.displaced() => true,
        () = std::future::ready(()) => false,
    }
}

/// The output, if the future is ready at once.
async fn now<T>(waits: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    tokio::select! {
        biased;
        done = waits => Some(done),
        () = std::future::ready(()) => None,
    }
}

/// Takes the half of unauthenticated clients, one unit a permit, from so many addresses.
async fn fill(pool: &FairSemaphore, addresses: u8) -> Vec<(Arc<ConnectionIdentity>, Permit)> {
    let mut held = Vec::new();
    for number in 0..pool.0.most_of_strangers() {
        let (source, ticket) = (client(number as u8 % addresses), ticket());
        let taken = pool.take_or_yield(&source, 1, Some(Arc::clone(&ticket)));
        held.push((ticket, now(&mut Box::pin(taken)).await.unwrap()));
    }
    held
}

#[tokio::test]
async fn the_source_that_holds_most_yields_its_oldest_permit_to_a_newcomer() {
    // A quarter is 8, and unauthenticated clients have 16.
    let pool = FairSemaphore::new(32);
    let mut held = fill(&pool, 2).await;
    let (third, fourth) = (client(3), client(4));
    let mut newcomers = [
        Box::pin(pool.take_or_yield(&third, 1, None)),
        Box::pin(pool.take_or_yield(&fourth, 1, None)),
    ];
    for newcomer in &mut newcomers {
        assert!(now(newcomer).await.is_none());
    }
    let mut ending = Vec::new();
    for (at, (ticket, _)) in held.iter().enumerate() {
        if has_to_end(ticket).await {
            ending.push(at);
        }
    }
    // One for each newcomer, of each of the two: no more than they ask for.
    assert_eq!(ending, [0, 1]);
    // A source that holds much waits behind both, however early it queued.
    let first = client(0);
    let mut more = Box::pin(pool.take(&first, 1));
    assert!(now(&mut more).await.is_none());
    held.drain(..2);
    let mut got = Vec::new();
    for newcomer in &mut newcomers {
        got.push(now(newcomer).await.unwrap());
    }
    assert!(now(&mut more).await.is_none());
    assert_eq!(pool.gauge().read().strangers, 16);
    drop(got);
    assert!(now(&mut more).await.is_some());
    assert_eq!(pool.0.lock().yielding, 0);
}

#[tokio::test]
async fn many_strangers_with_a_unit_each_make_room_for_a_newcomer() {
    let pool = FairSemaphore::new(32);
    let mut held = fill(&pool, 16).await;
    let newcomer = client(99);
    let mut newcomer = Box::pin(pool.take_or_yield(&newcomer, 1, None));
    assert!(now(&mut newcomer).await.is_none());
    assert!(has_to_end(&held[0].0).await && !has_to_end(&held[1].0).await);
    held.remove(0);
    assert!(now(&mut newcomer).await.is_some());
    // Users have their half meanwhile.
    let ada = user("ada");
    assert_eq!(pool.try_take(&ada, 8).map(|ada| ada.units()), Some(8));
}

#[tokio::test]
async fn a_request_that_does_not_wait_finds_room_the_next_time() {
    let pool = FairSemaphore::new(32);
    let mut held = fill(&pool, 2).await;
    let third = client(3);
    assert!(pool.try_take_or_yield(&third, 1, None).is_none());
    assert!(has_to_end(&held[0].0).await && !has_to_end(&held[1].0).await);
    held.remove(0);
    let taken = pool.try_take_or_yield(&third, 1, None);
    assert!(taken.is_some());
    assert!(pool.has_share(&third, 7) && !pool.has_share(&third, 8));
}

#[tokio::test]
async fn a_permit_that_has_grown_yields_all_of_it() {
    let pool = FairSemaphore::new(16);
    let (eve, mal, ada) = (client(1), client(2), client(3));
    let (first, second) = (ticket(), ticket());
    let mut grows = pool.take_or_yield(&eve, 1, Some(Arc::clone(&first))).await;
    grows.grow(3).await;
    let other = pool.take_or_yield(&mal, 4, Some(Arc::clone(&second))).await;
    let mut newcomer = Box::pin(pool.take(&ada, 3));
    assert!(now(&mut newcomer).await.is_none());
    assert!(has_to_end(&first).await && !has_to_end(&second).await);
    assert_eq!(pool.0.lock().yielding, 4);
    drop(grows);
    assert!(now(&mut newcomer).await.is_some());
    assert_eq!(pool.0.lock().yielding, 0);
    drop(other);
}

#[tokio::test]
async fn users_with_as_little_as_the_newcomer_go_on() {
    let pool = FairSemaphore::new(4);
    let mut held = Vec::new();
    for name in ["ada", "ben", "cleo", "dan"] {
        let ticket = ticket();
        let source = user(name);
        let taken = pool.take_or_yield(&source, 1, Some(Arc::clone(&ticket)));
        held.push((taken.await, ticket));
    }
    let eve = user("eve");
    let mut newcomer = Box::pin(pool.take(&eve, 1));
    assert!(now(&mut newcomer).await.is_none());
    for (_, ticket) in &held {
        assert!(!has_to_end(ticket).await);
    }
    held.pop();
    assert!(now(&mut newcomer).await.is_some());
}

#[tokio::test]
async fn sources_take_turns_and_lower_ranks_come_first() {
    let pool = FairSemaphore::of_turns(1, 100);
    let busy = pool.take(&client(1), 1).await;
    let (eve, mal, ada) = (client(1), client(2), client(3));
    let mut waits = Vec::new();
    for (name, source, rank) in [
        ("eve 1", &eve, 1),
        ("eve 2", &eve, 1),
        ("eve 3", &eve, 1),
        ("mal 1", &mal, 1),
        ("mal 2", &mal, 1),
        ("ada", &ada, 0),
    ] {
        let mut taken = Box::pin(pool.take_ranked(source, rank));
        assert!(now(&mut taken).await.is_none());
        waits.push((name, taken));
    }
    drop(busy);
    let mut order = Vec::new();
    while !waits.is_empty() {
        for at in 0..waits.len() {
            if let Some(permit) = now(&mut waits[at].1).await {
                assert!(permit.is_some());
                order.push(waits.remove(at).0);
                break;
            }
        }
    }
    assert_eq!(order, ["ada", "eve 1", "mal 1", "eve 2", "mal 2", "eve 3"]);
}

#[tokio::test]
async fn where_too_many_wait_the_last_of_whom_most_wait_is_refused() {
    let pool = FairSemaphore::of_turns(1, 3);
    let _busy = pool.take(&user("ada"), 1).await;
    let (eve, ben) = (client(1), client(2));
    let mut waits: Vec<_> = (0..3)
        .map(|_| Box::pin(pool.take_ranked(&eve, 1)))
        .collect();
    for wait in &mut waits {
        assert!(now(wait).await.is_none());
    }
    let mut newcomer = Box::pin(pool.take_ranked(&ben, 1));
    assert!(now(&mut newcomer).await.is_none());
    let refused = now(&mut waits[2]).await;
    assert!(refused.is_some_and(|permit| permit.is_none()));
    // A request with a higher rank than all waiting ones is the one refused.
    let late = now(&mut Box::pin(pool.take_ranked(&client(3), 2))).await;
    assert!(late.is_some_and(|permit| permit.is_none()));
    assert!(now(&mut newcomer).await.is_none());
}

#[tokio::test]
async fn a_request_that_nobody_awaits_any_more_leaves_nothing_behind() {
    let pool = FairSemaphore::new(2);
    let held = pool.take(&user("ada"), 1).await;
    let (ada, ben) = (user("ada"), user("ben"));
    let mut waits = Box::pin(pool.take(&ada, 1));
    assert!(now(&mut waits).await.is_none());
    drop(waits);
    assert!(pool.0.lock().waiting.is_empty());
    // Granted, and dropped before the caller noticed.
    let other = pool.take(&ben, 1).await;
    let mut waits = Box::pin(pool.take(&ada, 1));
    assert!(now(&mut waits).await.is_none());
    drop(held);
    drop(waits);
    drop(other);
    assert_eq!(pool.free(), 2);
    assert!(pool.0.lock().shares.is_empty());
}
