//! What a worker's thread does from its first order to its last.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender};

use crate::error::Error;
use crate::machine;
use crate::plan::Plan;
use crate::script::{Value, WorkerState};
use crate::worker::{Order, Report, Worker};

pub(super) fn worker_thread(
    plan: &Plan,
    number: usize,
    reports: &Sender<(usize, Report)>,
    stop: &AtomicBool,
    orders: &Receiver<Order>,
    answers: &Sender<Result<Value, String>>,
) {
    if let Err(problem) = work(plan, number, reports, stop, orders, answers) {
        let _ = reports.send((number, Report::Failed(problem)));
    }
}

fn work(
    plan: &Plan,
    number: usize,
    reports: &Sender<(usize, Report)>,
    stop: &AtomicBool,
    orders: &Receiver<Order>,
    answers: &Sender<Result<Value, String>>,
) -> Result<(), Error> {
    machine::exact_timers();
    if let Some(cpu) = plan.pin.get(number % plan.pin.len().max(1)) {
        machine::pin_thread(*cpu)?;
    }
    let mut script = plan.script.is_some().then(|| WorkerState::new(plan, number)).transpose()?;
    let Some(address) = prepare(plan, orders, answers, script.as_mut())? else { return Ok(()) };
    let _ = reports.send((number, Report::Initialized));
    let Ok(Order::Connect) = orders.recv() else { return Ok(()) };
    let busily = machine::busily(plan, &address);
    let mut worker = Worker::new(plan, number, address, reports, stop, busily, script)?;
    let problem = worker.open_all();
    let _ = reports.send((number, Report::Ready { problem }));
    let Ok(Order::Go(start_ns)) = orders.recv() else { return Ok(()) };
    let (outcome, script) = worker.run(start_ns, orders);
    let _ = reports.send((number, Report::Finished(Box::new(outcome))));
    if let Some(script) = script {
        answer_questions(orders, answers, &script);
    }
    Ok(())
}

/// Everything up to `init`; none if the run was called off.
fn prepare(
    plan: &Plan,
    orders: &Receiver<Order>,
    answers: &Sender<Result<Value, String>>,
    mut script: Option<&mut WorkerState>,
) -> Result<Option<SocketAddr>, Error> {
    loop {
        match (orders.recv(), script.as_deref_mut()) {
            (Ok(Order::Set(name, value)), Some(script)) => script.set(&name, &value)?,
            (Ok(Order::Get(name)), Some(script)) => drop(answers.send(script.get(&name))),
            (Ok(Order::Init(address)), Some(script)) => return script.init(plan, address).map(|()| Some(address)),
            (Ok(Order::Init(address)), None) => return Ok(Some(address)),
            (Ok(_), _) => {}
            (Err(_), _) => return Ok(None),
        }
    }
}

/// `done` may ask for globals and set them, until the main state is gone.
fn answer_questions(orders: &Receiver<Order>, answers: &Sender<Result<Value, String>>, script: &WorkerState) {
    for order in orders {
        match order {
            Order::Get(name) => drop(answers.send(script.get(&name))),
            Order::Set(name, value) => drop(script.set(&name, &value)),
            _ => {}
        }
    }
}
