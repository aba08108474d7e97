//! Wait classes of the stacks of real programs. Most were read with `gdb` and from `/proc/PID/stack` (Linux 6.18).

use lab_profile::waits::{Class, Frame, Patterns};
use proptest::prelude::*;

const FUTEX: &str = "futex_do_wait;__futex_wait;futex_wait;do_futex;__x64_sys_futex;do_syscall_64";
const COND: &str = "__futex_abstimed_wait_common64;__futex_abstimed_wait_common;__GI___futex_abstimed_wait_cancelable64;__pthread_cond_wait_common;___pthread_cond_wait";
const SEM: &str = "__futex_abstimed_wait_common64;__futex_abstimed_wait_common;__GI___futex_abstimed_wait_cancelable64;do_futex_wait;__new_sem_wait_slow64;__new_sem_wait";
const PARKING_LOT: &str = "syscall;parking_lot_core::thread_parker::imp::ThreadParker::futex_wait;<parking_lot_core::thread_parker::imp::ThreadParker as parking_lot_core::thread_parker::ThreadParkerT>::park;parking_lot_core::parking_lot::park::{{closure}};parking_lot_core::parking_lot::with_thread_data;parking_lot_core::parking_lot::park";
const STD_PARK: &str = "syscall;std::sys::pal::unix::futex::futex_wait;std::sys::sync::thread_parking::futex::Parker::park;std::thread::Thread::park;std::thread::functions::park";

fn patterns() -> &'static Patterns {
    Patterns::built_in()
}

/// A stack of functions of the kernel and of the program, the innermost first.
fn stack<'a>(kernel: &'a str, user: &'a str) -> Vec<Frame<'a>> {
    let split = |text: &'a str| text.split(';').filter(|name| !name.is_empty());
    let kernel = split(kernel).map(|name| (name, true));
    kernel
        .chain(split(user).map(|name| (name, false)))
        .collect()
}

/// The class of a futex wait below these functions.
fn futex(user: &str) -> Class {
    patterns().class(&stack(FUTEX, user), false)
}

#[test]
fn kernel_functions_say_what_a_thread_waits_for() {
    for (kernel, class) in [
        ("schedule;anon_pipe_read;vfs_read;ksys_read", Class::Pipe),
        ("schedule;pipe_write;vfs_write;ksys_write", Class::Pipe),
        (
            "do_wait_intr_irq;eventfd_read;vfs_read;ksys_read",
            Class::Pipe,
        ),
        (
            "do_nanosleep;hrtimer_nanosleep;common_nsleep_timens;__x64_sys_clock_nanosleep",
            Class::Sleep,
        ),
        (
            "schedule_hrtimeout_range;poll_schedule_timeout.constprop.0;do_sys_poll;__x64_sys_poll",
            Class::Poll,
        ),
        (
            "schedule_hrtimeout_range_clock;ep_poll;do_epoll_wait;__x64_sys_epoll_wait",
            Class::Poll,
        ),
        ("schedule;do_epoll_wait;__x64_sys_epoll_wait", Class::Poll),
        ("schedule;do_wait;kernel_wait4;__do_sys_wait4", Class::Child),
        (
            "inet_csk_accept;inet_accept;do_accept;__sys_accept4",
            Class::Network,
        ),
        (
            "unix_stream_read_generic;unix_stream_recvmsg;sock_recvmsg;__sys_recvfrom",
            Class::Network,
        ),
        (
            "__skb_wait_for_more_packets;__skb_recv_udp;udp_recvmsg;sock_recvmsg",
            Class::Network,
        ),
        (
            "schedule_timeout;wait_woken;sk_wait_data;tcp_recvmsg_locked;tcp_recvmsg",
            Class::Network,
        ),
        (
            "locks_lock_inode_wait;__do_sys_flock;do_syscall_64",
            Class::KernelLock,
        ),
        (
            "schedule_preempt_disabled;rwsem_down_write_slowpath;down_write_killable;do_mprotect_pkey",
            Class::KernelLock,
        ),
        (
            "schedule_preempt_disabled;__mutex_lock.constprop.0;ext4_file_write_iter;vfs_write",
            Class::KernelLock,
        ),
        (
            "io_schedule;folio_wait_bit_common;folio_wait_writeback;__filemap_fdatawait_range;file_write_and_wait_range;ext4_sync_file;do_fsync",
            Class::Disk,
        ),
        (
            "schedule;jbd2_log_wait_commit;ext4_fsync_journal;ext4_sync_file;__x64_sys_fdatasync",
            Class::Disk,
        ),
        ("schedule;wait_for_completion;overlay_fsync", Class::Disk),
        ("schedule;__do_sys_pause;do_syscall_64", Class::Idle),
        (
            "schedule;do_sigtimedwait.isra.0;__x64_sys_rt_sigtimedwait",
            Class::Idle,
        ),
        (
            "schedule;rt_mutex_schedule;rt_mutex_slowlock_block;futex_lock_pi;do_futex",
            Class::Lock,
        ),
        ("schedule;exit_to_user_mode_loop", Class::NoCore),
        ("schedule;something_new;__x64_sys_accept4", Class::Network),
        ("schedule;ptrace_stop;do_signal_stop", Class::Other),
        ("", Class::Other),
    ] {
        assert_eq!(
            patterns().class(&stack(kernel, "work;main"), false),
            class,
            "{kernel}"
        );
        assert_eq!(
            patterns().class(&stack(kernel, "work;main"), true),
            Class::NoCore
        );
    }
}

