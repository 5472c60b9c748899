//! What a worker's thread does from its first order to its last.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender};

use crate::endpoint::Endpoints;
use crate::error::Error;
use crate::lua_value::Value;
use crate::machine;
use crate::order::Order;
use crate::plan::Plan;
use crate::script::WorkerState;
use crate::worker::{Links, Report, Worker};

pub(super) fn worker_thread(
    plan: &Plan,
    second: Option<Endpoints>,
    links: Links,
    orders: &Receiver<Order>,
    answers: &Sender<Result<Value, String>>,
) {
    reported(links.thread, links.reports, || work(plan, second, links, orders, answers));
}

/// Whatever ends a thread before its last report is reported, so that nobody waits for it in vain.
fn reported(number: usize, reports: &Sender<(usize, Report)>, work: impl FnOnce() -> Result<(), Error>) {
    let problem = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return,
        Ok(Err(problem)) => problem,
        Err(panic) => {
            let text =
                panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Error::Failed(format!(
                "thread {number} failed, which is a fault of loadgen: {}",
                text.unwrap_or("no reason given")
            ))
        }
    };
    let _ = reports.send((number, Report::Failed(problem)));
}

fn work(
    plan: &Plan,
    second: Option<Endpoints>,
    links: Links,
    orders: &Receiver<Order>,
    answers: &Sender<Result<Value, String>>,
) -> Result<(), Error> {
    machine::exact_timers();
    machine::short_turns();
    if let Some(cpu) = plan.pin.get(links.thread % plan.pin.len().max(1)) {
        machine::pin_thread(*cpu)?;
    }
    let mut script = plan.script.is_some().then(|| WorkerState::new(plan, links.thread)).transpose()?;
    let Some(Order::Init(endpoints)) = serve(orders, answers, script.as_ref()) else { return Ok(()) };
    if let Some(script) = &mut script {
        script.init(plan, endpoints[0].clone())?;
    }
    links.report(Report::Initialized);
    let Some(Order::Connect) = serve(orders, answers, script.as_ref()) else { return Ok(()) };
    let busily = machine::busily(plan, &endpoints);
    let endpoints = [endpoints.clone(), second.unwrap_or(endpoints)];
    let mut worker = Worker::new(plan, endpoints, links, busily, script)?;
    let opened = worker.open_all();
    links.report(Report::Ready(opened));
    let Ok(Order::Go(start_ns)) = orders.recv() else { return Ok(()) };
    let (outcome, script) = worker.run(start_ns, orders);
    links.report(Report::Finished(Box::new(outcome)));
    // `done` may ask for globals and set them, until the main state is gone.
    let _ = serve(orders, answers, script.as_ref());
    Ok(())
}

/// Gets and sets globals for the main state until there is another order; none if the run was called off.
fn serve(
    orders: &Receiver<Order>,
    answers: &Sender<Result<Value, String>>,
    script: Option<&WorkerState>,
) -> Option<Order> {
    for order in orders {
        match (order, script) {
            (Order::Set(name, value), Some(script)) => {
                drop(answers.send(script.set(&name, &value).map(|()| Value::Nil)))
            }
            (Order::Get(name), Some(script)) => drop(answers.send(script.get(&name))),
            // As in wrk2, only a thread that runs can be stopped.
            (Order::Stop, _) => {}
            (other, _) => return Some(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::thread::scope;
    use std::time::Duration;

    use super::*;
    use crate::plan::tests::plan;
    use crate::run::crew::Crew;

    #[test]
    fn a_thread_that_panics_is_reported_and_the_others_are_called_off() {
        let plan = plan("-t2 -c2 -R1 http://h/");
        let (reports, heard) = channel();
        let stop = AtomicBool::new(false);
        let problem = scope(|scope| {
            let (orders, taken): (Vec<_>, Vec<_>) = (0..2).map(|_| channel::<Order>()).unzip();
            let crew = Crew { orders, heard, stop: &stop, board: None };
            for (number, taken) in taken.into_iter().enumerate() {
                let (reports, stop) = (reports.clone(), &stop);
                scope.spawn(move || {
                    reported(number, &reports, || {
                        let Ok(Order::Go(_)) = taken.recv() else { unreachable!("nothing else is ordered") };
                        assert!(number == 0, "planted");
                        while !stop.load(Ordering::Relaxed) {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        Ok(())
                    })
                });
            }
            crew.go(&plan).map(drop).unwrap_err()
        });
        assert_eq!(problem.to_string(), "thread 1 failed, which is a fault of loadgen: planted");
    }
}
