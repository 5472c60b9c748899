//! The machine: which CPUs a thread may use, whether it has one to itself, how exact its timers are.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::args::Spin;
use crate::error::Error;
use crate::plan::{Pacing, Plan};

/// Whether threads wait busily before a due time, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busily {
    Never,
    /// Only what is left of a wait when a sleeper wakes early, and little of it in all: others need the CPU.
    Sparingly,
    For(Duration),
    /// For as long as this machine wakes its sleepers late.
    Fitting,
}

/// File descriptors beside those of connections: standard streams, epoll, files, libraries.
const OTHER_FILES: u64 = 64;

/// CPUs that this process may run on.
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: an all-zero set is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills a set of the given size.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    if result < 0 {
        return Vec::new();
    }
    // SAFETY: the index is below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// All of these are CPUs that this process may run on.
pub fn check_cpus(cpus: &[usize]) -> Result<(), Error> {
    let allowed = allowed_cpus();
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => Err(Error::Failed(format!("no such CPU for this process: --pin {cpu}, allowed={allowed:?}"))),
        None => Ok(()),
    }
}

/// Binds the calling thread to one CPU.
pub fn pin_thread(cpu: usize) -> Result<(), Error> {
    // SAFETY: an all-zero set is valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is below the size of the set: --pin takes no other.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the kernel reads a set of the given size.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
    if result < 0 {
        return Err(Error::Failed(format!("cannot pin a thread: cpu={cpu}: {}", io::Error::last_os_error())));
    }
    Ok(())
}

/// Timers of the calling thread fire when they should instead of up to 50 µs later.
pub fn exact_timers() {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Room for a descriptor per connection.
pub fn raise_file_limit(connections: usize) -> Result<(), Error> {
    let needed = connections as u64 + OTHER_FILES;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if limit.rlim_cur < needed {
        limit.rlim_cur = needed.min(limit.rlim_max);
        // SAFETY: as above.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
    }
    if limit.rlim_cur < needed {
        return Err(Error::Failed(format!(
            "too few open files allowed: connections={connections}, limit={}; raise it with ulimit -n {needed}",
            limit.rlim_cur
        )));
    }
    Ok(())
}

pub fn busily(plan: &Plan, address: &SocketAddr) -> Busily {
    let cpus = allowed_cpus().len();
    let first_process = std::fs::read_to_string("/proc/1/status").ok().and_then(|status| allowed_count(&status));
    let of_all = first_process.unwrap_or_else(online_cpus);
    match (plan.spin, plan.pacing) {
        (_, Pacing::ClosedLoop) | (Spin::Off, _) => Busily::Never,
        (Spin::For(time), _) => Busily::For(time),
        (Spin::Auto, _) if has_core_to_itself(plan, cpus, of_all, address.ip().is_loopback()) => Busily::Fitting,
        (Spin::Auto, _) => Busily::Sparingly,
    }
}

/// How many CPUs a process may run on, from its `/proc/…/status`.
///
/// Asked of the first process: inside a container it has the container's CPUs, all of which the service there has too. That those are
/// fewer than the machine's sets none of them aside for the generator.
fn allowed_count(status: &str) -> Option<usize> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim();
    let count = |part: &str| -> Option<usize> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?).map(|more| more + 1)
    };
    list.split(',').map(count).sum()
}

/// Each thread has a core that the service does not need: CPUs were set aside for the generator (by `--pin` or from outside,
/// as with taskset) and there are enough of them; or the service runs on another machine.
fn has_core_to_itself(plan: &Plan, cpus: usize, of_all: usize, service_is_here: bool) -> bool {
    if !plan.pin.is_empty() {
        return plan.pin.len() >= plan.threads;
    }
    let set_aside = cpus < of_all;
    cpus >= plan.threads && (set_aside || !service_is_here)
}

fn online_cpus() -> usize {
    // SAFETY: no pointers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;

    #[test]
    fn a_list_of_cpus_is_counted() {
        let status = |list: &str| format!("Name:\tinit\nCpus_allowed:\tf\nCpus_allowed_list:\t{list}\nMems_allowed:\t1\n");
        assert_eq!(["0", "0-1", "0-3,8,10-11"].map(|list| allowed_count(&status(list))), [Some(1), Some(2), Some(7)]);
        assert_eq!((allowed_count("Name:\tinit\n"), allowed_count(&status("?"))), (None, None));
    }

    #[test]
    fn a_container_of_one_cpu_sets_none_aside() {
        assert!(!has_core_to_itself(&plan("-t1 -R1 http://h/"), 1, 1, true));
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
