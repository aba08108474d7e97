//! The built-in patterns: functions that identify the class of a wait.

use crate::class::Class;

/// Kernel functions in which threads wait, by prefixes of their names without leading underscores. The first match counts.
pub(super) const KERNEL: &[(&str, Kernel)] = &[
    ("futex_lock_pi", Kernel::Is(Class::Lock)),
    ("futex_", Kernel::Futex),
    ("do_futex", Kernel::Futex),
    // Ready, but without a core.
    ("preempt_schedule", Kernel::Is(Class::NoCore)),
    ("exit_to_user_mode", Kernel::Is(Class::NoCore)),
    ("irqentry_exit", Kernel::Is(Class::NoCore)),
    ("cond_resched", Kernel::Is(Class::NoCore)),
    ("do_sched_yield", Kernel::Is(Class::NoCore)),
    ("throttle_cfs_rq", Kernel::Is(Class::NoCore)),
    // Disks and file systems.
    ("io_schedule", Kernel::Is(Class::Disk)),
    ("blk_io_schedule", Kernel::Is(Class::Disk)),
    ("bit_wait_io", Kernel::Is(Class::Disk)),
    ("folio_wait", Kernel::Is(Class::Disk)),
    ("wait_on_page", Kernel::Is(Class::Disk)),
    ("wait_on_buffer", Kernel::Is(Class::Disk)),
    ("filemap_fdatawait", Kernel::Is(Class::Disk)),
    ("filemap_fault", Kernel::Is(Class::Disk)),
    ("file_write_and_wait", Kernel::Is(Class::Disk)),
    ("submit_bio", Kernel::Is(Class::Disk)),
    ("blk_", Kernel::Is(Class::Disk)),
    ("rq_qos_wait", Kernel::Is(Class::Disk)),
    ("balance_dirty_pages", Kernel::Is(Class::Disk)),
    ("jbd2_", Kernel::Is(Class::Disk)),
    ("start_this_handle", Kernel::Is(Class::Disk)),
    ("wait_transaction_locked", Kernel::Is(Class::Disk)),
    ("ext4_sync", Kernel::Is(Class::Disk)),
    ("xlog_", Kernel::Is(Class::Disk)),
    ("xfs_log_", Kernel::Is(Class::Disk)),
    ("xfs_buf_iowait", Kernel::Is(Class::Disk)),
    ("btrfs_", Kernel::Is(Class::Disk)),
    ("wait_current_trans", Kernel::Is(Class::Disk)),
    ("vfs_fsync", Kernel::Is(Class::Disk)),
    ("do_fsync", Kernel::Is(Class::Disk)),
    ("do_swap_page", Kernel::Is(Class::Disk)),
    ("read_events", Kernel::Is(Class::Disk)),
    // Event loops.
    ("ep_poll", Kernel::Is(Class::Poll)),
    ("do_epoll_wait", Kernel::Is(Class::Poll)),
    ("do_epoll_pwait", Kernel::Is(Class::Poll)),
    ("poll_schedule_timeout", Kernel::Is(Class::Poll)),
    ("do_poll", Kernel::Is(Class::Poll)),
    ("do_sys_poll", Kernel::Is(Class::Poll)),
    ("do_select", Kernel::Is(Class::Poll)),
    ("core_sys_select", Kernel::Is(Class::Poll)),
    ("do_pselect", Kernel::Is(Class::Poll)),
    ("io_cqring_wait", Kernel::Is(Class::Poll)),
    // Sockets.
    ("lock_sock", Kernel::Is(Class::KernelLock)),
    ("sk_wait_data", Kernel::Is(Class::Network)),
    ("wait_woken", Kernel::Is(Class::Network)),
    ("sk_stream_wait", Kernel::Is(Class::Network)),
    ("skb_wait_for_more_packets", Kernel::Is(Class::Network)),
    ("skb_recv_", Kernel::Is(Class::Network)),
    ("inet_csk_accept", Kernel::Is(Class::Network)),
    ("inet_csk_wait", Kernel::Is(Class::Network)),
    ("inet_wait_for_connect", Kernel::Is(Class::Network)),
    ("inet_", Kernel::Is(Class::Network)),
    ("inet6_", Kernel::Is(Class::Network)),
    ("tcp_", Kernel::Is(Class::Network)),
    ("udp", Kernel::Is(Class::Network)),
    ("unix_", Kernel::Is(Class::Network)),
    ("netlink_", Kernel::Is(Class::Network)),
    ("vsock_", Kernel::Is(Class::Network)),
    ("sock_", Kernel::Is(Class::Network)),
    // Locks of the kernel, and on files.
    ("mutex_lock", Kernel::Is(Class::KernelLock)),
    ("rt_mutex", Kernel::Is(Class::KernelLock)),
    ("rwsem_", Kernel::Is(Class::KernelLock)),
    ("down_", Kernel::Is(Class::KernelLock)),
    ("down", Kernel::Exactly(Class::KernelLock)),
    ("percpu_rwsem", Kernel::Is(Class::KernelLock)),
    ("percpu_down", Kernel::Is(Class::KernelLock)),
    ("locks_lock_inode_wait", Kernel::Is(Class::KernelLock)),
    ("flock_lock_inode_wait", Kernel::Is(Class::KernelLock)),
    ("posix_lock_inode_wait", Kernel::Is(Class::KernelLock)),
    ("fcntl_setlk", Kernel::Is(Class::KernelLock)),
    // Pipes, and the counters that threads wake each other with.
    ("pipe_", Kernel::Is(Class::Pipe)),
    ("anon_pipe_", Kernel::Is(Class::Pipe)),
    ("fifo_open", Kernel::Is(Class::Pipe)),
    ("wait_for_partner", Kernel::Is(Class::Pipe)),
    ("eventfd_", Kernel::Is(Class::Pipe)),
    // Children, times, signals.
    ("do_wait", Kernel::Exactly(Class::Child)),
    ("kernel_wait4", Kernel::Is(Class::Child)),
    ("kernel_waitid", Kernel::Is(Class::Child)),
    ("do_nanosleep", Kernel::Is(Class::Sleep)),
    ("hrtimer_nanosleep", Kernel::Is(Class::Sleep)),
    ("common_nsleep", Kernel::Is(Class::Sleep)),
    ("timerfd_", Kernel::Is(Class::Sleep)),
    ("do_sigtimedwait", Kernel::Is(Class::Idle)),
    ("sigsuspend", Kernel::Is(Class::Idle)),
    ("signalfd_", Kernel::Is(Class::Idle)),
    ("io_wq_worker", Kernel::Is(Class::Idle)),
];

