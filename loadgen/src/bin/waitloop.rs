//! A bare waiting loop: wakes at a rate as loadgen does and sends nothing. What it is late by is the
//! machine's own noise.
//!
//! `waitloop --rate N --seconds N [--spin US] [--pin CPU]` prints one line of JSON: lateness percentiles in
//! microseconds, and CPU time per wake.

use lexopt::prelude::*;
use loadgen::clock::{now_ns, thread_cpu_ns};
use loadgen::epoll::{Epoll, Events};
use loadgen::machine;
use loadgen::recorder::histogram;
use loadgen::statistics::{TEXT_PERCENTILES, percentile};
use loadgen::uniform::{NEVER, Uniform};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut rate_rps, mut seconds, mut spin_us) = (2000.0, 3.0, 0u64);
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("rate") => rate_rps = parser.value()?.parse()?,
            Long("seconds") => seconds = parser.value()?.parse()?,
            Long("spin") => spin_us = parser.value()?.parse()?,
            Long("pin") => machine::pin_thread(parser.value()?.parse()?)?,
            other => return Err(other.unexpected().into()),
        }
    }
    machine::exact_timers();
    let (uniform, mut epoll, mut lateness) =
        (Uniform::new(rate_rps, 1, NEVER), Epoll::new()?, histogram::<u64>());
    let wakes = (rate_rps * seconds) as u64;
    let (start_ns, cpu_before_ns) = (now_ns() + 1_000_000, thread_cpu_ns());
    for wake in 0..wakes {
        let due_ns = start_ns + uniform.due_ns(0, wake);
        let sleep_until_ns = due_ns.saturating_sub(spin_us * 1000);
        let mut now = now_ns();
        while now < sleep_until_ns {
            epoll.wait_until(sleep_until_ns)?;
            now = now_ns();
        }
        while now < due_ns {
            std::hint::spin_loop();
            now = now_ns();
        }
        lateness.record((now - due_ns + 500) / 1000)?;
    }
    let cpu_us_per_wake = (thread_cpu_ns() - cpu_before_ns) as f64 / 1000.0 / wakes as f64;
    let percentiles: Vec<String> =
        TEXT_PERCENTILES.iter().map(|&p| format!("\"{p}\": {}", percentile(&lateness, p))).collect();
    println!(
        "{{\"percentiles\": {{{}}}, \"cpu_us_per_wake\": {cpu_us_per_wake:.3}}}",
        percentiles.join(", ")
    );
    Ok(())
}
