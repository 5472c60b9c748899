//! The Lua state of the main thread: `setup(thread)` before the run, `done(summary, latency, requests)` behind it.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender};

use mlua::{AnyUserData, Function, Lua, UserData, UserDataFields, UserDataMethods};

use super::statistics::Statistics;
use super::{Address, Value, load, message};
use crate::error::Error;
use crate::plan::Plan;
use crate::tally::Tally;
use crate::worker::Order;

/// How the main thread reaches a worker's state.
pub struct ThreadLink {
    pub orders: Sender<Order>,
    pub replies: Receiver<Result<Value, String>>,
}

/// `thread` in `setup` and `done`.
struct Thread {
    link: ThreadLink,
    address: Rc<Cell<SocketAddr>>,
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
        fields.add_field_method_get("addr", |_, thread| Ok(Address(thread.address.get())));
        fields.add_field_method_set("addr", |_, thread, address: mlua::UserDataRef<Address>| {
            thread.address.set(address.0);
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
    threads: Vec<AnyUserData>,
}

impl MainState {
    pub fn new(plan: &Plan) -> Result<Self, Error> {
        let path = plan.script.as_deref().expect("states are made for scripts only");
        Ok(Self { lua: load(plan, path)?, threads: Vec::new() })
    }

    /// The address that threads connect to unless the script gives them another: the first that `wrk.resolve` finds.
    pub fn resolve(&self, plan: &Plan) -> Result<SocketAddr, Error> {
        let resolve = || -> mlua::Result<Option<SocketAddr>> {
            let wrk: mlua::Table = self.lua.globals().get("wrk")?;
            let target = &plan.target;
            wrk.get::<Function>("resolve")?.call::<()>((target.host.as_str(), target.service()))?;
            let Some(found) = wrk.get::<Option<mlua::Table>>("addrs")? else { return Ok(None) };
            Ok(found.get::<Option<mlua::UserDataRef<Address>>>(1)?.map(|address| address.0))
        };
        match resolve().map_err(|problem| Error::Failed(message(&problem)))? {
            Some(address) => Ok(address),
            // Says why none can be reached, if none can.
            None => plan
                .target
                .reachable_address(plan.tls[0].as_ref(), std::time::Duration::from_nanos(plan.timeout_ns))
                .and_then(|_| Err(Error::Failed("wrk.resolve left no address in wrk.addrs".to_owned()))),
        }
    }

    /// Whether the script says how long connections wait before a request.
    pub fn has_delay(&self) -> bool {
        self.defines("delay")
    }

    fn defines(&self, name: &str) -> bool {
        matches!(self.lua.globals().get::<mlua::Value>(name), Ok(mlua::Value::Function(_)))
    }

    /// Runs `setup(thread)` for one thread; returns the address that this thread connects to.
    pub fn setup(&mut self, link: ThreadLink, address: SocketAddr) -> Result<SocketAddr, Error> {
        let address = Rc::new(Cell::new(address));
        let thread = self.lua.create_userdata(Thread { link, address: address.clone() });
        let thread = thread.map_err(|problem| Error::Failed(message(&problem)))?;
        self.threads.push(thread.clone());
        let run = || -> mlua::Result<()> {
            let globals = self.lua.globals();
            globals.get::<mlua::Table>("wrk")?.set("thread", thread.clone())?;
            match globals.get::<Option<Function>>("setup")? {
                Some(setup) => setup.call::<()>(thread),
                None => Ok(()),
            }
        };
        run().map_err(|problem| Error::Failed(message(&problem)))?;
        Ok(address.get())
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
        run().map_err(|problem| Error::Failed(message(&problem)))
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
