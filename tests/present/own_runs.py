"""Runs of a reader's own beside the reference, without measuring: those of the reference once more, under
other names and with other noise.

    own_runs.stand_beside_the_reference("report-3 noise")     of these experiments; "every": all; "": none

From then on the pages of this process see them, and never what lies in data/raw.
"""

from functools import lru_cache

import numpy as np
import pandas as pd

from kvstudy.analyse import schema
from kvstudy.analyse import tables as analysed
from kvstudy.analyse.tables import REFERENCE_ALONE, Tables
from kvstudy.present import notebook

SIGMA = 0.15  # of the noise of a run, as a logarithm
EVERY = "every"
_measured = analysed.study_tables


def stand_beside_the_reference(experiments: str) -> None:
    """``experiments``: names between blanks."""
    names = frozenset(experiments.split())

    def study_tables(
        experiment: str | None = None, places: tuple[frozenset[str], ...] = (), **_more: object
    ) -> Tables:
        reference = _reference()
        found = reference if places == REFERENCE_ALONE else _own_first(names)
        return found if experiment is None else found.select(experiment=experiment)

    notebook.study_tables = analysed.study_tables = study_tables


@lru_cache(maxsize=1)
def _reference() -> Tables:
    return _measured(progress=False, places=REFERENCE_ALONE)


@lru_cache(maxsize=1)
def _own_first(names: frozenset[str]) -> Tables:
    reference = _reference()
    is_own = reference.runs["experiment"].isin(names) | (names == {EVERY})
    return with_noise(reference.only(reference.runs.loc[is_own, "run_id"])).joined(
        reference.only(reference.runs.loc[~is_own, "run_id"])
    )


def with_noise(tables: Tables, seed: int = 7) -> Tables:
    """``tables`` as if measured again by the reader."""
    ids = {run_id: f"own-{run_id}" for run_id in tables.runs["run_id"]}
    noise = dict(
        zip(ids.values(), np.exp(np.random.default_rng(seed).normal(0, SIGMA, len(ids))), strict=True)
    )
    renamed = {
        name: getattr(tables, name).assign(run_id=getattr(tables, name)["run_id"].map(ids).astype(object))
        for name in schema.TABLES
    }
    runs, points = renamed["runs"], renamed["percentiles"]
    factor = runs["run_id"].map(noise)
    rate = runs["achieved_rate_rps"]
    renamed["runs"] = runs.assign(
        service_cpu_us_per_answer=runs["service_cpu_us_per_answer"] * factor,
        achieved_rate_rps=rate.where(~runs["closed_loop"], rate * factor),
    )
    moved = np.maximum(1, np.round(points["latency_us"] * points["run_id"].map(noise).astype(float)))
    renamed["percentiles"] = points.assign(latency_us=pd.Series(moved, index=points.index))
    folders = {ids[run_id]: folder for run_id, folder in tables.folders.items() if run_id in ids}
    return tables.but(**renamed, folders=folders, own=frozenset(ids.values()), source="data/raw")
