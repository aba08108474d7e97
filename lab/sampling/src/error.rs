//! Why a system can't be sampled.

use std::io;

/// Why a system isn't sampled, in sentences for people.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The kernel denies it to this user.
    #[error(
        "the kernel does not let this user sample whole cores (kernel.perf_event_paranoid is {paranoid}); run as root, or \
         give the program CAP_PERFMON"
    )]
    NotAllowed {
        /// The setting, or "unknown".
        paranoid: String,
    },
    /// The system call is blocked, as containers do.
    #[error(
        "the system call perf_event_open is blocked here, which is the default in containers; give the container CAP_PERFMON, or profile \
         the system from the host"
    )]
    Blocked,
    /// The kernel has no such events.
    #[error("the kernel has no performance events (perf_event_open)")]
    NoEvents,
    /// No process of the system is alive, or none is known.
    #[error("no process of the system is known on this machine")]
    NoProcess,
    /// The kernel lets this user lock too little memory for the samples.
    #[error(
        "the kernel allows this user too little memory for samples ({0}); raise kernel.perf_event_mlock_kb, or give the \
         program CAP_IPC_LOCK"
    )]
    NoMemory(#[source] io::Error),
    /// A pattern of idle functions is wrong.
    #[error("profile.idle: {0}")]
    Idle(String),
    /// Sampling failed within this program.
    #[error("the thread that samples the system panicked")]
    Panicked,
    /// Something else.
    #[error("the kernel refused to sample the system's cores: {0}")]
    Other(#[source] io::Error),
}

impl Refused {
    pub(crate) fn open(error: io::Error) -> Self {
        use nix::errno::Errno;
        let code = error.raw_os_error().map(Errno::from_raw);
        match code {
            Some(Errno::EACCES) => Self::NotAllowed {
                paranoid: paranoid(),
            },
            Some(Errno::EPERM) => Self::Blocked,
            Some(Errno::ENOSYS) => Self::NoEvents,
            _ => Self::Other(error),
        }
    }
}

fn paranoid() -> String {
    let value = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    value.map_or_else(|_| "unknown".to_owned(), |value| value.trim().to_owned())
}
