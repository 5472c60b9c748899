//! The machine: which CPUs a thread may use, whether it has one to itself, how exact its timers are.

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use crate::args::Spin;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::plan::{Pacing, Plan};

/// Whether threads wait busily before a due time, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busily {
    Never,
    /// Only what is left of a wait when a sleeper wakes early, and little of it in all: others need the CPU.
    Sparingly,
    /// That, and waits too short to be worth a sleep: others have a CPU besides.
    Cheaply,
    For(Duration),
    /// For as long as this machine wakes its sleepers late.
    Fitting,
}

/// File descriptors of a thread beside those of its connections: epoll, its two timers, and what it reads of
/// itself.
const FILES_OF_THREAD: u64 = 4;
/// All others: standard streams, files, libraries.
const OTHER_FILES: u64 = 64;

/// CPUs that this process may run on.
pub fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// All of these are CPUs that this process may run on.
pub fn check_cpus(cpus: &[usize]) -> Result<(), Error> {
    let allowed = allowed_cpus();
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => {
            Err(Error::Failed(format!("no such CPU for this process: --pin {cpu}, allowed={allowed:?}")))
        }
        None => Ok(()),
    }
}

/// Binds the calling thread to one CPU.
pub fn pin_thread(cpu: usize) -> Result<(), Error> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
        .map_err(|problem| Error::Failed(format!("cannot pin a thread: cpu={cpu}: {problem}")))
}

/// Timers of the calling thread fire when they should instead of up to 50 µs later.
pub fn exact_timers() {
    // Where that is not allowed they are a little later, which is measured.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// How long the scheduler may let others run before it gives a CPU to a thread that has just woken.
const TURN_NS: u64 = 100_000;

/// Asks for short turns on a CPU: who asks for little at a time is let in soon after it wakes (Linux from
/// 6.12 on, EEVDF: the turn is what a thread's deadline is counted from). Takes nothing from others in all,
/// since the share stays the same, and needs no privilege. Older kernels ignore it, and threads that somebody
/// gave another policy keep it.
pub fn short_turns() {
    let size = size_of::<libc::sched_attr>() as libc::c_uint;
    // SAFETY: all its fields are numbers, of which zero is one.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most `size` bytes, which is the size of what it is given.
    let asked = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if asked != 0 || attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.size = size;
    attributes.sched_runtime = TURN_NS;
    // Where that is not allowed it is let in later, which is measured.
    // SAFETY: it reads `size` bytes, as said in them.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Room for a descriptor per connection, and for those of threads.
pub fn raise_file_limit(connections: usize, threads: usize) -> Result<(), Error> {
    let needed = connections as u64 + threads as u64 * FILES_OF_THREAD + OTHER_FILES;
    let mut limit = getrlimit(Resource::Nofile);
    let allows = |limit: Option<u64>| limit.is_none_or(|most| most >= needed);
    if !allows(limit.current) {
        limit.current = limit.maximum.map_or(Some(needed), |most| Some(needed.min(most)));
        // Whether it helped is looked at below.
        let _ = setrlimit(Resource::Nofile, limit);
        limit = getrlimit(Resource::Nofile);
    }
    if !allows(limit.current) {
        return Err(Error::Failed(format!(
            "too few open files allowed: connections={connections}, threads={threads}, limit={}; raise it \
                with ulimit -n {needed}",
            limit.current.unwrap_or_default()
        )));
    }
    Ok(())
}

pub fn busily(plan: &Plan, endpoints: &[Endpoint]) -> Busily {
    let cpus = allowed_cpus().len();
    let first_process =
        std::fs::read_to_string("/proc/1/status").ok().and_then(|status| allowed_count(&status));
    let of_all = first_process.unwrap_or_else(online_cpus);
    match (plan.spin, plan.pacing) {
        (_, Pacing::ClosedLoop) | (Spin::Off, _) => Busily::Never,
        (Spin::For(time), _) => Busily::For(time),
        (Spin::Auto, _)
            if has_core_to_itself(plan, cpus, of_all, endpoints.iter().any(Endpoint::is_here)) =>
        {
            Busily::Fitting
        }
        (Spin::Auto, _) if leaves_a_cpu(plan, cpus) => Busily::Cheaply,
        (Spin::Auto, _) => Busily::Sparingly,
    }
}

/// How many CPUs a process may run on, from its `/proc/…/status`.
///
/// Asked of the first process: inside a container it has the container's CPUs, all of which the service there
/// has too. That those are fewer than the machine's sets none of them aside for the generator.
fn allowed_count(status: &str) -> Option<usize> {
    count_of_list(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?)
}

/// `0-3,8` → 5
fn count_of_list(list: &str) -> Option<usize> {
    let count = |part: &str| -> Option<usize> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?).map(|more| more + 1)
    };
    list.trim().split(',').map(count).sum()
}