/// The meaning of a kernel function.
#[derive(Clone, Copy)]
pub(super) enum Kernel {
    /// The class.
    Is(Class),
    /// The class, if the name has nothing after the pattern.
    Exactly(Class),
    /// A futex: functions of the program determine the class.
    Futex,
}

/// System calls, by their names, for stacks without a more specific function.
pub(super) const CALLS: &[(&[&str], Kernel)] = &[
    (
        &["futex", "futex_wait", "futex_waitv", "futex_time64"],
        Kernel::Futex,
    ),
    (
        &[
            "epoll_wait",
            "epoll_pwait",
            "epoll_pwait2",
            "poll",
            "ppoll",
            "select",
            "pselect6",
            "io_uring_enter",
        ],
        Kernel::Is(Class::Poll),
    ),
    (
        &[
            "accept", "accept4", "connect", "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg",
            "sendmmsg",
        ],
        Kernel::Is(Class::Network),
    ),
    (
        &[
            "fsync",
            "fdatasync",
            "msync",
            "sync",
            "syncfs",
            "sync_file_range",
            "io_getevents",
        ],
        Kernel::Is(Class::Disk),
    ),
    (&["nanosleep", "clock_nanosleep"], Kernel::Is(Class::Sleep)),
    (&["wait4", "waitid"], Kernel::Is(Class::Child)),
    (&["flock"], Kernel::Is(Class::KernelLock)),
    (
        &["pause", "rt_sigtimedwait", "rt_sigsuspend"],
        Kernel::Is(Class::Idle),
    ),
];

