"""How each published claim is measured: one rule per claim of data/published/claims.csv, from the runs of the
experiment that asks it, and for some also by its duet."""

from kvstudy.analyse.configuration import RATE
from kvstudy.analyse.replication.measured import DuetQuestion, Rule
from kvstudy.analyse.replication.measures import (
    at_found_rate,
    cache_ratio,
    closed_rate,
    column,
    flushed_bytes,
    found_rate,
    held_rate,
    lock_waiting,
    percentile_of,
    profile_share,
    profile_share_around,
    ratio_of,
    share_ratio,
    unexpected,
    variant_ratio,
)

_SYNCHRONOUS, _POOL = "handler=selector", "handler=workers"
_R1 = "the reports' machine was a Xeon E5-2620 v3"
_R2_PROFILES = (
    "in report 2's profiles at the rates around this one, since report 1's search is not profiled; "
    "on one side of it alone they decide nothing"
)
_R3_POOL = "report 3's final server is the worker pool"


def _pool_duet(workload: str, measure: str) -> DuetQuestion:
    return DuetQuestion("report-3", workload, measure, _SYNCHRONOUS, _POOL, 16, 20000.0)


def _cache_duet(workload: str) -> DuetQuestion:
    return DuetQuestion("report-5", workload, RATE, "cache_entries=0", "cache_entries=5000", 1)


