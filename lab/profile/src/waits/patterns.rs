//! Finds the class and the function of a thread's wait by the functions of its stack.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::RegexSet;

use super::tables::{CALLS, CONDITION, EITHER, IDLE, KERNEL, Kernel, LOCK, RUNTIME};
use crate::class::Class;
use crate::kernel::call;

/// The name of a function of a stack, and whether it is the kernel's.
pub type Frame<'a> = (&'a str, bool);

/// The functions that identify waits.
#[derive(Clone, Debug)]
pub struct Patterns {
    lock: RegexSet,
    idle: RegexSet,
    /// The study's own functions of idle threads.
    own_idle: RegexSet,
    condition: RegexSet,
    either: RegexSet,
    runtime: RegexSet,
}

/// A pattern that isn't a regular expression.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{pattern:?} is no regular expression: {cause}")]
pub struct BadPattern {
    /// The pattern.
    pub pattern: String,
    /// The problem.
    pub cause: regex::Error,
}

fn set(patterns: &[&str]) -> RegexSet {
    RegexSet::new(patterns).expect("a test builds all of them")
}

impl Patterns {
    /// The built-in patterns, and regular expressions of functions in which threads have nothing to do.
    ///
    /// # Errors
    /// A pattern is not a regular expression.
    pub fn new(idle: &[String]) -> Result<Self, BadPattern> {
        for pattern in idle {
            regex::Regex::new(pattern).map_err(|cause| BadPattern {
                pattern: pattern.clone(),
                cause,
            })?;
        }
        let own_idle = RegexSet::new(idle).map_err(|cause| BadPattern {
            pattern: idle.join(", "),
            cause,
        })?;
        Ok(Self {
            lock: set(LOCK),
            idle: set(IDLE),
            own_idle,
            condition: set(CONDITION),
            either: set(EITHER),
            runtime: set(RUNTIME),
        })
    }

    /// Returns the built-in patterns alone.
    pub fn built_in() -> &'static Self {
        static ALL: LazyLock<Patterns> =
            LazyLock::new(|| Patterns::new(&[]).expect("no pattern is given"));
        &ALL
    }

    /// Returns the class of a thread's wait by its stack, innermost function first. Preempted threads wait for a core.
    ///
    /// The innermost known kernel function decides. For a futex, functions of the program decide.
    pub fn class(&self, stack: &[Frame<'_>], preempted: bool) -> Class {
        if preempted {
            return Class::NoCore;
        }
        let user = || {
            let user = stack.iter().filter(|(_, is_kernel)| !is_kernel);
            user.map(|(name, _)| *name)
        };
        match of_kernel(stack) {
            Some(Kernel::Is(Class::NoCore)) => Class::NoCore,
            Some(Kernel::Is(class) | Kernel::Exactly(class)) => self.blocked(class, user()),
            Some(Kernel::Futex) => self.futex(user()),
            None => match user().take(FROM_CALL).find_map(of_user) {
                Some(Kernel::Is(class) | Kernel::Exactly(class)) => self.blocked(class, user()),
                Some(Kernel::Futex) => self.futex(user()),
                None => match self.futex(user()) {
                    Class::LockOrCondition => Class::Other,
                    class => class,
                },
            },
        }
    }

    /// Returns the class of a thread's wait by the kernel function in which it sleeps (`/proc/PID/wchan`).
    pub fn of_wchan(&self, wchan: &str) -> Class {
        match of_kernel(&[(wchan.trim(), true)]) {
            Some(Kernel::Is(class) | Kernel::Exactly(class)) => class,
            Some(Kernel::Futex) => Class::LockOrCondition,
            None => Class::Other,
        }
    }

    /// Returns the function that ended a wait, by the stack of its thread, innermost function first. It is the innermost
    /// function of the program that neither belongs to a common library nor exists only to wake threads.
    pub fn waker<'a>(&self, stack: &[Frame<'a>]) -> Option<&'a str> {
        let user = stack.iter().filter(|(_, is_kernel)| !is_kernel);
        let mut names = user.map(|(name, _)| *name);
        names.find(|name| !self.is_runtime(name))
    }

    /// Returns true for a function of a library that all programs use, such as libc, or of a language's runtime.
    pub fn is_runtime(&self, function: &str) -> bool {
        let function = &*essential(function);
        [&self.runtime, &self.lock, &self.condition, &self.either]
            .iter()
            .any(|set| set.is_match(function))
    }

    /// The class of a futex wait, by functions of the program, the innermost first.
    fn futex<'a>(&self, user: impl Iterator<Item = &'a str>) -> Class {
        let mut found = Class::LockOrCondition;
        for name in user {
            let essential = &*essential(name);
            if self.lock.is_match(essential) {
                return Class::Lock;
            }
            if self.idle.is_match(essential) || self.own_idle.is_match(name) {
                return Class::Idle;
            }
            // Some functions are built from others; the outermost is the most specific.
            if self.either.is_match(essential) {
                found = Class::LockOrCondition;
            } else if self.condition.is_match(essential) {
                found = Class::Idle;
            }
        }
        found
    }

    /// The class of any other wait: threads also wait for locks by sleeping and polling.
    fn blocked<'a>(&self, class: Class, mut user: impl Iterator<Item = &'a str>) -> Class {
        let by_lock = matches!(class, Class::Poll | Class::Sleep);
        let found = user.find_map(|name| {
            if by_lock && self.lock.is_match(&essential(name)) {
                return Some(Class::Lock);
            }
            self.own_idle.is_match(name).then_some(Class::Idle)
        });
        found.unwrap_or(class)
    }
}

