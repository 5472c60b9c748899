//! The three reports of a run: wrk2's text, JSON, and the interval log.

pub mod hlog;
pub mod json;
pub mod text;
pub mod whole_file;
