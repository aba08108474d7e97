//! Two servers over one store: each knows the other's changes.

use groupware_auth::{Auth, Ends, Settings, SignInError};
use groupware_people::{NewUser, UserName};
use groupware_runtime::{Caller, Client, clock};
use groupware_store::{Batch, Store, StoreOptions};

const RIGHT: &str = "correct horse";
const NEW: &str = "battery staple";

fn name(text: &str) -> UserName {
    UserName::parse(text).unwrap()
}

fn start(store: &Store) -> Auth {
    let settings = Settings {
        is_shared: true,
        ..Settings::default()
    };
    Auth::start(store, &settings).unwrap()
}

fn two() -> (Auth, Auth) {
    let store = Store::memory(StoreOptions::default()).unwrap();
    (start(&store), start(&store))
}

async fn set_password(auth: &Auth, user: &str, password: &str) {
    let hash = auth
        .passwords
        .hash(&Caller::internal(), password.to_owned())
        .await
        .unwrap();
    let set = auth.accounts.set_password(name(user), hash, 0, 0);
    set.await.unwrap();
}

/// Signs in, and returns the token of a session.
async fn sign_in(auth: &Auth, user: &str, password: &str) -> Result<String, SignInError> {
    let (caller, client) = (Caller::internal(), Client::at([0, 0, 0, 0].into()));
    let proven = auth.verify(&caller, client, user, password).await?;
    auth.start_session(&proven).await
}

fn is_signed_in(auth: &Auth, token: &str) -> bool {
    auth.session(token).unwrap().is_some()
}

#[tokio::test]
async fn a_user_whom_one_registers_is_known_to_the_other_at_once() {
    let (one, other) = two();
    assert!(other.find("ada").unwrap().is_none());
    set_password(&one, "Ada", RIGHT).await;
    let found = other.people().user("ADA@localhost").unwrap();
    assert_eq!(found.as_deref(), Some("ada"));
    assert!(sign_in(&other, "ada", RIGHT).await.is_ok());
    assert!(other.people().user("eve").unwrap().is_none());
    assert!(other.people().user("ada@elsewhere").unwrap().is_none());
    // The other server also finds the time of registration.
    assert_eq!(other.people().registered("ben").unwrap(), None);
    set_password(&one, "ben", RIGHT).await;
    assert_eq!(other.people().registered("ben").unwrap(), Some(0));
}

#[tokio::test]
async fn a_session_holds_at_both_until_either_ends_it() {
    let (one, other) = two();
    set_password(&one, "ada", RIGHT).await;
    let first = sign_in(&one, "ada", RIGHT).await.unwrap();
    let second = sign_in(&other, "ada", RIGHT).await.unwrap();
    for token in [&first, &second] {
        assert!(is_signed_in(&one, token) && is_signed_in(&other, token));
    }
    let account = other.find("ada").unwrap().unwrap();
    let lines = other
        .sessions
        .of(&account, Some(&second), clock::unix_seconds())
        .unwrap();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines.iter().filter(|line| line.is_own).count(), 1);
    one.sessions.end(&first).await.unwrap();
    assert!(!is_signed_in(&one, &first));
    // The other server notices at its next read, twice a second.
    other.keep_up().unwrap();
    assert!(!is_signed_in(&other, &first) && is_signed_in(&other, &second));
    let id = &lines.iter().find(|line| line.is_own).unwrap().id;
    assert!(one.sessions.end_one(&account, id).await.unwrap());
    assert!(!one.sessions.end_one(&account, id).await.unwrap());
    other.keep_up().unwrap();
    assert!(!is_signed_in(&other, &second));
}

#[tokio::test]
async fn a_new_password_ends_what_began_with_the_old_one() {
    let (one, other) = two();
    set_password(&one, "ada", RIGHT).await;
    let kept = sign_in(&one, "ada", RIGHT).await.unwrap();
    let lost = sign_in(&other, "ada", RIGHT).await.unwrap();
    assert!(is_signed_in(&one, &lost) && is_signed_in(&other, &kept));
    let caller = Caller::internal();
    let hash = one.passwords.hash(&caller, NEW.to_owned()).await.unwrap();
    let changed = one
        .accounts
        .change_password("ada", hash, Ends::AllBut(&kept));
    changed.await.unwrap();
    // The new password needs no wait.
    let new = sign_in(&other, "ada", NEW).await.unwrap();
    for auth in [&one, &other] {
        assert!(is_signed_in(auth, &kept) && is_signed_in(auth, &new));
        assert!(!is_signed_in(auth, &lost));
        let wrong = sign_in(auth, "ada", RIGHT).await;
        assert!(matches!(wrong, Err(SignInError::Wrong)), "{wrong:?}");
    }
    one.accounts.set_disabled("ada", true).await.unwrap();
    other.keep_up().unwrap();
    assert!(!is_signed_in(&other, &kept) && !is_signed_in(&other, &new));
    assert!(sign_in(&other, "ada", NEW).await.is_err());
}