#[test]
fn a_wait_channel_says_the_class_without_a_stack() {
    for (wchan, class) in [
        ("futex_do_wait", Class::LockOrCondition),
        ("futex_wait_queue_me", Class::LockOrCondition),
        ("do_epoll_wait", Class::Poll),
        ("ep_poll", Class::Poll),
        ("poll_schedule_timeout.constprop.0", Class::Poll),
        ("hrtimer_nanosleep", Class::Sleep),
        ("wait_woken", Class::Network),
        ("anon_pipe_read", Class::Pipe),
        ("do_wait", Class::Child),
        ("do_wait_intr_irq", Class::Other),
        ("jbd2_log_wait_commit", Class::Disk),
        ("folio_wait_bit_common", Class::Disk),
        ("__do_sys_pause", Class::Idle),
        ("0", Class::Other),
        ("", Class::Other),
    ] {
        assert_eq!(patterns().of_wchan(wchan), class, "{wchan}");
    }
}

#[test]
fn futex_waits_of_c() {
    let cond = |more: &str| futex(&format!("{COND};{more}"));
    assert_eq!(
        futex(
            "futex_wait;__GI___lll_lock_wait;lll_mutex_lock_optimized;___pthread_mutex_lock;a;start_thread;clone3"
        ),
        Class::Lock
    );
    assert_eq!(
        futex("__futex_lock_pi64;__pthread_mutex_lock_full;___pthread_mutex_lock;e"),
        Class::Lock
    );
    assert_eq!(
        futex(
            "__futex_abstimed_wait_common;__GI___futex_abstimed_wait64;__pthread_rwlock_rdlock_full64;___pthread_rwlock_rdlock;b"
        ),
        Class::Lock
    );
    assert_eq!(cond("d;start_thread;clone3"), Class::Idle);
    // The condition holds, and its mutex is taken again.
    assert_eq!(
        futex(
            "futex_wait;__GI___lll_lock_wait;__pthread_mutex_cond_lock;__pthread_cond_wait_common;___pthread_cond_wait;d"
        ),
        Class::Lock
    );
    // A semaphore is either.
    assert_eq!(futex(&format!("{SEM};c")), Class::LockOrCondition);
    assert_eq!(
        futex("__futex_abstimed_wait_common64;__pthread_clockjoin_ex;___pthread_join;main"),
        Class::Idle
    );
    assert_eq!(futex("my_own_lock;main"), Class::LockOrCondition);
    assert_eq!(futex("pthread_mutex_unlock;main"), Class::LockOrCondition);
    assert_eq!(
        futex(&format!("{SEM};PGSemaphoreLock;LWLockAcquire;heap_update")),
        Class::Lock
    );
}

