//! The reports of a run: wrk2's text, JSON, the interval log, and the slowest answers.

pub mod hlog;
pub mod json;
pub mod json_slices;
mod json_steps;
pub mod planned_slices;
pub mod slowest;
pub mod text;
