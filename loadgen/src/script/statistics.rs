//! `latency` and `requests` as `done` sees them: min, max, mean, stdev, percentile(p), and the recorded
//! values one by one.

use std::rc::Rc;

use hdrhistogram::Histogram;
use mlua::{MetaMethod, UserData, UserDataFields, UserDataMethods};

use crate::statistics;

/// A histogram of latencies in microseconds, or of requests per second.
#[derive(Clone)]
pub struct Statistics(pub Rc<Histogram<u64>>);

impl UserData for Statistics {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("min", |_, this| Ok(statistics::min(&this.0)));
        fields.add_field_method_get("max", |_, this| Ok(statistics::max(&this.0)));
        fields.add_field_method_get("mean", |_, this| Ok(statistics::mean(&this.0)));
        fields.add_field_method_get("stdev", |_, this| Ok(statistics::stdev(&this.0)));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("percentile", |_, this, percentile: f64| {
            Ok(statistics::percentile(&this.0, percentile))
        });
        methods
            .add_method("within_stdev", |_, this, times: f64| Ok(statistics::within_stdev(&this.0, times)));
        // As in wrk2: the value of this rank; anything else that is not there is nil.
        methods.add_meta_method(MetaMethod::Index, |_, this, key: mlua::Value| {
            let rank = key.as_f64().or(key.as_i64().map(|rank| rank as f64));
            Ok(rank.map(|rank| {
                statistics::percentile(&this.0, (100.0 * rank / this.0.len().max(1) as f64).clamp(0.0, 100.0))
            }))
        });
        methods.add_meta_method(MetaMethod::Len, |_, this, ()| Ok(this.0.iter_recorded().count()));
        methods.add_meta_method(MetaMethod::Call, |_, this, index: usize| {
            let step = index.checked_sub(1).and_then(|index| this.0.iter_recorded().nth(index));
            Ok((
                step.as_ref().map(|step| step.value_iterated_to()),
                step.as_ref().map(|step| step.count_at_value()),
            ))
        });
    }
}