#[test]
fn futex_waits_of_rust() {
    let std = |function: &str| {
        futex(&format!(
            "syscall;std::sys::pal::unix::futex::futex_wait;{function};shop::serve"
        ))
    };
    for (function, class) in [
        (
            "std::sys::sync::mutex::futex::Mutex::lock_contended;std::sync::poison::mutex::Mutex<T>::lock",
            Class::Lock,
        ),
        (
            "std::sys::sync::rwlock::futex::RwLock::read_contended",
            Class::Lock,
        ),
        (
            "std::sys::sync::rwlock::futex::RwLock::write_contended",
            Class::Lock,
        ),
        (
            "std::sys::sync::condvar::futex::Condvar::wait_optional_timeout;std::sync::poison::condvar::Condvar::wait",
            Class::Idle,
        ),
        // Another thread initialises a value.
        (
            "std::sys::sync::once::futex::Once::call;std::sync::lazy_lock::LazyLock<i32>::force",
            Class::LockOrCondition,
        ),
    ] {
        assert_eq!(std(function), class, "{function}");
    }
    let park = |more: &str| futex(&format!("{STD_PARK};{more};shop::serve"));
    for (more, class) in [
        ("shop::wait", Class::Idle),
        (
            "std::sync::mpmc::context::Context::wait_until;std::sync::mpmc::list::Channel<T>::recv::{{closure}};std::sync::mpmc::list::Channel<T>::recv",
            Class::Idle,
        ),
        (
            "crossbeam_channel::context::Context::wait_until;crossbeam_channel::flavors::array::Channel<T>::recv::{{closure}}",
            Class::Idle,
        ),
        (
            "crossbeam_channel::context::Context::wait_until;crossbeam_channel::select::run_select::{{closure}}",
            Class::Idle,
        ),
    ] {
        assert_eq!(park(more), class, "{more}");
    }
    let parking_lot = |more: &str| futex(&format!("{PARKING_LOT};{more};shop::serve"));
    for (more, class) in [
        (
            "parking_lot::raw_mutex::RawMutex::lock_slow;<parking_lot::raw_mutex::RawMutex as lock_api::mutex::RawMutex>::lock",
            Class::Lock,
        ),
        (
            "parking_lot::raw_rwlock::RawRwLock::lock_common;parking_lot::raw_rwlock::RawRwLock::lock_shared_slow",
            Class::Lock,
        ),
        (
            "parking_lot::raw_rwlock::RawRwLock::lock_common;parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow",
            Class::Lock,
        ),
        (
            "parking_lot::condvar::Condvar::wait_until_internal;parking_lot::condvar::Condvar::wait",
            Class::Idle,
        ),
        ("my_queue::RawThing::wait", Class::LockOrCondition),
        (
            "parking_lot::condvar::Condvar::wait_until_internal;parking_lot::condvar::Condvar::wait;tokio::loom::std::parking_lot::Condvar::wait;tokio::runtime::scheduler::multi_thread::park::Inner::park_condvar;tokio::runtime::scheduler::multi_thread::worker::Context::park_internal;tokio::runtime::scheduler::multi_thread::worker::run",
            Class::Idle,
        ),
        (
            "parking_lot::condvar::Condvar::wait;tokio::runtime::park::Inner::park;tokio::runtime::park::CachedParkThread::block_on<tokio::sync::mutex::Mutex<i32>::lock::{{closure}}>;tokio::future::block_on::block_on;tokio::sync::mutex::Mutex<T>::blocking_lock",
            Class::Lock,
        ),
        (
            "parking_lot::condvar::Condvar::wait;tokio::runtime::park::Inner::park;tokio::runtime::park::CachedParkThread::block_on<shop::main>",
            Class::Idle,
        ),
    ] {
        assert_eq!(parking_lot(more), class, "{more}");
    }
    // A task on a worker of tokio: types of the callers don't identify it.
    let task = "std::sys::sync::mutex::futex::Mutex::lock_contended;shop::handle;std::thread::local::LocalKey<tokio::runtime::scheduler::multi_thread::park::Inner::park>::with;tokio::runtime::scheduler::multi_thread::worker::run";
    assert_eq!(std(task), Class::Lock);
}

#[test]
fn futex_waits_of_go() {
    for (user, class) in [
        (
            "runtime.futex;runtime.futexsleep;runtime.notesleep;runtime.mPark;runtime.stopm;runtime.findRunnable;runtime.schedule",
            Class::Idle,
        ),
        (
            "runtime.futex.abi0;runtime.futexsleep;runtime.notetsleep_internal;runtime.notetsleep;runtime.sysmon;runtime.mstart1",
            Class::Idle,
        ),
        (
            "runtime.futex;runtime.futexsleep;runtime.notetsleep_internal;runtime.notetsleepg;os/signal.signal_recv;os/signal.loop",
            Class::Idle,
        ),
        (
            "runtime.futex;runtime.futexsleep;runtime.lock2;runtime.lockWithRank;runtime.mallocgc",
            Class::Lock,
        ),
        (
            "runtime.futex;runtime.futexsleep;runtime.notesleep;sync.runtime_SemacquireMutex;sync.(*Mutex).lockSlow;main.serve",
            Class::Lock,
        ),
    ] {
        assert_eq!(futex(user), class, "{user}");
    }
    let poll = "internal/runtime/syscall/linux.Syscall6;internal/runtime/syscall/linux.EpollWait;runtime.netpoll;runtime.findRunnable";
    let kernel = "schedule;do_epoll_wait;__x64_sys_epoll_pwait";
    assert_eq!(patterns().class(&stack(kernel, poll), false), Class::Poll);
}

