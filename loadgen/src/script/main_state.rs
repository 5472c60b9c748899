//! The Lua state of the main thread: `setup(thread)` before the run, `done(summary, latency, requests)`
//! behind it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use mlua::{AnyUserData, Function, Lua, UserData, UserDataFields, UserDataMethods};

use super::statistics::Statistics;
use super::{Address, failed, field, load, wrk};
use crate::args::Addresses;
use crate::endpoint::{Endpoint, Endpoints};
use crate::error::Error;
use crate::lua_value::Value;
use crate::order::Order;
use crate::plan::Plan;
use crate::script_file::ScriptFile;
use crate::tally::Tally;

/// How the main thread reaches a worker's state.
pub struct ThreadLink {
    pub orders: Sender<Order>,
    pub replies: Receiver<Result<Value, String>>,
}

/// `thread` in `setup` and `done`.
struct Thread {
    link: ThreadLink,
    endpoints: Rc<RefCell<Endpoints>>,
}

impl Thread {
    /// Has the worker get or set a global, and waits until it has.
    fn ask(&self, order: Order) -> mlua::Result<Value> {
        self.link.orders.send(order).map_err(|_| gone())?;
        self.link.replies.recv().map_err(|_| gone())?.map_err(mlua::Error::runtime)
    }
}

impl UserData for Thread {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("addr", |_, thread| Ok(Address(thread.endpoints.borrow()[0].clone())));
        fields.add_field_method_set("addr", |_, thread, address: mlua::UserDataRef<Address>| {
            *thread.endpoints.borrow_mut() = [address.0.clone()].into();
            Ok(())
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("set", |_, thread, (name, value): (String, mlua::Value)| {
            let value = Value::from_lua(&value)?;
            thread.ask(Order::Set(name, value)).map(drop)
        });
        methods.add_method("get", |lua, thread, name: String| thread.ask(Order::Get(name))?.to_lua(lua));
        methods.add_method("stop", |_, thread, ()| thread.link.orders.send(Order::Stop).map_err(|_| gone()));
    }
}

fn gone() -> mlua::Error {
    mlua::Error::runtime("this thread has ended")
}

/// The first argument of `done`.
pub struct Summary<'a> {
    pub duration_us: u64,
    pub tally: &'a Tally,
}

pub struct MainState {
    lua: Lua,
    script: Arc<ScriptFile>,
    threads: Vec<AnyUserData>,
}

impl MainState {
    pub fn new(plan: &Plan) -> Result<Self, Error> {
        let script = plan.script.clone().expect("states are made for scripts only");
        Ok(Self { lua: load(plan, &script)?, script, threads: Vec::new() })
    }

    /// Where threads connect to unless the script says otherwise: the first that `wrk.resolve` finds, or all
    /// of them.
    pub fn resolve(&self, plan: &Plan) -> Result<Endpoints, Error> {
        let resolve = || -> mlua::Result<Vec<Endpoint>> {
            let (table, target) = (wrk(&self.lua)?, &plan.target);
            field::<Function>(&table, "resolve", "wrk.resolve")?
                .call::<()>((target.host.as_str(), target.service()))?;
            let found: Option<mlua::Table> = field(&wrk(&self.lua)?, "addrs", "wrk.addrs")?;
            let Some(found) = found else { return Ok(Vec::new()) };
            (1..=found.raw_len())
                .map(|at| field::<mlua::UserDataRef<Address>>(&found, at, &format!("wrk.addrs[{at}]")))
                .map(|address| Ok(address?.0.clone()))
                .collect()
        };
        let found = resolve().map_err(|problem| failed(&self.script, "wrk.resolve", &problem))?;
        if found.is_empty() {
            // Says why none can be reached, if none can.
            return plan
                .reachable(0)
                .and_then(|_| Err(self.script.wrong("wrk.resolve left no address in wrk.addrs")));
        }
        match (&plan.tls[0], plan.addresses) {
            // A handshake is more than the connection that was looked for.
            (Some(_), _) => plan.reachable_of(0, found),
            (None, Addresses::First) => Ok([found[0].clone()].into()),
            (None, Addresses::All) => Ok(found.into()),
        }
    }

    /// Whether the script says how long connections wait before a request.
    pub fn has_delay(&self) -> bool {
        self.defines("delay")
    }

    fn defines(&self, name: &str) -> bool {
        matches!(self.lua.globals().get::<mlua::Value>(name), Ok(mlua::Value::Function(_)))
    }

    /// Runs `setup(thread)` for one thread; returns where this thread connects to.
    pub fn setup(&mut self, link: ThreadLink, endpoints: Endpoints) -> Result<Endpoints, Error> {
        let endpoints = Rc::new(RefCell::new(endpoints));
        let thread = self.lua.create_userdata(Thread { link, endpoints: endpoints.clone() });
        let thread = thread.map_err(|problem| failed(&self.script, "setup()", &problem))?;
        self.threads.push(thread.clone());
        let run = || -> mlua::Result<()> {
            wrk(&self.lua)?.set("thread", thread.clone())?;
            match field::<Option<Function>>(&self.lua.globals(), "setup", "setup")? {
                Some(setup) => setup.call::<()>(thread),
                None => Ok(()),
            }
        };
        run().map_err(|problem| failed(&self.script, "setup()", &problem))?;
        Ok(endpoints.borrow().clone())
    }

    pub fn wants_done(&self) -> bool {
        self.defines("done")
    }

    pub fn done(&self, summary: &Summary, latency: Statistics, requests: Statistics) -> Result<(), Error> {
        let run = || -> mlua::Result<()> {
            let Some(done) = self.lua.globals().get::<Option<Function>>("done")? else { return Ok(()) };
            let (table, errors) = (self.lua.create_table()?, self.lua.create_table()?);
            let tally = summary.tally;
            errors.set("connect", tally.errors.connect)?;
            errors.set("read", tally.errors.read)?;
            errors.set("write", tally.errors.write)?;
            errors.set("status", tally.error_statuses())?;
            errors.set("timeout", tally.errors.timeout)?;
            table.set("duration", summary.duration_us)?;
            table.set("requests", tally.completed)?;
            table.set("bytes", tally.bytes_read)?;
            table.set("errors", errors)?;
            done.call::<()>((table, latency, requests))
        };
        run().map_err(|problem| failed(&self.script, "done()", &problem))
    }
}

impl Drop for MainState {
    /// Workers wait for questions of `done` until their links are gone.
    fn drop(&mut self) {
        for thread in self.threads.drain(..) {
            drop(thread.take::<Thread>());
        }
    }
}
