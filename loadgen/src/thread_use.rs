//! What one thread used while it sent: CPU, and time waiting in every way.

use crate::waiting::Habits;

#[derive(Clone, Debug)]
pub struct ThreadUse {
    pub connections: usize,
    /// Requests: with a script the first so many that this thread's `request()` made, unless a write failed.
    pub sent: u64,
    pub wall_ns: u64,
    pub cpu_ns: u64,
    pub spun_ns: u64,
    pub habits: Habits,
    /// It stopped spinning during the run, since others needed the CPU.
    pub spin_given_up: bool,
    pub waited_for_cpu_ns: Option<u64>,
}

impl ThreadUse {
    /// Of one CPU, 0 to 1.
    pub fn cpu_share(&self) -> f64 {
        self.cpu_ns as f64 / self.wall_ns.max(1) as f64
    }

    /// What it used between two moments.
    pub fn between(&self, from: &UsedBy, until: &UsedBy) -> Self {
        let waited = until.waited_for_cpu_ns.zip(from.waited_for_cpu_ns);
        Self {
            wall_ns: until.at_ns.saturating_sub(from.at_ns),
            cpu_ns: until.cpu_ns.saturating_sub(from.cpu_ns),
            spun_ns: until.spun_ns.saturating_sub(from.spun_ns),
            waited_for_cpu_ns: waited.map(|(until_ns, from_ns)| until_ns.saturating_sub(from_ns)),
            ..self.clone()
        }
    }
}

/// What a thread had used by a moment; all times but that are from when the thread began.
#[derive(Clone, Copy, Debug)]
pub struct UsedBy {
    pub at_ns: u64,
    pub cpu_ns: u64,
    pub spun_ns: u64,
    pub waited_for_cpu_ns: Option<u64>,
}