#[test]
fn futex_waits_of_java() {
    let park = "Parker::park(bool, long);Unsafe_Park;void jdk.internal.misc.Unsafe.park(boolean, long);void java.util.concurrent.locks.LockSupport.park(java.lang.Object)";
    let acquire = "int java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire(java.util.concurrent.locks.AbstractQueuedSynchronizer$Node, int, boolean, boolean, boolean, long)";
    for (more, class) in [
        (format!("{park};{acquire};void java.util.concurrent.locks.ReentrantLock.lock();void Shop.pay()"), Class::Lock),
        (format!("{park};{acquire};void java.util.concurrent.locks.ReentrantReadWriteLock$ReadLock.lock()"), Class::Lock),
        (format!("{park};long java.util.concurrent.locks.StampedLock.acquireRead(boolean, boolean, long)"), Class::Lock),
        (format!("{park};{acquire};void java.util.concurrent.CountDownLatch.await()"), Class::Idle),
        (format!("{park};{acquire};void java.util.concurrent.Semaphore.acquire()"), Class::LockOrCondition),
        // The interpreter's frames have no names.
        ("Parker::park(bool, long);Unsafe_Park;Interpreter;Interpreter".to_owned(), Class::LockOrCondition),
        (format!("{park};void java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await();java.lang.Object java.util.concurrent.LinkedBlockingQueue.take()"), Class::Idle),
        (format!("{park};int java.util.concurrent.ForkJoinPool.awaitWork(java.util.concurrent.ForkJoinPool$WorkQueue)"), Class::Idle),
        ("os::PlatformEvent::park(long);ObjectMonitor::EnterI(JavaThread*);ObjectMonitor::enter(JavaThread*);ObjectSynchronizer::enter(Handle, BasicLock*, JavaThread*)".to_owned(), Class::Lock),
        ("os::PlatformEvent::park();ObjectMonitor::wait(long, bool, JavaThread*);JVM_MonitorWait".to_owned(), Class::Idle),
        ("os::PlatformMonitor::wait(long);Monitor::wait(long);CompileQueue::get()".to_owned(), Class::Idle),
        ("os::PlatformEvent::park(long);JavaThread::sleep(long);JVM_Sleep".to_owned(), Class::Idle),
        ("PosixSemaphore::wait();GangWorker::loop();GangWorker::run()".to_owned(), Class::Idle),
    ] {
        assert_eq!(futex(&format!("{COND};{more}")), class, "{more}");
    }
}

#[test]
fn futex_waits_of_interpreters() {
    for (user, class) in [
        (
            format!(
                "{COND};PyCOND_TIMEDWAIT;take_gil;eval_frame_handle_pending;_PyEval_EvalFrameDefault"
            ),
            Class::Lock,
        ),
        (
            format!(
                "{SEM};PyThread_acquire_lock_timed;acquire_timed;lock_PyThread_acquire_lock;py::pay:/srv/shop.py"
            ),
            Class::LockOrCondition,
        ),
        (
            format!(
                "{SEM};PyThread_acquire_lock_timed;lock_PyThread_acquire_lock;py::Condition.wait:/usr/lib/python3.12/threading.py;py::Queue.get:/usr/lib/python3.12/queue.py"
            ),
            Class::Idle,
        ),
        (
            format!(
                "{SEM};PyThread_acquire_lock_timed;_queue_SimpleQueue_get_impl;_queue_SimpleQueue_get"
            ),
            Class::Idle,
        ),
        (
            format!("{COND};uv_cond_wait;worker;start_thread"),
            Class::Idle,
        ),
        (
            format!("{SEM};uv__sem_wait;uv_sem_wait;node::inspector::StartIoThreadMain"),
            Class::LockOrCondition,
        ),
    ] {
        assert_eq!(futex(&user), class, "{user}");
    }
}