/// Functions that wait for a lock, whatever they call.
pub(super) const LOCK: &[&str] = &[
    // libc.
    r"pthread_mutex_(timed|clock|cond_)?lock",
    r"pthread_rwlock_(timed|clock)?(rd|wr)lock",
    r"lll_\w*lock_wait",
    r"lll_mutex_lock",
    // Rust: std, parking_lot, dashmap, once_cell, tokio.
    r"::(lock|read|write)_contended\b",
    r"\bRaw\w*(Lock|Mutex)\w*(<.*>)?>?::\w*lock_(\w+_)?slow\b",
    r"\bRaw\w*RwLock\w*(<.*>)?>?::lock_(common|upgrade\w*|shared|exclusive)\b",
    r"\bRaw\w*RwLock\w*(<.*>)?>?::wait_for_readers\b",
    r"\bonce::(futex|queue)::(Once::)?wait\b",
    r"\bonce_cell::imp::wait\b",
    r"\btokio::.*::blocking_(lock|read|write)(_owned)?\b",
    // C++: Abseil, TCMalloc, Folly, HotSpot, V8.
    r"\babsl::(\w+::)*Mutex::(Reader|Writer)?Lock",
    r"\bSpinLock::SlowLock\b|SpinLockDelay",
    r"\bfolly::SharedMutex\w*(<.*>)?::lock(Exclusive|Shared|Upgrade)Impl",
    r"\b(Platform|Plain|v8::base::)?(Recursive)?Mutex::[lL]ock\b",
    r"\bObjectMonitor::\w*[eE]nter\w*",
    r"\b(Object|Lightweight)Synchronizer::\w*enter\b|\bmonitorenter\b|complete_monitor_locking",
    // Java.
    r"\bReentrant\w*Lock(\$\w+)*[.;:]+\w*[lL]ock\w*",
    r"\bStampedLock[.;:]+(read|write|acquireRead|acquireWrite)",
    // Go.
    r"\bsync\.runtime_Semacquire|\bruntime\.semacquire|\bsync\.\(\*(RW)?Mutex\)\.r?[lL]ock",
    r"^runtime\.lock(2|WithRank)",
    // Python, Ruby, Erlang: the locks of their interpreters.
    r"^_?take_gil$|^_?PyMutex_Lock|^_PyRWMutex_R?Lock|^_PyRecursiveMutex_Lock",
    r"\bgvl_acquire|\bthread_sched_(to_running|wait_running_turn)",
    r"\bethr_(mutex|rwmutex)_\w*lock",
    // Databases.
    r"^LWLockAcquire|^ProcSleep$",
    r"\bsqlite(3|Default)\w*[bB]usy\w*",
    r"\bsync_array_wait_event|\brw_lock_s?x?_lock|\bTTASEventMutex|\block_wait_suspend_thread|\bMDL_wait::",
];

/// Functions that wait for work or for a condition, whatever they call.
pub(super) const IDLE: &[&str] = &[
    // Rust: channels, parking_lot, tokio, rayon, crossbeam.
    r"::(mpsc|mpmc|channel|flavors|flume|oneshot|kanal|async_channel|crossbeam_channel)\b.*::\w*recv(_\w+)?\b",
    r"^<?(flume|kanal|crossbeam_channel|oneshot|async_channel)::.*\brecv(_\w+)?\b",
    r"\btokio::runtime::scheduler::\w+::(park|worker)::.*::park(_\w+)?$",
    r"\bcrossbeam_channel::select::",
    r"\brayon_core::sleep::Sleep::sleep\b",
    // HotSpot and Java.
    r"\bObjectMonitor::wait\b|\bJavaThread::sleep\b|\bJVM_Sleep\b",
    r"worker_wait_for_task|\bGangWorker::",
    r"\bThreadPoolExecutor[.;:]+getTask\b|\bForkJoinPool[.;:]+awaitWork\b",
    r"\b\w+(Queue|Deque)(\$\w+)*[.;:]+(take|poll|xfer|transfer|awaitMatch)\w*",
    r"\bAbstractQueued(Long)?Synchronizer\$ConditionObject[.;:]+await\w*",
    r"\bCountDownLatch[.;:]+await|\bFutureTask[.;:]+awaitDone|\bCompletableFuture(\$\w+)*[.;:]+(waitingGet|timedGet|block)",
    // Go.
    r"^runtime\.(stopm|mPark|findRunnable|findrunnable|stoplockedm|sysmon|templateThread|notetsleepg)(\.|$)",
    r"\bsignal\.signal_recv\b",
    // Python.
    r"\bpy::(Condition\.wait|Event\.wait|Queue\.get|Thread\.join|_worker)\b",
    r"^_queue_SimpleQueue_get",
    // Erlang, libuv.
    r"^scheduler_wait$",
];

