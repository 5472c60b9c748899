//! What the main thread tells a worker.

use crate::endpoint::Endpoints;
use crate::lua_value::Value;

/// What a worker is told.
pub enum Order {
    Set(String, Value),
    Get(String),
    /// Run `init` and make ready to connect there.
    Init(Endpoints),
    Connect,
    /// The schedule starts at this monotonic time.
    Go(u64),
    Stop,
}
