//! loadgen: a constant-throughput HTTP load generator with wrk2's command line, Lua API and text.
//!
//! ```text
//! args (typed) → plan (to be done) → run: workers (schedule, connections, measurement) → result → report:
//! text, JSON, hlog, slowest
//!
//! parts' results (JSON) → merge → report: JSON, text
//! ```

mod agenda;
pub mod alternation;
pub mod args;
pub mod clock;
mod connection;
mod course;
mod due;
mod endpoint;
pub mod epoll;
pub mod error;
pub mod errors;
pub mod exchange;
pub mod http;
pub mod lateness;
mod live;
mod long_double;
mod lua_value;
pub mod machine;
pub mod measurement;
pub mod merge;
mod method;
pub mod opening_times;
pub mod options;
mod order;
pub mod output;
pub mod own_lateness;
pub mod part;
pub mod plan;
mod probe;
mod reconnecting;
pub mod recorder;
pub mod report;
mod requests;
pub mod result;
pub mod run;
pub mod sample;
pub mod schedule;
mod script;
pub mod script_file;
pub mod slices;
pub mod slowest;
pub mod socket;
pub mod statistics;
pub mod step_recorder;
pub mod steps;
pub mod tally;
pub mod target;
pub mod thread_use;
pub mod tls;
pub mod unanswered;
pub mod uniform;
pub mod units;
pub mod verdict;
pub mod waiting;
pub mod whole_file;
mod worker;