/// The number of the program's functions, from the system call outwards, that may be libc's wrapper of the call.
const FROM_CALL: usize = 4;

/// Returns the meaning of the kernel's functions, the innermost first.
fn of_kernel(stack: &[Frame<'_>]) -> Option<Kernel> {
    let names = || {
        let kernel = stack.iter().filter(|(_, is_kernel)| *is_kernel);
        kernel.map(|(name, _)| *name)
    };
    // A lock with priority inheritance is a mutex of the kernel, too.
    if names().any(|name| bare(name).starts_with("futex_lock_pi")) {
        return Some(Kernel::Is(Class::Lock));
    }
    let by_name = names().find_map(|name| {
        let name = bare(name);
        let known = KERNEL.iter().find(|(pattern, what)| match what {
            Kernel::Exactly(_) => name.split('.').next() == Some(*pattern),
            Kernel::Is(_) | Kernel::Futex => name.starts_with(pattern),
        });
        known
            .map(|(_, what)| *what)
            .or_else(|| is_sync(name).then_some(Kernel::Is(Class::Disk)))
    });
    by_name.or_else(|| names().filter_map(call).find_map(of_call))
}

/// A name without the types that it has as arguments or returns, which may be names of other functions:
/// `void a::B<c::D>::e(f::G)` is `a::B::e`.
fn essential(name: &str) -> Cow<'_, str> {
    let is_plain = !name.contains(['<', '(', ' ']);
    if is_plain || name.starts_with('[') || name.starts_with("py::") || name.contains("operator") {
        return Cow::Borrowed(name);
    }
    let mut kept = String::with_capacity(name.len());
    let (mut depth, mut before) = (0_usize, ' ');
    for c in name.chars() {
        match c {
            // In `<T as Trait>::function`, the type at the start is a part of the name.
            '<' if kept.is_empty() => kept.push(c),
            '<' => depth += 1,
            '>' if before == '-' || before == '=' => {}
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
        before = c;
    }
    if let Some(end) = arguments(&kept) {
        kept.truncate(end);
    }
    if !kept.starts_with('<')
        && let Some((_, last)) = kept.rsplit_once(' ')
        && !last.contains('/')
    {
        kept = last.to_owned();
    }
    Cow::Owned(kept)
}

/// Returns the start of a function's arguments, if a name ends with them. Go's `sync.(*Mutex).Lock` doesn't.
fn arguments(name: &str) -> Option<usize> {
    let whole = name.strip_suffix(" const").unwrap_or(name);
    let mut depth = 0_usize;
    for (at, c) in whole.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return (c == '(' && at > 0).then_some(at);
        }
    }
    None
}

/// A file system's function that writes a file to its disk.
fn is_sync(name: &str) -> bool {
    let whole = name.split('.').next().unwrap_or_default();
    whole.ends_with("_fsync") || whole.ends_with("_sync_file")
}

fn bare(name: &str) -> &str {
    name.trim_start_matches('_')
}

fn of_call(name: &str) -> Option<Kernel> {
    let known = CALLS.iter().find(|(names, _)| names.contains(&name));
    known.map(|(_, what)| *what)
}

/// Returns the meaning of libc's function for a system call.
fn of_user(name: &str) -> Option<Kernel> {
    let name = name.trim_start_matches("__GI_").trim_start_matches('_');
    let name = name.strip_suffix("_nocancel").unwrap_or(name);
    let name = match name {
        "recv" => "recvfrom",
        "send" => "sendto",
        "usleep" | "sleep" => "nanosleep",
        "waitpid" => "wait4",
        name => name,
    };
    of_call(name)
}
