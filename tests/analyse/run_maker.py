"""``RunMaker``: a real run folder, written and sealed by RunWriter, of a run that never happened but could
have."""

import csv
import io
import json

import numpy as np
from histograms import encoded

from kvstudy.record.run_folder import RunWriter, SealedRun

START_EPOCH_S = 1_795_207_345.0  # 2026-11-20T20:42:25Z
START_UTC = "2026-11-20T20:42:25.000Z"


def facts(run_id: str, **changes) -> dict:
    return {
        "schema_version": 1,
        "run_id": run_id,
        "experiment": "rates",
        "label": "",
        "question": "how fast?",
        "workload": "put",
        "workload_args": {"key_count": 1000, "value_bytes": 100},
        "method": "PUT",
        "generator": "loadgen",
        "closed_loop": False,
        "connections": 16,
        "threads": 1,
        "offered_rate_rps": 2000,
        "duration_s": 8,
        "warm_up_s": 2,
        "timeout_s": 2,
        "variant": {},
        "service": {"handler": "selector"},
        "jvm": ["-Xmx128m"],
        "fill": None,
        "profile": None,
        "repeat": 1,
        "repeats": 5,
        "plan_index": 0,
        "plan_size": 5,
        "seed": 1,
        "revision": "0" * 40,
        "dirty": False,
        "tool_versions": {},
        "phases": {"measure": {"start_utc": START_UTC, "stop_utc": "2026-11-20T20:42:31.000Z"}},
        "data_check": {"sampled": 1000, "missing": 0, "wrong": 0},
        "outcome": "completed",
        **changes,
    }


class RunMaker:
    """``make_run("id", label="after", seconds=[…])``: facts of run.json by keyword; ``seconds``: response
    times of each second, us; ``parts``: intervals of the log in a second; ``counted``: keys of
    generator.json to change; ``process``: columns of process.csv to change; ``more``: files to add, by name;
    ``without``: files to leave out."""

    def __init__(self, root):
        self.root = root

    def __call__(
        self,
        run_id="20261120T204223Z-put-rep1",
        *,
        seconds=None,
        parts=1,
        events=None,
        stacks=None,
        counted=None,
        process=None,
        log="kv-service: listening\n",
        text=None,
        more=None,
        without=(),
        **changes,
    ) -> SealedRun:
        seconds = (
            self.usual_seconds(run_id) if seconds is None else [np.asarray(second) for second in seconds]
        )
        run_facts = facts(run_id, **changes)
        with RunWriter.create(self.root, run_facts["experiment"], run_id) as folder:
            files = {
                "run.json": json.dumps(run_facts),
                "machine.json": "{}",
                "service.log": log,
                "latency.hlog": self.hlog(seconds, parts),
                "slowest.csv": self.slowest_csv(seconds),
                "generator.json": json.dumps(
                    self.changed(self.generator_json(run_facts, seconds), counted or {})
                ),
                "process.csv": self.process_csv(len(seconds), process or {}),
                "events.json": json.dumps({"gc": [], "safepoints": [], "store": events or []}),
            }
            if text is not None:
                files["generator.txt"] = text
            for name, content in files.items():
                if name not in without:
                    folder.write_text(name, content)
            for event, content in (stacks or {}).items():
                folder.write_text(f"{event}.collapsed", content)
            for name, content in (more or {}).items():
                folder.write_text(name, content)
            return folder.seal()

    @staticmethod
    def changed(result: dict, counted: dict) -> dict:
        return {
            key: result[key] | counted[key]
            if isinstance(counted.get(key), dict)
            else counted.get(key, result[key])
            for key in result
        }

    @staticmethod
    def usual_seconds(run_id: str) -> list[np.ndarray]:
        generator = np.random.default_rng(sum(run_id.encode()))
        return [generator.lognormal(5, 0.4, 2000).astype(np.int64) for _ in range(6)]

    @staticmethod
    def hlog(seconds, parts=1) -> str:
        lines = [f"#[StartTime: {START_EPOCH_S:.3f} (seconds since epoch), Fri Nov 20 20:42:25 UTC 2026]"]
        lines.append('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"')
        lines.append(f"Tag=warmup_response,{START_EPOCH_S - 1:.3f},1.000,900000.0,{encoded([900_000] * 50)}")
        cut = [part for second in seconds for part in np.array_split(second, parts)]
        for at, values in enumerate(cut):
            for kind, shift in (("response", 0), ("service", 10), ("lateness", None)):
                kind_values = np.full(len(values), 3) if shift is None else np.maximum(values - shift, 1)
                lines.append(
                    f"Tag={kind},{START_EPOCH_S + at / parts:.3f},{1 / parts:.3f},"
                    f"{max(kind_values, default=0):.1f},{encoded(kind_values)}"
                )
        return "\n".join(lines) + "\n"

    @staticmethod
    def slowest_csv(seconds) -> str:
        """The ten slowest, due within their seconds at equal distances."""
        values = np.concatenate(seconds).astype(np.int64)
        due = [1_000_000 * at + 1_000_000 * np.arange(len(one)) // len(one) for at, one in enumerate(seconds)]
        places = np.argsort(-values, kind="stable")[:10]
        slowest = sorted(zip(np.concatenate(due)[places].tolist(), values[places].tolist(), strict=True))
        return "due_us,response_us,service_us,connection\n" + "".join(
            f"{due},{us},{max(us - 10, 1)},{place % 16}\n" for place, (due, us) in enumerate(slowest)
        )

    @staticmethod
    def generator_json(run_facts, seconds) -> dict:
        values = np.concatenate(seconds)
        count = len(values)

        def part(of):
            return {"count": len(of), "mean_us": float(np.mean(of)), "histogram_v2_base64": encoded(of)}

        return {
            "offered_rate_rps": run_facts["offered_rate_rps"],
            "achieved_rate_rps": count / len(seconds),
            "measured_s": len(seconds),
            "measure_start_utc": "2026-11-20T20:42:25.000000000Z",
            "counts": {
                "sent": count * 4 // 3,
                "completed": count * 4 // 3,
                "measured": count,
                "unsent": 0,
                "in_flight_at_end": 0,
                "lost": 0,
                "unexpected": 0,
            },
            "errors": {"connect": 0, "read": 0, "write": 0, "timeout": 0},
            "response_time": part(values),
            "service_time": part(np.maximum(values - 10, 1)),
            "send_lateness": part(np.full(count, 3)),
            "own_lateness": part(np.full(count, 3)),
            "verdict": {"generator_saturated": False, "reason": None},
        }

    @staticmethod
    def process_csv(length: int, changes: dict) -> str:
        usual = {
            "interval_s": 1.0,
            "service_cpu_s": 0.5,
            "generator_cpu_s": 0.2,
            "service_rss_bytes": 150_000_000,
            "steal_share": 0.001,
            "foreign_cpu_share": 0.01,
            "throttled_s": 0.0,
            **changes,
        }
        out = io.StringIO()
        writer = csv.DictWriter(out, ["second", *usual], lineterminator="\n")
        writer.writeheader()
        for second in range(-2, length):
            writer.writerow({"second": second, **usual})
        return out.getvalue()
