//! Lua scripts with wrk2's API: one Lua state (LuaJIT) for the main thread and one for each worker.
//!
//! The main state runs `setup(thread)` and `done(…)`; the worker states run `init`, `request` and `response`.
//! Values go between them only through `thread:get` and `thread:set`, as copies.

mod main_state;
mod problem;
mod statistics;
mod worker_state;

pub use main_state::{MainState, Summary, ThreadLink};
pub use statistics::Statistics;
pub use worker_state::WorkerState;

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use mlua::{FromLua, IntoLua, Lua, UserData, UserDataMethods};

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::plan::Plan;
use crate::probe::probe;
use crate::script_file::ScriptFile;
use crate::target;

const PRELUDE: &str = include_str!("script/prelude.lua");

/// What went wrong in a script, in one line that begins with its place: file and line; where Lua has
/// forgotten the line, as behind `return wrk.format(…)`, the file and `what` went wrong.
fn failed(script: &ScriptFile, what: &str, problem: &mlua::Error) -> Error {
    let text = problem::message(problem);
    if problem::has_place(&text) {
        return Error::Failed(text);
    }
    let names_it = problem.downcast_ref::<Unusable>().is_some() || text.starts_with(what);
    script.wrong(if names_it { text } else { format!("{what}: {text}") })
}

/// What the script has put where something else must be, and where.
#[derive(Debug)]
struct Unusable(String);

impl fmt::Display for Unusable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

/// A field that the script may have set to anything; `told` names it where it is of no use.
fn field<T: FromLua>(table: &mlua::Table, name: impl IntoLua, told: &str) -> mlua::Result<T> {
    table.get(name).map_err(|found: mlua::Error| {
        mlua::Error::external(Unusable(format!("{told}: {}", problem::message(&found))))
    })
}

/// The table `wrk`, if the script has left it there.
fn wrk(lua: &Lua) -> mlua::Result<mlua::Table> {
    field(&lua.globals(), "wrk", "wrk")
}

/// An address as scripts see it: something to print, to connect to and to assign to `thread.addr`.
#[derive(Clone, Debug)]
struct Address(Endpoint);

impl UserData for Address {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(mlua::MetaMethod::ToString, |_, address, ()| Ok(address.0.to_string()));
    }
}

/// A state in which the prelude and the script's file have run.
fn load(plan: &Plan, script: &ScriptFile) -> Result<Lua, Error> {
    // SAFETY: scripts are the user's own and may use everything that LuaJIT has, ffi and C modules included,
    // as in wrk2.
    let lua = unsafe { Lua::unsafe_new() };
    prepare(&lua, plan, &script.path).map_err(|problem| failed(script, "", &problem))?;
    let chunk = lua.load(script.source.as_slice()).set_name(format!("@{}", script.path.display()));
    chunk.exec().map_err(|problem| failed(script, "", &problem))?;
    Ok(lua)
}

fn prepare(lua: &Lua, plan: &Plan, path: &Path) -> mlua::Result<()> {
    let timeout = std::time::Duration::from_nanos(plan.timeout_ns);
    let problem_with = move |address: &Address| probe(&address.0, None, timeout).err();
    let (host, which) = (plan.target.host.clone(), plan.addresses);
    let is_kept = lua.create_function(move |_, (address, tried): (mlua::UserDataRef<Address>, usize)| {
        let problem = problem_with(&address);
        if let Some(problem) = &problem {
            target::tell_left_out(which, &host, &address.0, tried, &problem.to_string());
        }
        Ok(problem.is_none())
    })?;
    lua.load(PRELUDE).set_name("=wrk").call::<()>(is_kept)?;
    let wrk: mlua::Table = lua.globals().get("wrk")?;
    wrk.set("part", plan.part.number)?;
    wrk.set("parts", plan.part.of)?;
    wrk.set("scheme", plan.target.scheme.as_str())?;
    wrk.set("host", plan.target.host.as_str())?;
    wrk.set("port", plan.target.port.as_deref())?;
    wrk.set("path", plan.target.path.as_str())?;
    wrk.set("method", plan.method.as_str())?;
    wrk.set("body", plan.body.as_ref().map(|body| lua.create_string(body)).transpose()?)?;
    let headers: mlua::Table = wrk.get("headers")?;
    headers.set("Host", plan.target.host_header())?;
    for (name, value) in &plan.headers {
        headers
            .set(if name.eq_ignore_ascii_case("host") { "Host" } else { name.as_str() }, value.as_str())?;
    }
    wrk.set("time_us", lua.create_function(|_, ()| Ok(jiff::Timestamp::now().as_microsecond() as f64))?)?;
    wrk.set(
        "lookup",
        lua.create_function(|lua, (host, service): (String, String)| {
            let found = target::lookup(&host, &service).unwrap_or_default();
            lua.create_sequence_from(found.into_iter().map(|address| Address(Endpoint::Tcp(address))))
        })?,
    )?;
    wrk.set(
        "connect",
        lua.create_function(move |_, address: mlua::UserDataRef<Address>| {
            Ok(problem_with(&address).is_none())
        })?,
    )?;
    // Modules beside the script are found wherever the run was started.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let package: mlua::Table = lua.globals().get("package")?;
    let search: mlua::LuaString = package.get("path")?;
    let folder = folder.as_os_str().as_bytes();
    let search = [folder, b"/?.lua;", folder, b"/?/init.lua;", &search.as_bytes()].concat();
    package.set("path", lua.create_string(search)?)
}

/// Lets everything that scripts printed appear before what is printed next; Lua has a buffer of its own.
pub fn flush_prints() {
    // SAFETY: a null stream means all of them.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}
