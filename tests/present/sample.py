"""Made-up tables in the real schema, to test drawing. They are sample data: nothing outside tests may show
them."""

import functools
from dataclasses import replace

import histograms
import numpy as np
import pandas as pd

from kvstudy.analyse import by_second, schema
from kvstudy.analyse.tables import Tables
from kvstudy.record import hdr

PERCENTILES = (0, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 100)


def keep(tables: Tables, holds) -> Tables:
    """The tables of the runs for which ``holds(row)``."""
    return tables.only(tables.runs.loc[[bool(holds(run)) for run in tables.runs.itertuples()], "run_id"])


def finer(tables: Tables, parts: int = 4) -> Tables:
    """The same answers in intervals of so many parts of a second."""
    rows = []
    for row in tables.intervals.to_dict("records"):
        whole = hdr.decode(row["histogram"])
        for part in range(parts):
            counts = (whole.counts + (part + np.arange(len(whole.counts))) % parts) // parts
            own = hdr.Histogram(whole.layout, whole.indices[counts > 0], counts[counts > 0])
            begin_s = row["start_s"] + part / parts
            rows.append(
                row
                | {"start_s": begin_s, "length_s": 1 / parts, "histogram": hdr.encode(own)}
                | by_second.figures(own)
            )
    return replace(tables, intervals=schema.conform("intervals", pd.DataFrame(rows)))


def sample_tables(
    seed: int = 7,
    rates=(1000.0, 4000.0, 16000.0),
    connections=(1, 4),
    workloads=("unique_put", "repeated_get"),
    repeats=3,
    capacity_rps=9000.0,
    seconds=6,
    label="sample",
    labels=None,
    profiled=True,
) -> Tables:
    """Runs of a pretended service that saturates at ``capacity_rps`` per 4 connections; prints its seed.
    Made once for the same arguments: nobody changes the frames of Tables."""
    print(f"sample tables: seed={seed}")
    named = (seed, rates, connections, workloads, repeats, capacity_rps, seconds, label, labels, profiled)
    return _made(*(tuple(one) if isinstance(one, list) else one for one in named)).but()


@functools.lru_cache(maxsize=32)
def _made(
    seed, rates, connections, workloads, repeats, capacity_rps, seconds, label, labels, profiled
) -> Tables:
    random = np.random.default_rng(seed)
    parts = {name: [] for name in schema.TABLES}
    index = 0
    for name in labels or (label,):
        for workload in workloads:
            for c in connections:
                for rate in rates:
                    for repeat in range(1, repeats + 1):
                        _run(
                            parts,
                            random,
                            name,
                            workload,
                            c,
                            rate,
                            repeat,
                            index,
                            capacity_rps * (c / 4) ** 0.5,
                            seconds,
                        )
                        index += 1
            if profiled:
                _profile(parts, random, name, workload, index)
                index += 1
    return Tables(
        **{
            name: schema.conform(name, pd.DataFrame(rows)) if rows else schema.empty(name)
            for name, rows in parts.items()
        },
        source="sample",
    )


def repeated(tables: Tables, times: int) -> Tables:
    """Every run so many times."""

    def copies(frame):
        return pd.concat(
            [frame.assign(run_id=f"{number}-" + frame["run_id"]) for number in range(times)],
            ignore_index=True,
        )

    return replace(tables, **{name: copies(getattr(tables, name)) for name in schema.TABLES})


def empty_tables() -> Tables:
    return Tables(**{name: schema.empty(name) for name in schema.TABLES})


def failed(
    tables: Tables, run_ids, check="no_foreign_load", observed="30.00 %", excluded="outside"
) -> Tables:
    """``tables`` with these runs FAILed by one check."""
    run_ids = list(run_ids)
    rows = pd.DataFrame(
        {
            "run_id": run_ids,
            "check": check,
            "verdict": "FAIL",
            "observed": observed,
            "required": "something else",
        }
    )
    mine = tables.runs["run_id"].isin(run_ids)
    runs = tables.runs.assign(
        verdict=tables.runs["verdict"].mask(mine, "FAIL"),
        excluded=tables.runs["excluded"].mask(mine, excluded),
    )
    return replace(
        tables,
        runs=runs,
        validity=schema.conform("validity", pd.concat([tables.validity, rows], ignore_index=True)),
    )


