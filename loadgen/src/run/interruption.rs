//! Ctrl-C, SIGTERM and a closed terminal: the first ends the run early and in order, the second ends the
//! program. Before anything is opened the first does, and so it does where a function of a script does not
//! return. Each is told in a line. The end of a terminal is told again by the shell and by the kernel,
//! whenever they end: it is one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

use crate::clock::now_ns;
use crate::error::{Error, exit};

/// So long after the first a signal is a second one: who ends a process and its group, as timeout(1) does,
/// sends one end as two signals.
const AGAIN_NS: u64 = 300_000_000;

/// Threads that have not ended so long after the first signal are in a function of a script that does not
/// return: all else ends within two seconds.
const ENDS_WITHIN_S: u32 = 10;
const DOES_NOT_RETURN: &str = "interrupted, and a function of the script does not return: nothing was kept\n";
const BEFORE_THE_RUN: &str = "interrupted before the run began: nothing was measured\n";
const TWICE: &str = "interrupted a second time: what was not written by then is lost\n";

/// Which signal asked for an early end, if any.
pub struct Interruption {
    /// The first signal ends in order.
    in_order: Arc<AtomicBool>,
    has_script: Arc<AtomicBool>,
    /// All threads have ended.
    is_over: Arc<AtomicBool>,
    seen: Arc<AtomicUsize>,
    /// Set by the first signal, and by whoever else ends the run early; workers look at it, so that nobody
    /// need wake for it.
    pub(super) stop: Arc<AtomicBool>,
}

impl Interruption {
    /// To be called before all else: until then a signal ends the program without a word.
    pub fn watch() -> Result<Self, Error> {
        let (seen, first_ns) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let [in_order, has_script, is_over, stop] = [(); 4].map(|()| Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_left_ignored(signal)) {
            let code = exit::SIGNAL_BASE + signal;
            let (in_order, has_script, first) = (in_order.clone(), has_script.clone(), first_ns.clone());
            let end_at_once = move || {
                let now = now_ns();
                let earlier = first.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst).err();
                let is_second = signal != SIGHUP
                    && earlier.is_some_and(|earlier| now.saturating_sub(earlier) >= AGAIN_NS);
                if is_second {
                    end(TWICE, code);
                }
                if !in_order.load(Ordering::SeqCst) {
                    end(BEFORE_THE_RUN, code);
                }
                if has_script.load(Ordering::SeqCst) {
                    // SAFETY: a handler may set the alarm.
                    unsafe { libc::alarm(ENDS_WITHIN_S) };
                }
            };
            let register = || -> std::io::Result<()> {
                // SAFETY: a handler may read a clock, exchange atomics, write and end the process.
                unsafe { low_level::register(signal, end_at_once)? };
                signal_hook::flag::register(signal, stop.clone())?;
                signal_hook::flag::register_usize(signal, seen.clone(), signal as usize).map(drop)
            };
            register().map_err(unwatched)?;
        }
        let (over, asked_by) = (is_over.clone(), seen.clone());
        let give_up = move || {
            if !over.load(Ordering::SeqCst) {
                end(DOES_NOT_RETURN, exit::SIGNAL_BASE + asked_by.load(Ordering::SeqCst) as i32);
            }
        };
        // SAFETY: it reads atomics, writes and ends the process: a handler may do that.
        unsafe { low_level::register(SIGALRM, give_up) }.map_err(unwatched)?;
        Ok(Self { in_order, has_script, is_over, seen, stop })
    }

    /// Work before the run that would leave something behind if it were cut short: a signal waits for it.
    pub(super) fn spare<T>(&self, work: impl FnOnce() -> T) -> T {
        self.in_order.store(true, Ordering::SeqCst);
        let done = work();
        self.in_order.store(false, Ordering::SeqCst);
        if let Some(signal) = self.signal() {
            end(BEFORE_THE_RUN, exit::SIGNAL_BASE + signal);
        }
        done
    }

    /// From here on there is something to be ended in order.
    pub(super) fn run_begins(&self, has_script: bool) {
        self.has_script.store(has_script, Ordering::SeqCst);
        self.in_order.store(true, Ordering::SeqCst);
    }

    /// What is left is to be written, however long that takes.
    pub(super) fn threads_have_ended(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    pub(super) fn signal(&self) -> Option<i32> {
        match self.seen.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }
}

/// A handler may call it. Nothing is flushed, and no destructor runs.
fn end(told: &'static str, code: i32) -> ! {
    // SAFETY: the text lasts as long as the program, and a handler may write.
    unsafe { libc::write(2, told.as_ptr().cast(), told.len()) };
    low_level::exit(code)
}

/// nohup(1) has SIGHUP ignored for who is to outlive the terminal. SIGINT, which a shell's script has ignored
/// for what it starts behind `&`, ends the run all the same, as it ends wrk2's.
fn is_left_ignored(signal: i32) -> bool {
    // SAFETY: it asks, and changes nothing.
    let before = unsafe {
        let mut before = std::mem::zeroed::<libc::sigaction>();
        libc::sigaction(signal, std::ptr::null(), &mut before);
        before.sa_sigaction
    };
    signal == SIGHUP && before == libc::SIG_IGN
}

fn unwatched(problem: std::io::Error) -> Error {
    Error::Failed(format!("cannot watch for signals: {problem}"))
}
