//! The Lua state of one worker: `init`, `request`, `response`.

use std::cell::{Cell, RefCell};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::sync::Arc;

use mlua::{Function, Lua, UserData, UserDataFields, UserDataMethods};

use super::problem::{message, told_type};
use super::{Address, failed, field, load, wrk};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::http::Captured;
use crate::lua_value::Value;
use crate::plan::Plan;
use crate::schedule::mix;
use crate::script_file::ScriptFile;
use crate::target::host_and_port;

const CALLS: &str = include_str!("calls.lua");

pub struct WorkerState {
    lua: Lua,
    script: Arc<ScriptFile>,
    request: Option<Function>,
    response: Option<Function>,
    delay: Option<Function>,
    stopped: Rc<Cell<bool>>,
    /// Owns what a header table is made of between calls.
    address: Rc<RefCell<Option<Endpoint>>>,
}

/// `wrk.thread` inside a worker: the state itself.
struct OwnThread {
    stopped: Rc<Cell<bool>>,
    address: Rc<RefCell<Option<Endpoint>>>,
}

impl UserData for OwnThread {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("addr", |_, thread| Ok(thread.address.borrow().clone().map(Address)));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get", |lua, _, name: String| lua.globals().get::<mlua::Value>(name));
        methods
            .add_method("set", |lua, _, (name, value): (String, mlua::Value)| lua.globals().set(name, value));
        methods.add_method("stop", |_, thread, ()| {
            thread.stopped.set(true);
            Ok(())
        });
    }
}

/// The Host header, as wrk sets it just before `init`: it follows `wrk.host` and `wrk.port` where the script
/// has changed them, and comes back where it has replaced `wrk.headers`.
fn set_host(wrk: &mlua::Table, plan: &Plan) -> mlua::Result<()> {
    let Some(headers) = field::<Option<mlua::Table>>(wrk, "headers", "wrk.headers")? else { return Ok(()) };
    let typed = plan.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
    let set = headers.get::<Option<mlua::Value>>("Host")?;
    let untouched = set
        .as_ref()
        .and_then(mlua::Value::as_string)
        .is_some_and(|host| host == plan.target.host_header().as_str());
    if set.is_none() || (untouched && !typed) {
        let host = field::<Option<String>>(wrk, "host", "wrk.host")?.unwrap_or_default();
        let port = field::<Option<String>>(wrk, "port", "wrk.port")?;
        headers.set("Host", host_and_port(&host, port.as_deref()))?;
    }
    Ok(())
}

impl WorkerState {
    pub fn new(plan: &Plan, thread: usize) -> Result<Self, Error> {
        let script = plan.script.clone().expect("worker states are made for scripts only");
        let lua = load(plan, &script)?;
        let (stopped, address) = (Rc::new(Cell::new(false)), Rc::new(RefCell::new(None)));
        let state = Self { lua, script, request: None, response: None, delay: None, stopped, address };
        state
            .prepare(plan.seed, plan.part.place(thread))
            .map_err(|problem| failed(&state.script, "", &problem))?;
        Ok(state)
    }

    fn prepare(&self, seed: u64, thread: usize) -> mlua::Result<()> {
        wrk(&self.lua)?
            .set("thread", OwnThread { stopped: self.stopped.clone(), address: self.address.clone() })?;
        // Seeds are doubles in Lua: 53 bits of the mixed seed are exact.
        let math: mlua::Table = field(&self.lua.globals(), "math", "math")?;
        let randomseed: Function = field(&math, "randomseed", "math.randomseed")?;
        randomseed.call::<()>((mix(seed, thread as u64) >> 11) as f64)
    }

    /// Sets a global, or says why it cannot be set.
    pub fn set(&self, name: &str, value: &Value) -> Result<(), String> {
        let set = || self.lua.globals().set(name, value.to_lua(&self.lua)?);
        set().map_err(|problem| message(&problem))
    }

    /// A global's value, or why it cannot be had.
    pub fn get(&self, name: &str) -> Result<Value, String> {
        let value = self.lua.globals().get::<mlua::Value>(name).and_then(|value| Value::from_lua(&value));
        value.map_err(|problem| message(&problem))
    }

