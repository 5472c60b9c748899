"""What the launches of a duet say until now, from its tables or from the sealed folders themselves.

for found in duets(study_duets()):        one Duet per comparison, one's own and the last measured first
    found.results                         comparison.stopping.MeasureResult of each measure, the primary first

duet_of(sealed_runs(folder), digest)      the same while it is measured, after each launch
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import pandas as pd

from kvstudy.analyse import schema
from kvstudy.analyse.claim import CLOSED_LOOP, DUET, Claim, Place
from kvstudy.analyse.comparison import launches, stopping
from kvstudy.analyse.comparison.lost import Lost
from kvstudy.analyse.comparison.stopping import MeasureResult
from kvstudy.analyse.conditions import NOT_RECORDED, hosts_in_words
from kvstudy.analyse.duet_observation import observe_duet
from kvstudy.analyse.duet_validity import ALIVE, ANSWERS, DATA, FAIL
from kvstudy.analyse.tables import Duets
from kvstudy.analyse.validity import OUTSIDE
from kvstudy.record.duet import SIDES, is_duet
from kvstudy.record.run_folder import SealedRun


@dataclass(frozen=True)
class Duet:
    """One comparison. ``a``, ``b``: names of the sides; ratios are b / a. ``counted``: launches that count;
    ``outside``, ``lost.a``, ``lost.b``: those that do not, by whose doing; ``tables``: of these launches,
    profiled ones included."""

    comparison: str
    experiment: str
    a: str
    b: str
    counted: int
    outside: int
    lost: Lost
    results: list[MeasureResult]
    tables: Duets = field(repr=False, compare=False)

    @property
    def primary(self) -> MeasureResult | None:
        return next((one for one in self.results if one.primary), None)

    @property
    def asked(self) -> int:
        """Launches that might have counted; profiled ones are none."""
        return self.outside + self.lost.of

    @property
    def failed_besides(self) -> str:
        """Behind ``outside``: in which of these launches a side died, lost data or gave a wrong answer, which
        other programs do not make it do; "" for none."""
        checks, sealed = self.tables.duet_validity, self.tables.duets
        left_out = sealed.loc[sealed["excluded"] == OUTSIDE, "run_id"]
        rows = checks[(checks["verdict"] == FAIL) & checks["run_id"].isin(left_out)]
        failed = [
            f"{check} of {name}"
            for side, name in zip(SIDES, (self.a, self.b), strict=True)
            for check in (ALIVE, DATA, ANSWERS)
            if f"{check}_{side}" in set(rows["check"])
        ]
        return f", where {', '.join(failed)} failed too" if failed else ""

    @property
    def counted_runs(self) -> list[str]:
        """The launches that count, in their order."""
        asked = _asked(self.tables)
        return asked.loc[asked["excluded"] == "", "run_id"].tolist()

    @property
    def is_own(self) -> bool:
        """Measured by the reader, not committed."""
        return bool(self.tables.own.intersection(self.tables.duets["run_id"]))

    @property
    def where(self) -> str:
        """On which hosts, in words; all launches that count ran there."""
        return hosts_in_words(str(self.tables.duets.sort_values(["start_utc", "run_id"])["hosts"].iloc[0]))

    @property
    def cores(self) -> str:
        """On which cores the services and the generator ran; all launches that count ran there."""
        return _pinning(_asked(self.tables))

    @property
    def question(self) -> tuple:
        """Duets of one question may have been asked at another time, of other builds or elsewhere. Another
        number of connections is another question."""
        parts = json.loads(self.tables.duets["parts"].iloc[0])
        connections = sorted({part["connections"] for part in parts if "connections" in part})
        return self.experiment, self.a, self.b, *connections

    @property
    def undecided(self) -> list[MeasureResult]:
        return stopping.undecided(self.results)


def duets(tables: Duets) -> list[Duet]:
    """Every comparison that has launches: the reader's own before committed ones, the last measured first."""
    return list(tables.cached(_duets))


def _duets(tables: Duets) -> list[Duet]:
    groups = tables.duets.groupby("comparison", sort=False)
    return last_first(_duet(tables.only(group["run_id"])) for _, group in groups)


def last_first(found: Iterable[Duet]) -> list[Duet]:
    """The reader's own before committed ones, the last measured first."""
    return sorted(found, key=lambda one: (one.is_own, one.tables.duets["start_utc"].max()), reverse=True)


def duet_of(runs: Iterable[SealedRun], comparison: str) -> Duet | None:
    """Of the launches of this comparison among ``runs``; None where there is none. A launch is read once."""
    parts = [_observed(run.path) for run in runs if is_duet(run) and run.facts["comparison"] == comparison]
    if not parts:
        return None
    frames = {name: [row for part in parts for row in part[name]] for name in schema.DUET_TABLES}
    return _duet(
        Duets(
            **{
                name: schema.conform(name, pd.DataFrame(rows)) if rows else schema.empty(name)
                for name, rows in frames.items()
            }
        )
    )


