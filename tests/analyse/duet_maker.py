"""``DuetMaker``: real folders of a duet's launches, written and sealed by RunWriter, of a duet that never
happened but could have."""

import json

import numpy as np
import pandas as pd
from hdrh.histogram import HdrHistogram
from run_maker import RunMaker

from kvstudy.record import duet, hdr
from kvstudy.record.run_folder import SCHEMA_VERSION, RunWriter, SealedRun

SLICE_NS = 500_000_000
PERIOD_NS = 650_000_000
# What loadgen says of itself when it had time to spare and was late all the same.
LATE = (
    "starved: requests left late by the generator's own fault: own lateness p99 = 3000 us; a thread waited "
    "9.3 % of the time for a CPU"
)


def slices(
    rounds=12, ratio=1.0, loop="rate", workload="put", noise=0.0, generator=None, begin_ns=0, **b
) -> pd.DataFrame:
    """A part in which everything of b is ``ratio`` times that of a; ``b``: other columns of b; ``noise``:
    standard deviation of a slice's logarithm."""
    rows = []
    for number in range(2 * rounds):
        side = "abba"[number % 4]
        factor = ratio if side == "b" else 1.0
        factor *= np.exp(generator.normal(0, noise)) if noise else 1.0
        begin = begin_ns + number * PERIOD_NS
        rows.append(
            {
                "workload": workload,
                "loop": loop,
                "round": number // 2 + 1,
                "slice": number,
                "side": side,
                "begin_utc_ns": begin,
                "end_utc_ns": begin + SLICE_NS,
                "due": 1000.0,
                "answered": 1000,
                "errors": 0,
                "late": 0,
                "rate_rps": 2000.0 / factor,
                "mean_ns": 22_000 * factor,
                "p50_ns": 20_000 * factor,
                "p90_ns": 30_000 * factor,
                "p99_ns": 90_000 * factor,
                "cpu_ns": 20e6 * factor,
                "idle_cpu_ns": 1e6,
                "written_bytes": 100_000 * factor,
                **(b if side == "b" else {}),
            }
        )
    found = pd.DataFrame(rows).reindex(columns=list(duet.SLICES))
    real = [name for name, kind in duet.SLICES.items() if kind == "real" and found[name].dtype != float]
    return found.astype(dict.fromkeys(real, float))


def histogram(values_ns: dict[int, int]) -> str:
    found = HdrHistogram(1, 86_400_000_000_000, 3)
    for value, count in values_ns.items():
        found.record_value(value, count)
    return found.encode().decode()


def histograms(of: pd.DataFrame, tail_ns: dict[str, int]) -> dict[tuple[str, str, int], hdr.Histogram]:
    return {
        (row.workload, row.loop, row.slice): hdr.decode(histogram({20_000: 960, tail_ns[row.side]: 40}))
        for row in of.itertuples()
    }