/// Functions that wait for a condition. Locks are also built from these, so they count only if no other function decides.
pub(super) const CONDITION: &[&str] = &[
    r"pthread_cond_(timed|clock)?wait",
    r"^cnd_(timed)?wait$",
    r"\bcondition_variable(_any)?::wait",
    r"\bCond(ition)?(_?[vV]ar(iable)?)?(<.*>)?::[wW]ait",
    r"\bstd::thread::(Thread::)?park|\bthread::(functions|current)::park|\bthread::park(_timeout)?\b",
    r"\btokio::runtime::park::",
    r"\bParker::park\b|\bparker::Inner::park|\bparking::Inner::park",
    r"pthread_(timed|clock)?join|\bJoinHandle(<.*>)?::join|\bJoinInner(<.*>)?::join",
    r"^uv_cond_(timed)?wait$",
    r"^runtime\.note(t)?sleep",
];

/// Functions that wait for either a lock or a condition. They override the condition variables that they are built from.
pub(super) const EITHER: &[&str] = &[
    r"\bparking_lot_core::parking_lot::park\b",
    r"^Unsafe_Park$|^Parker::park$|\bLockSupport[.;:]+park|\bUnsafe[.;:]+park\b",
    r"\bAbstractQueued(Long)?Synchronizer[.;:]+",
    r"^_PyParkingLot_Park|^_PySemaphore_Wait|PyThread_acquire_lock",
    r"\bFutexEmulation::Wait",
    r"\brocksdb::WriteThread::",
];

/// Functions that wake threads or that all programs contain. They are never reported as the waker or the waiting code.
pub(super) const RUNTIME: &[&str] = &[
    // libc and the start of threads.
    r"^_*(GI_)?_*(pthread_|lll_|libc_|futex_|(new_)?sem_|do_futex|mtx_|cnd_|nptl_)|^_*clone3?$",
    r"^_*(GI_)?_*(syscall|epoll_p?wait|poll|ppoll|select|pselect|read|write|readv|writev|pread|pwrite|recv|recvfrom|recvmsg|send|sendto|sendmsg|accept4?|connect|fsync|fdatasync|nanosleep|clock_nanosleep|usleep|sleep|wait4|waitpid|eventfd_write|sched_yield)(64)?(_nocancel)?$",
    r"^(_start|_exit|raise)$|^std::rt::|__rust_begin_short_backtrace|^__cxx_global|^start_thread",
    // Rust.
    r"^<?(&|mut |\*|dyn )*(std|core|alloc)::",
    r"^<?(&|mut |\*)*(parking_lot|parking_lot_core|lock_api|crossbeam\w*|tokio|tokio_util|mio|futures\w*|rayon\w*|flume|kanal|oneshot|once_cell|dashmap|async_channel|event_listener|parking|polling|libc|rustix)::",
    // C++.
    r"^(void |bool )?std::|^(__gnu_cxx|boost::asio|absl|folly)::|^operator |^execute_native_thread_routine",
    // Go.
    r"^(runtime|sync|internal/\w+|syscall|os/signal)[./]|^gogo$",
    // Java.
    r"^(java|javax|jdk|sun)\.|^Ljava/|^(Interpreter|call_stub|StubRoutines.*|Unsafe_\w+|JVM_\w+)$",
    r"^(Parker|Platform\w+|Runtime1|ObjectMonitor|ObjectSynchronizer|LightweightSynchronizer|SharedRuntime|InterpreterRuntime|Monitor|Mutex|JavaThread|Thread|JavaCalls|os)::|^thread_native_entry",
    // Node.js.
    r"^_*uv_|^(v8|node)::|^Builtins_",
    // Python and other interpreters.
    r"^_?Py[A-Z_]|^(take|drop)_gil|^lock_PyThread|^_queue_|^py::.*(/python3[.\d]*/(concurrent/|asyncio/|multiprocessing/)?\w+\.py|<frozen)",
    r"^(method|cfunction|builtin|slot|wrapper)_\w+$|^(acquire_timed|pysleep|time_sleep|eval_frame\w*|do_call_core|thread_run|pythread_wrapper|run_mod|run_eval_code_obj)$",
    // Names without a function.
    r"^\[",
];