#[tokio::test]
async fn a_program_loses_its_password_at_both() {
    let (one, other) = two();
    let user = NewUser {
        name: name("ada"),
        app_password: Some("phone"),
        pad_bytes: 0,
    };
    let made = one.accounts.register(vec![user], 0).await.unwrap();
    let password = made[0].app_password.clone().unwrap();
    let token = sign_in(&other, "ada", &password).await.unwrap();
    assert!(other.recognise("ada", &password).is_some());
    let id = one
        .find("ada")
        .unwrap()
        .unwrap()
        .credentials()
        .app_passwords[0]
        .id
        .clone();
    let removed = one.accounts.remove_app_password("ada", &id, Ends::All);
    removed.await.unwrap();
    other.keep_up().unwrap();
    assert!(other.recognise("ada", &password).is_none());
    assert!(!is_signed_in(&other, &token));
}

#[tokio::test]
async fn changes_of_both_at_once_are_all_made() {
    let (one, other) = two();
    set_password(&one, "ada", RIGHT).await;
    let make = async |auth: &Auth, of: &str| {
        for number in 0..8 {
            let label = format!("{of}{number}");
            let made = auth.accounts.add_app_password("ada", &label, 0).await;
            made.unwrap();
            set_password(auth, &label, RIGHT).await;
        }
    };
    tokio::join!(make(&one, "a"), make(&other, "b"));
    for auth in [&one, &other] {
        auth.keep_up().unwrap();
        let ada = auth.find("ada").unwrap().unwrap();
        assert_eq!(ada.credentials().app_passwords.len(), 16);
        assert_eq!(auth.directory().len(), 17);
    }
}

#[tokio::test]
async fn a_user_who_comes_after_another_of_the_name_is_another() {
    let (one, other) = two();
    set_password(&one, "ada", RIGHT).await;
    let token = sign_in(&other, "ada", RIGHT).await.unwrap();
    one.accounts.delete("ada").await.unwrap();
    other.keep_up().unwrap();
    assert!(!is_signed_in(&other, &token));
    assert!(other.find("ada").unwrap().is_none());
    set_password(&other, "ada", RIGHT).await;
    for auth in [&one, &other] {
        assert!(!is_signed_in(auth, &token));
        assert!(sign_in(auth, "ada", RIGHT).await.is_ok());
    }
}

/// One server has removed a user, and stopped before the data was removed; the next registers a user of the same name.
#[tokio::test]
async fn nobody_finds_the_data_of_another_of_the_name() {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let one = start(&store);
    set_password(&one, "ada", RIGHT).await;
    let mut batch = Batch::new();
    batch.put("ada", "m/x", "mail");
    // The first batch of a removal.
    let account = one.find("ada").unwrap().unwrap();
    let mut removal = groupware_people::delete(&account);
    batch.asserts.append(&mut removal.asserts);
    batch.ops.append(&mut removal.ops);
    store.commit(batch).await.unwrap();
    drop(one);
    let other = start(&store);
    set_password(&other, "ada", RIGHT).await;
    let left = store.read(|snapshot| snapshot.get("ada", b"m/x")).unwrap();
    assert!(left.is_none());
    assert!(store.read(groupware_people::leaving).unwrap().is_empty());
}

#[tokio::test]
async fn sessions_outlast_the_server() {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let auth = start(&store);
    set_password(&auth, "ada", RIGHT).await;
    let token = sign_in(&auth, "ada", RIGHT).await.unwrap();
    let ended = sign_in(&auth, "ada", RIGHT).await.unwrap();
    auth.sessions.end(&ended).await.unwrap();
    drop(auth);
    let auth = start(&store);
    assert_eq!(auth.sessions.count(), 0);
    assert!(is_signed_in(&auth, &token) && !is_signed_in(&auth, &ended));
    assert_eq!(auth.sessions.count(), 1);
}