/// Each thread has a core that the service does not need: CPUs were set aside for the generator (by `--pin`
/// or from outside, as with taskset) and there are enough of them; or the service runs on another machine.
fn has_core_to_itself(plan: &Plan, cpus: usize, of_all: usize, service_is_here: bool) -> bool {
    if !plan.pin.is_empty() {
        return plan.pin.len() >= plan.threads;
    }
    let set_aside = cpus < of_all;
    cpus >= plan.threads && (set_aside || !service_is_here)
}

/// Others can run, too, while every thread is busy.
fn leaves_a_cpu(plan: &Plan, cpus: usize) -> bool {
    plan.pin.is_empty() && cpus > plan.threads
}

fn online_cpus() -> usize {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    list.and_then(|list| count_of_list(&list)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;

    #[test]
    fn short_turns_shorten_the_turn_and_keep_policy_and_niceness() {
        let attributes = || {
            // SAFETY: as in `short_turns`.
            let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
            let size = size_of::<libc::sched_attr>() as libc::c_uint;
            // SAFETY: as in `short_turns`.
            assert_eq!(0, unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) });
            (attributes.sched_policy, attributes.sched_nice, attributes.sched_runtime)
        };
        let (policy, nice, usual) = attributes();
        short_turns();
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let mut version = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
        let has_turns = (version.next().unwrap(), version.next().unwrap()) >= (6, 12);
        assert_eq!(attributes(), (policy, nice, if has_turns { TURN_NS } else { usual }));
    }

    #[test]
    fn a_list_of_cpus_is_counted() {
        let status = |list: &str| {
            format!("Name:\tinit\nCpus_allowed:\tf\nCpus_allowed_list:\t{list}\nMems_allowed:\t1\n")
        };
        assert_eq!(
            ["0", "0-1", "0-3,8,10-11"].map(|list| allowed_count(&status(list))),
            [Some(1), Some(2), Some(7)]
        );
        assert_eq!((allowed_count("Name:\tinit\n"), allowed_count(&status("?"))), (None, None));
    }

    #[test]
    fn a_container_of_one_cpu_sets_none_aside() {
        assert!(!has_core_to_itself(&plan("-t1 -R1 http://h/"), 1, 1, true));
    }

    #[test]
    fn a_cpu_is_left_to_others_where_there_are_more_than_threads_and_none_is_pinned() {
        let leaves = |arguments: &str, cpus: usize| leaves_a_cpu(&plan(arguments), cpus);
        assert!(leaves("-t1 -R1 http://h/", 2));
        assert!(!leaves("-t1 -R1 http://h/", 1));
        assert!(!leaves("-t2 -R1 http://h/", 2));
        assert!(!leaves("-t2 -R1 --pin 0 http://h/", 4), "two threads on one CPU");
    }

    #[test]
    fn it_spins_only_where_a_core_was_set_aside_or_the_service_is_elsewhere() {
        let one = plan("-t1 -R1 http://h/");
        assert!(!has_core_to_itself(&one, 2, 2, true), "the service needs these cores");
        assert!(has_core_to_itself(&one, 1, 2, true), "taskset left one of two to the generator");
        assert!(has_core_to_itself(&one, 2, 2, false), "the service is on another machine");
        let two = plan("-t2 -R1 http://h/");
        assert!(!has_core_to_itself(&two, 1, 2, true), "two threads on one core");
        assert!(has_core_to_itself(&plan("-t2 -R1 --pin 0,1 http://h/"), 2, 2, true));
        assert!(!has_core_to_itself(&plan("-t2 -R1 --pin 0 http://h/"), 2, 2, true));
    }
}
