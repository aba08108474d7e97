//! Who may register, as it was set.
//!
//! The original services ask nobody who they are. Here that holds only as long as nobody but this
//! machine can reach the server.

use std::str::FromStr;

use groupware_runtime::Via;

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

/// Who may register, as it was set or as it follows from who can reach the server.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    access: LookupAccess,
    /// Nobody said so: a proxy that hands on what others ask makes it a service for users.
    is_default: bool,
}

impl Access {
    /// As it was set; by default, whoever can reach the server, if that is this machine alone.
    pub fn new(set: Option<LookupAccess>, exposed: bool) -> Self {
        let default = match exposed {
            true => LookupAccess::Users,
            false => LookupAccess::Open,
        };
        Self {
            access: set.unwrap_or(default),
            is_default: set.is_none(),
        }
    }

    /// Whether there is no lookup service.
    pub fn is_off(self) -> bool {
        self.access == LookupAccess::Off
    }

    /// Whether whoever comes so may register.
    pub(crate) fn is_open_to(self, via: Via) -> bool {
        self.access == LookupAccess::Open && !(self.is_default && via != Via::Nobody)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_be_reached_by_others_asks_who_they_are() {
        let proxied = [Via::Unknown, Via::Proxy([192, 0, 2, 1].into())];
        let check = |set, exposed, from_here, from_proxy| {
            let access = Access::new(set, exposed);
            let is_open = |via| access.is_open_to(via);
            assert_eq!(is_open(Via::Nobody), from_here, "{set:?} {exposed}");
            assert_eq!(proxied.map(is_open), [from_proxy; 2], "{set:?} {exposed}");
        };
        check(None, false, true, false);
        check(None, true, false, false);
        check(Some(LookupAccess::Open), true, true, true);
        check(Some(LookupAccess::Users), false, false, false);
        check(Some(LookupAccess::Off), false, false, false);
    }
}