RULES: dict[str, Rule] = {
    "r1-put-stable": Rule(found_rate("put"), note=_R1),
    "r1-put-stable-second": Rule(found_rate("put")),
    "r1-put-stable-third": Rule(found_rate("put")),
    "r1-get-stable": Rule(found_rate("get"), note=_R1),
    "r1-put-p90": Rule(at_found_rate(90.0, "put"), note="ours at the highest rate tried below our knee"),
    "r1-get-p90": Rule(at_found_rate(90.0, "get"), note="ours at the highest rate tried below our knee"),
    "r1-put-network": Rule(
        profile_share_around("cpu", ("store",), 1, "PUT", 11250.0), note=f"store share {_R2_PROFILES}"
    ),
    "r1-get-alloc": Rule(
        profile_share_around("alloc", ("store",), 1, "GET", 8906.0),
        note=f"store share {_R2_PROFILES}; our lookup copies the value once and keeps no iterator",
    ),
    "r1-heat-gaps": Rule(
        column("service_cpu_share", "report-2", "put", scale=100.0, offered_rate_rps=2000.0),
        note="ours: CPU of the service at 2 000/s, of one core",
    ),
    "r1-async-helps": Rule(
        variant_ratio("p99", "put", "report-3", _SYNCHRONOUS, _POOL),
        "faster",
        "ours: p99 of the pool over that of the synchronous handler, at 20 000/s",
        _pool_duet("put", "p99"),
    ),
    "r2-put-2000-held": Rule(held_rate("report-2", "put", offered_rate_rps=2000.0), "held"),
    "r2-put-2000-stdev": Rule(
        column("response_stdev_us", "report-2", "put", offered_rate_rps=2000.0),
        note="most of theirs is wrk2's timer of a millisecond",
    ),
    "r2-put-2000-p999": Rule(percentile_of(99.9, "report-2", "put", offered_rate_rps=2000.0)),
    "r2-put-20000-not-held": Rule(
        held_rate("report-2", "put", offered_rate_rps=20000.0),
        "not held",
        "ours on one connection; theirs is not said",
    ),
    "r2-put-20000-mean": Rule(
        column("response_mean_us", "report-2", "put", offered_rate_rps=20000.0),
        note="past saturation a mean grows with the length of the run: theirs 60 s",
    ),
    "r2-put-20000-flush": Rule(
        profile_share("cpu", ("flush", "compaction"), "report-2", "put", offered_rate_rps=20000.0),
        note="ours: flush and compaction",
    ),
    "r2-put-idle-falls": Rule(
        share_ratio("cpu", "idle", 2000.0, 20000.0, "report-2", "put"),
        "falls",
        "ours: share at 20 000/s over that at 2 000/s, medians over profiles",
    ),
    "r2-put-alloc-grows": Rule(
        share_ratio("alloc", "store", 2000.0, 20000.0, "report-2", "put"),
        "rises",
        "ours: share at 20 000/s over that at 2 000/s, medians over profiles",
    ),
    "r2-get-2000-p90": Rule(
        percentile_of(90.0, "report-2", "get", offered_rate_rps=2000.0),
        note="printed there and passed over: a stall of over a second within 60 s",
    ),
    "r2-get-2000-lookup": Rule(
        profile_share("cpu", ("store",), "report-2", "get", offered_rate_rps=2000.0),
        note="our tables have a bloom filter and a block index; theirs are searched one by one",
    ),
    "r3-put-20000-held": Rule(column("achieved_rate_rps", "report-3", "put", _POOL)),
    "r3-put-p50": Rule(percentile_of(50.0, "report-3", "put", _POOL)),
    "r3-put-p99": Rule(percentile_of(99.0, "report-3", "put", _POOL), note=_R3_POOL),
    "r3-put-p999": Rule(percentile_of(99.9, "report-3", "put", _POOL), note=_R3_POOL),
    "r3-put-p99999": Rule(
        percentile_of(99.9, "report-3", "put", _POOL),
        note="ours: p99.9, the last percentile that our runs carry",
    ),
    "r3-get-20000-held": Rule(
        held_rate("report-3", "get", _POOL, offered_rate_rps=20000.0),
        "held",
        note=_R3_POOL,
    ),
    "r3-get-p50": Rule(percentile_of(50.0, "report-3", "get", _POOL)),
    "r3-get-p99": Rule(percentile_of(99.0, "report-3", "get", _POOL), note=_R3_POOL),
    "r3-get-p999": Rule(percentile_of(99.9, "report-3", "get", _POOL), note=_R3_POOL),
    "r3-pool-faster": Rule(
        variant_ratio("p50", "put", "report-3", _SYNCHRONOUS, _POOL),
        "faster",
        "ours: median of the pool over that of the synchronous handler; both flush on a thread of their own",
        _pool_duet("put", "p50"),
    ),
    "r3-get-unchanged": Rule(
        variant_ratio("p50", "get", "report-3", _SYNCHRONOUS, _POOL),
        "unchanged",
        "ours: median of the pool over that of the synchronous handler",
        _pool_duet("get", "p50"),
    ),
    "r3-put-flush-apart": Rule(
        profile_share("cpu", ("flush",), "report-3", "put", _POOL),
        note="our flush has a thread of its own under every handler, and its entries are sorted already",
    ),
    "r3-put-locks": Rule(
        lock_waiting("report-3", "put", _POOL),
        "hardly any",
        "their samples and our waiting time have no common unit; hardly any is under 1 % of the time",
    ),
    "r3-get-locks": Rule(
        lock_waiting("report-3", "get", _POOL),
        "hardly any",
        "their samples and our waiting time have no common unit; hardly any is under 1 % of the time",
    ),
    "r4-stable": Rule(
        found_rate("put", "report-4", 8),
        note="ours by search for a mean of at most 1 ms, PUT, one connection",
    ),
    "r4-stable-doubled": Rule(
        found_rate("put", "report-4", 16),
        note="ours by search for a mean of at most 1 ms, PUT, one connection",
    ),
    "r4-doubling": Rule(
        lambda tables: ratio_of(
            found_rate("put", "report-4", 16)(tables), found_rate("put", "report-4", 8)(tables)
        ),
        "proportion",
        note="ours: the knees of the two searches, lowest and highest that they leave open",
    ),
    "r4-syscalls": Rule(
        profile_share(
            "cpu", ("socket read", "response", "idle"), "report-2", "put", along=("offered_rate_rps",)
        ),
        "at least",
        "ours: reading the socket, answering and waiting for events, from report 2's question, at both rates",
    ),
    "r4-flush-size": Rule(
        flushed_bytes("report-4", "put", key_bytes=8, along=("offered_rate_rps",)),
        "differs",
        "ours: bytes of a table against a threshold of 1 MiB that counts the memtable with its objects: "
        "no bug, another unit",
    ),
    "r5-repeated-get-c1": Rule(cache_ratio("repeated_get", 1), "ratio", duet=_cache_duet("repeated_get")),
    "r5-repeated-get-c2": Rule(cache_ratio("repeated_get", 2), "ratio"),
    "r5-repeated-get-c4": Rule(cache_ratio("repeated_get", 4), "ratio"),
    "r5-unique-get": Rule(cache_ratio("unique_get", 1), "ratio", duet=_cache_duet("unique_get")),
    "r5-unique-put": Rule(cache_ratio("unique_put", 1), "ratio"),
    "r5-repeated-put": Rule(cache_ratio("repeated_put", 1), "ratio"),
    "r5-repeated-get-falls": Rule(
        closed_rate("repeated_get", 4, "cache_entries=0"), note="ours: all threads together"
    ),
    "r5-closed-loop-latency": Rule(
        percentile_of(99.0, "report-5", "repeated_get", "cache_entries=5000", connections=1),
        note="ours: as theirs, the closed loop's",
    ),
    "r5-non-2xx": Rule(
        unexpected("repeated_get", 4, "cache_entries=0"), note="ours: per run, every answer checked"
    ),
}