def _run(parts, random, label, workload, connections, rate, repeat, index, capacity, seconds) -> None:
    minute = f"{index // 60:02d}{index % 60:02d}"
    run_id = f"20261120T19{minute}Z-{workload}-c{connections}-r{int(rate):05d}-rep{repeat}"
    achieved = min(rate, capacity) * random.uniform(0.996, 1.0)
    held = achieved >= 0.99 * rate
    base = 120 * (2 if "put" in workload else 1) * random.uniform(0.9, 1.1)
    wait = 1.0 if held else 400.0
    count = int(achieved * seconds)
    for kind, factor in (("response", wait), ("service", 1.0), ("lateness", 0.02)):
        samples = base * factor * random.lognormal(0, 0.5, size=20000) / (1 - min(rate / capacity, 0.9))
        if kind == "response":
            from_due = samples
        elif kind == "service":  # nobody's is longer from the send
            samples = np.minimum(samples, from_due)
        for p in PERCENTILES:
            beyond = int(count * (1 - p / 100))
            latency = float(np.percentile(samples, p)) if beyond >= 10 or p == 100 else np.nan
            parts["percentiles"].append(
                {
                    "run_id": run_id,
                    "latency_kind": kind,
                    "percentile": float(p),
                    "latency_us": latency,
                    "sample_count": count,
                    "samples_beyond": beyond,
                }
            )
        for second in range(seconds):
            mine = samples[second * (20000 // seconds) : (second + 1) * (20000 // seconds)] * (
                6 if second == 3 else 1
            )
            parts["intervals"].append(
                {
                    "run_id": run_id,
                    "start_s": float(second),
                    "length_s": 1.0,
                    "second": second,
                    "latency_kind": kind,
                    "count": len(mine),
                    "p50_us": float(np.median(mine)),
                    "p99_us": float(np.percentile(mine, 99)),
                    "max_us": float(mine.max()),
                    "histogram": encoded(mine),
                }
            )
    parts["events"] += [
        {
            "run_id": run_id,
            "kind": "gc_pause",
            "start_s": 3.2,
            "duration_ms": 35.0,
            "attributes": '{"cause": "G1 Evacuation Pause"}',
        },
        {"run_id": run_id, "kind": "flush", "start_s": 3.4, "duration_ms": 180.0, "attributes": "{}"},
        {"run_id": run_id, "kind": "safepoint", "start_s": 1.1, "duration_ms": 0.4, "attributes": "{}"},
    ]
    parts["validity"] += [
        {
            "run_id": run_id,
            "check": "rate_held",
            "verdict": "PASS" if held else "FAIL",
            "observed": f"{100 * achieved / rate:.1f} %",
            "required": "≥ 99 %",
        },
        {
            "run_id": run_id,
            "check": "samples",
            "verdict": "PASS",
            "observed": str(count),
            "required": "≥ 1000",
        },
    ]
    parts["runs"].append(
        _row(run_id, label, workload, connections, rate, achieved, repeat, index, seconds, held, False)
    )


def _profile(parts, random, label, workload, index) -> None:
    run_id = f"20261120T19{index // 60:02d}{index % 60:02d}Z-{workload}-profile"
    parts["runs"].append(_row(run_id, label, workload, 4, 1000.0, 1000.0, 1, index, 6, True, True))
    for event in ("cpu", "alloc"):
        for stack, weight in (
            (
                "java/lang/Thread.run_[j];one/nio/server/SelectorThread.run_[j];one/nio/net/NativeSocket.read_[j];read;[kernel]",
                40,
            ),
            (
                "java/lang/Thread.run_[j];one/nio/server/SelectorThread.run_[j];kv/http/KvServer.handle_[j];kv/lsm/LsmStore.get_[j]",
                25,
            ),
            (
                "java/lang/Thread.run_[j];one/nio/server/SelectorThread.run_[j];one/nio/http/HttpSession.sendResponse_[j];send",
                30,
            ),
            ("thread_start;G1ParTask::work;G1EvacuateFollowers", 8),
        ):
            parts["stacks"].append(
                {
                    "run_id": run_id,
                    "event": event,
                    "stack": stack,
                    "samples": int(weight * random.uniform(50, 60)),
                }
            )


def _row(
    run_id, label, workload, connections, rate, achieved, repeat, index, seconds, held, profiled
) -> dict:
    return {
        "run_id": run_id,
        "experiment": "sample",
        "label": label,
        "variant": "",
        "workload": workload,
        "method": "PUT" if "put" in workload else "GET",
        "server": "kv-service",
        "generator": "loadgen",
        "closed_loop": False,
        "connections": connections,
        "threads": 1,
        "offered_rate_rps": rate,
        "achieved_rate_rps": achieved,
        "duration_s": seconds + 2.0,
        "warm_up_s": 2.0,
        "measured_s": float(seconds),
        "repeat": repeat,
        "plan_index": index,
        "seed": 1,
        "profiled": profiled,
        "processors_awake": True,
        "outcome": "completed",
        "verdict": "PASS" if held else "FAIL",
        "excluded": "" if held else "service",
        "same_within": 0.05,
        "start_utc": "2026-11-20T19:00:00.000Z",
        "revision": "0" * 40,
        "dirty": False,
        "requests_sent": int(achieved * (seconds + 2)),
        "requests_measured": int(achieved * seconds),
        "unexpected_answers": 0,
        "errors_total": 0,
        "unsent": 0 if held else 500,
        "response_mean_us": 200.0,
        "response_stdev_us": 50.0,
        "response_max_us": 9000.0,
        "service_mean_us": 150.0,
        "lateness_p99_us": 9.0,
        "service_cpu_share": 0.7,
        "generator_cpu_share": 0.3,
        "service_cpu_us_per_answer": 700.0 / rate * 1e3,
        "service_rss_max_bytes": 3e8,
        "service_options": "{}",
        "workload_args": '{"key_count": 1000}',
        "arrivals": "uniform",
        "spin": "auto",
        "timeout_s": "2.0",
        "jvm": "[]",
        "pause": "null",
        "fill": "null",
        "awake": "auto",
        "cores": "null",
        "head_start_bytes": "null",
        "statuses": "null",
        "subject": "null",
        "profiler": "null",
        "pinning": "not pinned",
        "service_program": '{"digest": "a"}',
        "generator_program": "b",
        "script_digest": "c",
        "machine": "{}",
        "hosts": "one machine",
        "search": "",
        "answer": "",
    }


def encoded(latencies_us) -> str:
    return histograms.encoded(np.maximum(latencies_us, 1), highest_us=3_600_000_000)
