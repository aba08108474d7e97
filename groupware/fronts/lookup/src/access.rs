//! Who may register, as it was set.
//!
//! The original services need no credentials. This one needs them unless it is set to `open`.

use std::str::FromStr;

/// Who may change registrations. Everybody may read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupAccess {
    /// Whoever can reach the server.
    Open,
    /// Users, each their own, and who has the admin token.
    Users,
    /// There is no lookup service.
    Off,
}

/// The names that settings have for it, in the order of the variants.
const NAMES: [(&str, LookupAccess); 3] = [
    ("open", LookupAccess::Open),
    ("users", LookupAccess::Users),
    ("off", LookupAccess::Off),
];

impl FromStr for LookupAccess {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, access)| *access)
            .ok_or_else(|| "one of open, users, off".to_owned())
    }
}

/// Who may register: users by default.
#[derive(Debug, Clone, Copy)]
pub struct Access(LookupAccess);

impl Access {
    /// As it was set. By default, users: an address says nothing, since any program may hand on connections.
    pub fn new(set: Option<LookupAccess>) -> Self {
        Self(set.unwrap_or(LookupAccess::Users))
    }

    /// Whether there is no lookup service.
    pub fn is_off(self) -> bool {
        self.0 == LookupAccess::Off
    }

    /// Whether anybody may register.
    pub(crate) fn is_open(self) -> bool {
        self.0 == LookupAccess::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_register_unless_it_is_set_otherwise() {
        for (set, is_open, is_off) in [
            (None, false, false),
            (Some("users"), false, false),
            (Some("open"), true, false),
            (Some("off"), false, true),
        ] {
            let access = Access::new(set.map(|name| name.parse().unwrap()));
            assert_eq!(
                (access.is_open(), access.is_off()),
                (is_open, is_off),
                "{set:?}"
            );
        }
        assert!("everybody".parse::<LookupAccess>().is_err());
    }
}