    /// Runs `init(args)`: args[0] is the URL, the script's own arguments follow. Then it is known what the
    /// script defines.
    pub fn init(&mut self, plan: &Plan, address: Endpoint) -> Result<(), Error> {
        *self.address.borrow_mut() = Some(address);
        let run = || -> mlua::Result<[Option<Function>; 3]> {
            let globals = self.lua.globals();
            set_host(&wrk(&self.lua)?, plan)?;
            if let Some(init) = field::<Option<Function>>(&globals, "init", "init")? {
                let args = self.lua.create_table()?;
                args.set(0, plan.target.url.as_str())?;
                for (index, arg) in plan.script_args.iter().enumerate() {
                    args.set(index + 1, self.lua.create_string(arg.as_bytes())?)?;
                }
                init.call::<()>(args)?;
            }
            let (request, response, delay) =
                self.lua.load(CALLS).set_name("=wrk").eval::<(Function, Function, Function)>()?;
            let defined =
                |name: &str| globals.get::<mlua::Value>(name).is_ok_and(|value| value.is_function());
            let calls = [("request", request), ("response", response), ("delay", delay)];
            Ok(calls.map(|(name, call)| defined(name).then_some(call)))
        };
        [self.request, self.response, self.delay] =
            run().map_err(|problem| failed(&self.script, "init()", &problem))?;
        Ok(())
    }

    pub fn makes_requests(&self) -> bool {
        self.request.is_some()
    }

    pub fn wants_responses(&self) -> bool {
        self.response.is_some()
    }

    /// Whether the script has called `wrk.thread:stop()`.
    pub fn stopped(&self) -> bool {
        self.stopped.get()
    }

    /// The request of a script that makes none itself: `wrk.format()` with what it has set.
    pub fn default_request(&self) -> Result<Vec<u8>, Error> {
        let format = || -> mlua::Result<mlua::LuaString> {
            field::<Function>(&wrk(&self.lua)?, "format", "wrk.format")?.call(())
        };
        let request = format().map_err(|problem| failed(&self.script, "wrk.format", &problem))?;
        Ok(request.as_bytes().to_vec())
    }

    /// The next request, as the script makes it; none if it has stopped its thread.
    #[inline]
    pub fn request(&self) -> Result<Option<mlua::LuaString>, Error> {
        let request = self.request.as_ref().expect("asked only if the script makes requests");
        match request.call::<mlua::Value>(()) {
            Ok(mlua::Value::String(bytes)) => Ok(Some(bytes)),
            Ok(mlua::Value::Nil) if self.stopped() => Ok(None),
            Ok(other) => {
                let found = told_type(other.type_name());
                Err(self.script.wrong(format!("request() must return a string, not {found}")))
            }
            Err(problem) => Err(failed(&self.script, "request()", &problem)),
        }
    }

    /// What the script made is of no use.
    pub fn wrong(&self, what: impl std::fmt::Display) -> Error {
        self.script.wrong(what)
    }

    /// How long the script has a connection wait before its next request; none if it says nothing of that.
    pub fn delay_ns(&self) -> Result<Option<u64>, Error> {
        let Some(delay) = &self.delay else { return Ok(None) };
        let delay_ms: Option<f64> =
            delay.call(()).map_err(|problem| failed(&self.script, "delay()", &problem))?;
        Ok(Some((delay_ms.unwrap_or(0.0) * 1e6) as u64))
    }

    pub fn response(&self, status: u16, captured: &Captured) -> Result<(), Error> {
        let Some(response) = &self.response else { return Ok(()) };
        let call = || -> mlua::Result<()> {
            let headers = self.lua.create_table_with_capacity(0, captured.headers.len())?;
            for (name, value) in &captured.headers {
                headers.raw_set(name.as_str(), self.lua.create_string(value)?)?;
            }
            response.call::<()>((status, headers, self.lua.create_string(&captured.body)?))
        };
        call().map_err(|problem| failed(&self.script, "response()", &problem))
    }
}
