//! All users in memory, for look-ups that must not read the disk.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use groupware_store::StoreError;

use crate::name::without_nsf;
use crate::{Account, Credentials, Directory};

/// The local users by name. Kept up to date by [`publish`](crate::publish).
#[derive(Debug)]
pub struct Users {
    domain: String,
    organization: Option<String>,
    users: RwLock<HashMap<Arc<str>, Arc<Account>>>,
}

impl Users {
    /// Creates an empty directory for a domain.
    pub fn new(domain: &str) -> Self {
        Self {
            domain: domain.to_ascii_lowercase(),
            organization: None,
            users: RwLock::default(),
        }
    }

    /// Sets the organization that canonical names may contain.
    #[must_use]
    pub fn with_organization(self, organization: Option<String>) -> Self {
        Self {
            organization,
            ..self
        }
    }

    /// Finds the user of this name, in any case.
    pub fn find(&self, name: &str) -> Option<Arc<Account>> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return users.get(name.to_ascii_lowercase().as_str()).cloned();
        }
        users.get(name).cloned()
    }

    /// Finds the local user of a name, an address (`name@domain`, with or without `mailto:`), or a canonical name
    /// (`CN=name/O=organization`), which may contain only this server's organization.
    pub fn resolve(&self, address: &str) -> Option<Arc<Account>> {
        self.find(self.local_name(address)?)
    }

    /// Returns the name that a local user of this address would have, whether or not the user exists.
    pub fn local_name<'a>(&self, address: &'a str) -> Option<&'a str> {
        let address = without_prefix(address, "mailto:").unwrap_or(address);
        if let Some(canonical) = without_prefix(address, "cn=") {
            let (name, rest) = canonical.split_once('/').unwrap_or((canonical, ""));
            return self.is_of_organization(rest).then_some(name);
        }
        match address.rsplit_once('@') {
            Some((name, domain)) if domain.eq_ignore_ascii_case(&self.domain) => Some(name),
            Some(_) => None,
            None => Some(without_nsf(address)),
        }
    }

    /// Returns the name that a user signs in by. Of a canonical name only the first part counts, not the organization:
    /// the password proves the identity.
    pub fn login_name<'a>(&self, user: &'a str) -> Option<&'a str> {
        match without_prefix(user, "cn=") {
            Some(canonical) => canonical.split('/').next(),
            None => self.local_name(user),
        }
    }

    /// Returns true if the rest of a canonical name is of this server's organization. A name without any is local.
    fn is_of_organization(&self, rest: &str) -> bool {
        let organization = rest.split('/').find_map(|part| without_prefix(part, "o="));
        match (rest.is_empty(), organization, &self.organization) {
            (true, ..) => true,
            (_, Some(of), Some(known)) => of.eq_ignore_ascii_case(known),
            _ => false,
        }
    }

    /// Returns the number of users.
    pub fn len(&self) -> usize {
        self.users
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Returns true if there are no users.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys of all users, in no order.
    pub fn keys(&self) -> Vec<Arc<str>> {
        self.users
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .keys()
            .cloned()
            .collect()
    }

    /// Returns at most `most` keys of users that begin with this prefix, in order.
    pub fn beginning_with(&self, begin: &str, most: usize) -> Vec<Arc<str>> {
        let begin = begin.to_ascii_lowercase();
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<_> = users
            .keys()
            .filter(|name| name.starts_with(&begin))
            .cloned()
            .collect();
        drop(users);
        names.sort_unstable();
        names.truncate(most);
        names
    }

    /// Returns at most `most` users with the right to manage others, in order of their names.
    pub fn administrators(&self, most: usize) -> Vec<Arc<Account>> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<_> = users
            .values()
            .filter(|account| account.credentials().admin)
            .cloned()
            .collect();
        drop(users);
        found.sort_unstable_by(|a, b| a.name.key().cmp(b.name.key()));
        found.truncate(most);
        found
    }

    /// Returns at most `most` users after this name, or from the first on, in order of their names.
    pub fn after(&self, name: &str, most: usize) -> Vec<Arc<Account>> {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<&Arc<str>> = users.keys().filter(|key| &***key > name).collect();
        let most = most.min(names.len());
        if most < names.len() {
            names.select_nth_unstable(most);
        }
        names.truncate(most);
        names.sort_unstable();
        names
            .into_iter()
            .filter_map(|name| users.get(name).cloned())
            .collect()
    }

    pub(crate) fn insert(&self, accounts: impl IntoIterator<Item = Arc<Account>>) {
        let accounts = accounts
            .into_iter()
            .map(|account| (Arc::clone(account.name.key()), account));
        self.write().extend(accounts);
    }

    /// Applies a user's stored record. A user of the same registration stays the same object, with new credentials.
    pub(crate) fn take(&self, stored: Account) {
        let mut users = self.write();
        let known = users.get(stored.name.key());
        if let Some(known) = known.filter(|known| known.created == stored.created) {
            let mut credentials = Credentials::clone(&stored.credentials());
            credentials.remember_uses(&known.credentials());
            known.set_credentials(credentials);
            return;
        }
        let another = users.insert(Arc::clone(stored.name.key()), Arc::new(stored));
        drop(users);
        if let Some(another) = another {
            another.leave();
        }
    }

    /// Removes a deleted user and ends all of the user's sessions.
    pub fn remove(&self, key: &str) {
        let gone = self.write().remove(key);
        if let Some(gone) = gone {
            gone.leave();
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<Arc<str>, Arc<Account>>> {
        self.users.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

impl Directory for Users {
    fn user(&self, address: &str) -> Result<Option<String>, StoreError> {
        Ok(self
            .resolve(address)
            .map(|account| account.name.key().to_string()))
    }

    fn registered(&self, user: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.find(user).map(|account| account.created))
    }

    fn email(&self, user: &str) -> String {
        [user, "@", &self.domain].concat()
    }

    fn domain(&self) -> &str {
        &self.domain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UserName;

    #[test]
    fn users_are_found_by_how_their_name_begins() {
        let directory = Users::new("localhost");
        let accounts = ["Ada", "adam", "eve", "ad"].map(|name| {
            let name = UserName::parse(name).unwrap();
            Arc::new(Account::new(name, 0, Credentials::default()))
        });
        directory.insert(accounts);
        let found = |begin, most| directory.beginning_with(begin, most).join(" ");
        assert_eq!(found("AD", 9), "ad ada adam");
        assert_eq!(found("ad", 2), "ad ada");
        assert_eq!(found("x", 9), "");
    }

    #[test]
    fn users_are_found_by_name_and_address() {
        let directory = Users::new("Example.org").with_organization(Some("Acme".to_owned()));
        let name = UserName::parse("Ada").unwrap();
        directory.insert([Arc::new(Account::new(name, 0, Credentials::default()))]);
        let found = |text| {
            directory
                .resolve(text)
                .map(|account| account.name.key().to_string())
        };
        for good in [
            "Ada",
            "ada",
            "ADA.nsf",
            "ada@example.org",
            "MAILTO:Ada@EXAMPLE.org",
            "CN=Ada/O=Acme",
            "cn=ADA/OU=East/O=Acme",
            "CN=ada",
        ] {
            assert_eq!(found(good).as_deref(), Some("ada"), "{good}");
        }
        for bad in [
            "",
            "@",
            "ada@",
            "ada@example.com",
            "@example.org",
            "eve",
            "CN=eve/O=Acme",
            "CN=ada/O=Elsewhere",
            "CN=ada/O=Acme Elsewhere",
            "CN=ada/OU=Acme",
            "CN=ada/C=DE",
            "CN=/O=ada",
            "O=ada",
            "ada/O=Acme",
            "ädä@example.org",
        ] {
            assert_eq!(found(bad), None, "{bad}");
        }
    }
    #[test]
    fn without_an_organization_no_canonical_name_of_one_is_local() {
        let directory = Users::new("example.org");
        let name = UserName::parse("ada").unwrap();
        directory.insert([Arc::new(Account::new(name, 0, Credentials::default()))]);
        assert!(directory.resolve("CN=ada").is_some());
        for foreign in ["CN=ada/O=Elsewhere", "cn=ada/ou=x/o=y", "CN=ada/C=DE"] {
            assert!(directory.resolve(foreign).is_none(), "{foreign}");
            assert_eq!(directory.login_name(foreign), Some("ada"), "{foreign}");
        }
        assert_eq!(directory.login_name("ada@example.org"), Some("ada"));
        assert_eq!(directory.login_name("ada@elsewhere.org"), None);
    }
}