#[test]
fn locks_are_also_taken_by_sleeping() {
    let sleep = "do_nanosleep;hrtimer_nanosleep;__x64_sys_clock_nanosleep";
    let busy = stack(
        sleep,
        "__GI___clock_nanosleep;usleep;unixSleep;sqliteDefaultBusyCallback;sqlite3InvokeBusyHandler",
    );
    assert_eq!(patterns().class(&busy, false), Class::Lock);
    let poll = stack(
        "ep_poll;do_epoll_wait",
        "epoll_wait;WaitEventSetWait;WaitLatch;ProcSleep;LockAcquire",
    );
    assert_eq!(patterns().class(&poll, false), Class::Lock);
}

#[test]
fn libc_says_the_class_where_the_kernel_is_not_seen() {
    for (user, class) in [
        ("epoll_wait;loop", Class::Poll),
        (
            "__GI___clock_nanosleep;std::thread::sleep;work",
            Class::Sleep,
        ),
        ("__libc_recv;recv;work", Class::Network),
        ("fdatasync;commit", Class::Disk),
        (
            "syscall;std::sys::pal::unix::futex::futex_wait;std::sys::sync::mutex::futex::Mutex::lock_contended",
            Class::Lock,
        ),
        ("futex_wait;own_lock", Class::LockOrCondition),
        ("work;main", Class::Other),
    ] {
        assert_eq!(patterns().class(&stack("", user), false), class, "{user}");
    }
}

#[test]
fn a_study_says_where_its_threads_are_idle() {
    let patterns = Patterns::new(&["^pool::Worker::next$".to_owned()]).unwrap();
    let class = |kernel: &str, user: &str| patterns.class(&stack(kernel, user), false);
    assert_eq!(
        class(FUTEX, "sem_wait;pool::Worker::next;main"),
        Class::Idle
    );
    assert_eq!(
        class(FUTEX, "__GI___lll_lock_wait;pool::Worker::next"),
        Class::Lock
    );
    assert_eq!(
        class("anon_pipe_read", "read;pool::Worker::next"),
        Class::Idle
    );
    assert_eq!(
        class(FUTEX, "sem_wait;pool::Worker::next_2"),
        Class::LockOrCondition
    );
    let error = Patterns::new(&["a".to_owned(), "(".to_owned()]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("\"(\" is no regular expression"),
        "{error}"
    );
}

#[test]
fn the_waker_is_a_function_of_the_program() {
    for (user, waker) in [
        (
            "syscall;std::sys::pal::unix::futex::futex_wake;std::sys::sync::mutex::futex::Mutex::wake;<std::sync::poison::mutex::MutexGuard<T> as core::ops::drop::Drop>::drop;shop::handle;shop::serve",
            Some("shop::handle"),
        ),
        (
            "futex_wake;__GI___pthread_mutex_unlock_usercnt;under_the_lock;handle",
            Some("under_the_lock"),
        ),
        (
            "__GI___lll_lock_wake;___pthread_mutex_unlock;main",
            Some("main"),
        ),
        (
            "runtime.futex;runtime.futexwakeup;runtime.notewakeup;runtime.startm;runtime.ready;main.handle",
            Some("main.handle"),
        ),
        (
            "crossbeam_channel::flavors::list::Channel<T>::send;shop::push<crossbeam_channel::Sender<T>>",
            Some("shop::push<crossbeam_channel::Sender<T>>"),
        ),
        (
            "Unsafe_Unpark;void java.util.concurrent.locks.LockSupport.unpark(java.lang.Thread);void Shop.pay(java.util.List)",
            Some("void Shop.pay(java.util.List)"),
        ),
        ("write;__GI___libc_write;[unwound no further]", None),
        ("", None),
    ] {
        let stack = stack("try_to_wake_up;wake_up_q;futex_wake;do_futex", user);
        assert_eq!(patterns().waker(&stack), waker, "{user}");
    }
}

proptest! {
    #[test]
    fn any_names_have_a_class(names in prop::collection::vec(("\\PC{0,30}|[a-z:<>() =-]{0,40}", any::<bool>()), 0..6)) {
        let stack: Vec<Frame<'_>> = names.iter().map(|(name, kernel)| (name.as_str(), *kernel)).collect();
        let class = patterns().class(&stack, false);
        prop_assert!(Class::ALL.contains(&class));
        let waker = patterns().waker(&stack);
        prop_assert!(waker.is_none_or(|waker| stack.contains(&(waker, false))));
    }
}