class DuetMaker:
    """``make(launch=1, parts={("put", "rate"): frame}, **facts)``; without ``parts`` a part of PUT at a rate
    and one in a closed loop, b ``ratio`` times a."""

    def __init__(self, root, seed=1):
        print(f"duet: seed={seed}")
        self.root, self.generator = root, np.random.default_rng(seed)

    def __call__(
        self,
        launch=1,
        ratio=1.0,
        noise=0.05,
        parts=None,
        ends=None,
        machine=None,
        stacks=None,
        unexpected=None,
        saturated=(),
        late=None,
        without=(),
        warm_pairs=6,
        **changes,
    ) -> SealedRun:
        begin_ns = 1_795_207_345_000_000_000 + launch * 60_000_000_000
        own = ratio * np.exp(self.generator.normal(0, 0.01))
        if parts is None:
            parts = {
                ("put", "rate"): slices(12, own, noise=noise, generator=self.generator, begin_ns=begin_ns),
                ("put", "closed"): slices(
                    8,
                    own,
                    "closed",
                    noise=noise,
                    generator=self.generator,
                    begin_ns=begin_ns + 20_000_000_000,
                ),
            }
        run_id = changes.pop("run_id", f"20261120T21{launch:02d}00Z-duet-put-launch{launch:02d}")
        facts = {
            "schema_version": SCHEMA_VERSION,
            "kind": duet.DUET,
            "run_id": run_id,
            "experiment": "compare",
            "label": "",
            "question": "did it help?",
            "comparison": "c0ffee",
            "launch": launch,
            "sides": {"a": {"name": "main"}, "b": {"name": "change"}},
            "parts": [
                {
                    "workload": workload,
                    "method": "PUT",
                    "loop": loop,
                    "offered_rate_rps": 2000.0 if loop == "rate" else None,
                    "connections": 4,
                    "threads": 1,
                    "warm_pairs": warm_pairs if loop == "rate" else 0,
                }
                for workload, loop in parts
            ],
            "primary": {"workload": "put", "loop": "rate", "measure": "p50"},
            "same_within_percent": 5,
            "first_started": "a",
            "first_slices": {f"{workload} {loop}": "a" for workload, loop in parts},
            "ends": ends if ends is not None else {side: self.end() for side in duet.SIDES},
            "profile": None,
            "seed": 1,
            "revision": "0" * 40,
            "dirty": False,
            "tool_versions": {},
            "phases": {"warm_up": {"start_utc": f"2026-11-20T21:{launch:02d}:00.000Z"}},
            "outcome": "completed",
            **changes,
        }
        with RunWriter.create(self.root, facts["experiment"], run_id) as folder:
            folder.write_json("run.json", facts)
            folder.write_json(
                "machine.json",
                {
                    "cores": 2,
                    "memory_bytes": 8 << 30,
                    "load_during": {"steal_share_mean": 0.0, "foreign_cpu_share_mean": 0.01},
                }
                | (machine or {}),
            )
            every = pd.concat(list(parts.values()), ignore_index=True)
            if duet.SLICES_FILE not in without:
                folder.write_text(duet.SLICES_FILE, duet.write_slices(every))
            for (workload, loop), part in parts.items():
                folder.write_text(
                    duet.generator_file(workload, loop),
                    json.dumps(self._generator(loop, part, unexpected or {}, loop in saturated, late)),
                )
            for side, text in (stacks or {}).items():
                folder.write_text(duet.side_file("cpu.collapsed", side), text)
            return folder.seal()

    @staticmethod
    def end(**changes) -> dict:
        return {
            "died": False,
            "log_errors": [],
            "rss_max_bytes": 200 << 20,
            "data_check": {"sampled": 200, "missing": 0, "wrong": 0},
            **changes,
        }

    @staticmethod
    def _generator(
        loop: str, part: pd.DataFrame, unexpected: dict, saturated: bool, late: dict | None
    ) -> dict:
        """``late``: response times and own lateness, microseconds, of a generator late by itself."""
        usual = RunMaker.generator_json(
            {"offered_rate_rps": 2000.0 if loop == "rate" else None}, [np.full(100, 20)]
        )
        for name, values in (late or {}).items():
            usual[name] = {
                "count": len(values),
                "mean_us": float(np.mean(values)),
                "histogram_v2_base64": RunMaker.generator_json({"offered_rate_rps": None}, [values])[
                    "response_time"
                ]["histogram_v2_base64"],
            }
        of_slices = [
            {
                "slice": int(row.slice),
                "server": row.side.upper(),
                "unexpected": unexpected.get(row.side, 0),
                "response_time_ns": {
                    "histogram_v2_base64": histogram(
                        {max(1, int(row.p50_ns)): 960, max(1, int(row.p99_ns)): 40}
                    )
                },
            }
            for row in part[["slice", "side", "p50_ns", "p99_ns"]].itertuples()
        ]
        return usual | {
            "alternate": {"slices": of_slices},
            "verdict": {
                "generator_saturated": saturated or bool(late),
                "reason": LATE if late else "starved" if saturated else None,
            },
        }