def claims(duet: Duet) -> tuple[Claim, ...]:
    """Of each measure, the primary first."""
    parts = {
        (part["workload"], part["loop"]): part for part in json.loads(duet.tables.duets["parts"].iloc[0])
    }
    found = []
    for one in duet.results:
        part = parts.get((one.workload, one.loop), {})
        rate = CLOSED_LOOP if one.loop == "closed" else part.get("offered_rate_rps")
        found.append(
            Claim(
                subject=Place(one.workload, part.get("connections"), rate, duet.experiment),
                measure=one.measure,
                unit="ratio",
                estimate=one.ratio,
                interval=None if math.isnan(one.low) else (one.low, one.high),
                word=one.word,
                runs=one.launches,
                rule=DUET,
                baseline=duet.a,
                variant=duet.b,
                why="rounds or launches left out for what a side did"
                if one.held_back
                else "launches fall into groups"
                if one.in_groups
                else "",
                sides=(one.launches, one.launches),
                ends=(one.a, one.b),
                within_percent=100 * one.same_within,
                findable_percent=None if math.isinf(one.found) else 100 * (one.found - 1),
            )
        )
    return tuple(found)


@lru_cache(maxsize=200)
def _observed(path: Path) -> dict[str, list[dict]]:
    """A sealed folder never changes."""
    return observe_duet(SealedRun(path))


def _asked(tables: Duets) -> pd.DataFrame:
    """Launches without a profiler, in their order; "outside" those that are of another duet."""
    all_launches = tables.duets.sort_values(["start_utc", "run_id"])
    first = all_launches.iloc[0]
    asked = all_launches[~all_launches["profiled"]]
    # Nobody pools what was asked for in another way, of other builds or on other hosts or cores, whatever the
    # folders call it.
    elsewhere = asked["hosts"].map(hosts_in_words) != hosts_in_words(first["hosts"])
    another = elsewhere | (asked["asked"] != first["asked"])
    asked = asked.assign(excluded=asked["excluded"].mask(another, "outside"))
    return asked.assign(excluded=asked["excluded"].mask(asked["pinning"] != _pinning(asked), "outside"))


def _pinning(in_order: pd.DataFrame) -> str:
    """Of the first launch that counts: one that failed early was placed nowhere."""
    placed = in_order.loc[in_order["excluded"] == "", "pinning"]
    return str((in_order["pinning"] if placed.empty else placed).iloc[0]) if len(in_order) else NOT_RECORDED


def _duet(tables: Duets) -> Duet:
    first, asked = tables.duets.sort_values(["start_utc", "run_id"]).iloc[0], _asked(tables)
    counted = asked[asked["excluded"] == ""]
    order = {run_id: place for place, run_id in enumerate(counted["run_id"])}
    values = tables.ratios[tables.ratios["run_id"].isin(order)]
    values = values.assign(launch=values["run_id"].map(order))
    lost = Lost(
        *(int(asked["excluded"].str.fullmatch(f"{side}|ab").sum()) for side in SIDES),
        of=int((asked["excluded"] != "outside").sum()),
    )
    results = stopping.measure_results(
        values, json.loads(first["primary"]), float(first["same_within"]), _lost_rounds(tables, order), lost
    )
    return Duet(
        str(first["comparison"]),
        str(first["experiment"]),
        str(first["a"]),
        str(first["b"]),
        len(counted),
        int((asked["excluded"] == "outside").sum()),
        lost,
        results,
        tables,
    )


def _lost_rounds(tables: Duets, counted: Iterable[str]) -> dict[tuple[str, str, str], Lost]:
    """By workload, loop and kind of measure: those of latency lack the rounds in which a side was busy or
    gave no answer, those of cost only the latter."""
    found = {}
    slices = tables.slices[tables.slices["run_id"].isin(list(counted)) & (tables.slices["loop"] != "profile")]
    for (workload, loop), part in launches.lost_rounds(slices).groupby(launches.PART):
        of = int(part["rounds"].sum())
        errors = [int(part[f"errors_{side}"].sum()) for side in SIDES]
        busy = [int(part[f"busy_{side}"].sum()) for side in SIDES]
        found[workload, loop, "cost"] = found[workload, loop, "errors"] = Lost(*errors, of)
        found[workload, loop, "latency"] = Lost(
            *(one + other for one, other in zip(errors, busy, strict=True)), of, int(part["emptied"].sum())
        )
    return found
