//! What one thread used while it sent: CPU, and time waiting in every way.

use crate::waiting::Habits;

#[derive(Debug)]
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
}
