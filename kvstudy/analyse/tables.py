"""Sealed runs → data/tidy, and back as frames.

    rebuild([root / "data/raw"], root / "data/tidy")     reads what is new or changed, drops what is gone
    tables = load(root / "data/tidy").select(experiment="report-1")
    tables = study_tables(experiment="report-1")          the reader's own runs, or the committed reference
                                                          runs

How they lie on disk and are kept up to date: kvstudy/analyse/tidy. Of ``runs`` every row is read; of the
other tables, which are larger by far, what is asked for: the rows of the runs that were selected, when the
table is first looked at.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Self, TypeVar

import pandas as pd
import pyarrow.dataset as ds

from kvstudy import project
from kvstudy.analyse import schema
from kvstudy.analyse.tidy.build import INDEX, Spread, rebuild
from kvstudy.analyse.tidy.stored import Stored
from kvstudy.errors import InputError, KvstudyError, meant
from kvstudy.record.run_folder import SMOKE, known_runs

__all__ = ["Duets", "Tables", "load", "rebuild", "state", "study_duets", "study_tables"]
RAW, REFERENCE = "raw", "reference"
OWN_THEN_REFERENCE = frozenset({RAW}), frozenset({REFERENCE}), frozenset({SMOKE})
ALL_OWN = frozenset({RAW, SMOKE}), frozenset({REFERENCE})
REFERENCE_ALONE = (frozenset({REFERENCE}),)
OWN_ALONE = (frozenset({RAW, SMOKE}),)
EVERYTHING = (frozenset({RAW, SMOKE, REFERENCE}),)
# What there may be of an experiment: latency runs at what it asks for, trials of its searches, profiled runs,
# launches of duets.
KINDS = RUNS, TRIALS, PROFILES, DUETS = "runs", "trials", "profiles", "duets"
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class StoredRows:
    """Rows that are on disk until somebody looks at them: those of ``run_ids``, None of all."""

    stored: Stored
    table: str
    run_ids: frozenset[str] | None = None

    def frame(self, columns: list[str] | None = None) -> pd.DataFrame:
        return self.stored.frame(self.table, self.run_ids, columns)


class ChosenRows:
    """Rows of a frame, or of rows chosen before, not taken out before somebody looks at them: those of
    ``run_ids``."""

    def __init__(self, rows: "pd.DataFrame | ChosenRows", run_ids: frozenset[str]):
        self._rows, self._run_ids = rows, run_ids

    @cached_property
    def _chosen(self) -> pd.DataFrame:
        rows = self._rows.frame() if isinstance(self._rows, ChosenRows) else self._rows
        return rows[rows["run_id"].isin(self._run_ids)].reset_index(drop=True)

    def frame(self, columns: list[str] | None = None) -> pd.DataFrame:
        return self._chosen if columns is None else self._chosen[columns]


Unread = StoredRows | ChosenRows


class _Rows:
    """An attribute that is a frame: given as one, or as rows that are read or taken out when it is first
    looked at."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, tables: "Tables | None", owner: type) -> pd.DataFrame:
        if tables is None:
            raise AttributeError(self._name)  # so a dataclass has no default for it
        held = vars(tables)[self._name]
        if isinstance(held, Unread):
            held = vars(tables)[self._name] = held.frame()
        return held

    def __set__(self, tables: "Tables", value: pd.DataFrame | Unread) -> None:
        vars(tables)[self._name] = value


class _Held:
    """What Tables and Duets have in common: frames, of which some are still on disk."""

    def but(self, **changes: object) -> Self:
        """The same with other values of some fields; unlike dataclasses.replace it reads none of the
        others."""
        held = {one.name: vars(self)[one.name] for one in fields(self) if one.init}
        return type(self)(**{**held, **changes})

    def cached(self, work: Callable[..., _Found], *arguments: object) -> _Found:
        """``work(self, *arguments)``, done once for these tables: the charts of a page ask for the same again
        and again. The result is shared: do not change it. Other tables may be arguments: each equals itself
        alone."""
        found, key = vars(self).setdefault("_found", {}), (work, *arguments)
        if key not in found:
            found[key] = work(self, *arguments)
        return found[key]

    def columns(self, table: str, *names: str) -> pd.DataFrame:
        """``table`` with these columns alone; what is still on disk is read no further."""
        held = vars(self)[table]
        return held.frame(list(names)) if isinstance(held, Unread) else held[list(names)]

    def _of(self, run_ids: Iterable[str], tables: Iterable[str]) -> Self:
        wanted, (first, *others) = frozenset(run_ids), tables
        chosen = ChosenRows(vars(self)[first], wanted).frame()
        return self.but(**{first: chosen}, **{name: _only(vars(self)[name], wanted) for name in others})


@dataclass(frozen=True, eq=False)
class Tables(_Held):
    """The tables as kvstudy.analyse.schema has them. ``source``: what they are from, for people; ``folders``:
    run id → run folder; ``smoke_shown``, ``smoke_hidden``: experiments whose only runs are of the preset
    smoke, and those whose smoke runs gave way to others; ``own``: runs that the reader has measured;
    ``part``: how much of a page's error the words of these runs may spend, less than all where the same is
    asked of other runs too (``present.notebook``).

    Select first, look then: every table but ``runs`` is read when it is first looked at. Nobody changes a
    table once it is in here.
    """

    runs: pd.DataFrame
    percentiles: pd.DataFrame = _Rows()
    intervals: pd.DataFrame = _Rows()
    slowest: pd.DataFrame = _Rows()
    stacks: pd.DataFrame = _Rows()
    events: pd.DataFrame = _Rows()
    validity: pd.DataFrame = _Rows()
    source: str = ""
    folders: dict[str, Path] = field(default_factory=dict)
    smoke_shown: tuple[str, ...] = ()
    smoke_hidden: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()
    part: float = 1.0

    def dataset(self, table: str) -> ds.Dataset:
        """Rows of these runs that nobody has read yet. KvstudyError where all of them are in memory."""
        for held in vars(self).values():
            if isinstance(held, StoredRows):
                return held.stored.dataset(table, self.runs["run_id"])
        raise KvstudyError("these tables are in memory already", f"use the frame: {table}")

    def select(self, **columns: object) -> "Tables":
        """Runs whose column equals the value, or one of several (a list, a set, a column of a frame), and
        their rows in every table: ``select(experiment="report-1", label=["before", "after"])``. None leaves
        the column free."""
        keep = pd.Series(True, index=self.runs.index)
        for name, wanted in columns.items():
            if name not in self.runs:
                raise KvstudyError(f"no such column: {name}", schema.nearest(name, self.runs.columns))
            if wanted is not None:
                column = self.runs[name]
                keep &= column.isin(list(wanted)) if is_several(wanted) else column == wanted
        return self.only(self.runs.loc[keep, "run_id"])

    def only(self, run_ids: pd.Series | list[str]) -> "Tables":
        """These runs and their rows in every table."""
        return self._of(run_ids, schema.TABLES)

    def joined(self, other: Self) -> Self:
        """These runs and those of ``other``, each once."""
        more = other.only(set(other.runs["run_id"]) - set(self.runs["run_id"]))
        return self.but(
            **{name: _both(vars(self)[name], vars(more)[name]) for name in schema.TABLES},
            folders=self.folders | more.folders,
            own=self.own | more.own,
        )

    @property
    def own_runs(self) -> int:
        """How many of these runs the reader has measured."""
        return int(self.runs["run_id"].isin(self.own).sum())

    def believed(self) -> "Tables":
        """Without the runs that FAILed a check or were profiled: what a claim about latency may rest on."""
        return self.only(self.runs.loc[(self.runs["verdict"] != "FAIL") & ~self.runs["profiled"], "run_id"])


@dataclass(frozen=True)
class Duets(_Held):
    """The tables of launches of duets, as kvstudy.analyse.schema has them; ``source`` and ``folders`` as of
    ``Tables``; ``own``: launches that the reader has measured."""

    duets: pd.DataFrame
    slices: pd.DataFrame = _Rows()
    ratios: pd.DataFrame = _Rows()
    duet_stacks: pd.DataFrame = _Rows()
    duet_validity: pd.DataFrame = _Rows()
    source: str = ""
    folders: dict[str, Path] = field(default_factory=dict)
    own: frozenset[str] = frozenset()

    def only(self, run_ids: pd.Series | list[str]) -> "Duets":
        """These launches and their rows in every table."""
        return self._of(run_ids, schema.DUET_TABLES)

    def select(self, **columns: object) -> "Duets":
        """Launches whose column of ``duets`` equals the value."""
        keep = pd.Series(True, index=self.duets.index)
        for name, wanted in columns.items():
            keep &= self.duets[name] == wanted
        return self.only(self.duets.loc[keep, "run_id"])


def load(tidy_root: Path) -> Tables:
    """The tables of ``tidy_root``; KvstudyError when they were never built."""
    return _loaded(Stored(tidy_root))


def study_duets(
    data_root: Path | None = None, experiment: str | None = None, progress: bool = True, spread: Spread = map
) -> Duets:
    """Up-to-date tables of the launches of duets of ``experiment`` (None: of all): one's own and committed
    ones, which pages tell apart, since a duet of one's own that decides nothing takes no answer away. Those
    of the preset smoke, which says nothing of speed, are left out. Without any launch the tables are
    empty."""
    data = (data_root or project.project_root() / "data").resolve()
    if experiment is not None and not _is_measured(experiment, data):
        raise _nothing_of(experiment, data)  # before all others are read
    return _duets_of(_up_to_date(data, progress, spread), (data / RAW).resolve(), experiment)


@lru_cache(maxsize=4)  # a page asks for them again and again, and they keep what was asked of them
def _duets_of(stored: Stored, raw: Path, experiment: str | None) -> Duets:
    found = Duets(**_frames(stored, schema.DUET_TABLES, "duets"), folders=stored.folders)
    found = found if experiment is None else found.select(experiment=experiment)
    own = {run_id for run_id in found.duets["run_id"] if stored.folders[run_id].is_relative_to(raw)}
    chosen = set(found.duets["run_id"]) - (own & stored.smoke)
    places = {RAW if run_id in own else REFERENCE for run_id in chosen}
    return found.only(chosen).but(
        source=" and ".join(f"data/{place}" for place in (RAW, REFERENCE) if place in places),
        own=frozenset(own & chosen),
    )


def study_tables(
    data_root: Path | None = None,
    experiment: str | None = None,
    progress: bool = True,
    places: tuple[frozenset[str], ...] = OWN_THEN_REFERENCE,
    spread: Spread = map,
) -> Tables:
    """Up-to-date tables of ``experiment`` (None: of all): of each experiment the runs of the first of
    ``places`` that has any. So what somebody measured stands in the place of the same question's reference,
    and only of that; what was measured with the preset smoke, which says nothing of speed, stands in
    nobody's.

    ``data_root``: default the project's data folder; ``spread``: who reads new runs (tidy/build.py).
    ``source`` says which of the two. Where nothing but duets was measured the tables are empty; KvstudyError
    when there is nothing at all, or no place has a run of the ``experiment`` that was named.
    """
    data = (data_root or project.project_root() / "data").resolve()
    if experiment is not None and not _is_measured(experiment, data):
        raise _nothing_of(experiment, data)  # before all others are read
    stored = _up_to_date(data, progress, spread)
    resolved = {name: (data / name).resolve() for name in (RAW, REFERENCE)}
    if places == REFERENCE_ALONE and any(
        {RAW, REFERENCE} <= _places(folder, False, **resolved) for folder in stored.folders.values()
    ):
        # Published from here: the copy is what every clone has, and may have less in it than its original.
        stored = _up_to_date(data, progress, spread, (REFERENCE,), data / "tidy" / ".reference")
    tables = _loaded(stored)
    tables = tables if experiment is None else tables.select(experiment=experiment)
    stands = [
        (run_id, name, _places(tables.folders[run_id], run_id in stored.smoke, **resolved))
        for run_id, name in zip(tables.runs["run_id"], tables.runs["experiment"], strict=True)
    ]
    taken: dict[str, frozenset[str]] = {}  # experiment → place
    chosen: list[str] = []
    for place in places:
        for run_id, name, at in stands:
            if place & at and taken.setdefault(name, place) == place:
                chosen.append(run_id)
    if chosen:
        smoke = {name for _, name, at in stands if SMOKE in at and name in taken}
        shown = {name for name in smoke if SMOKE in taken[name]}
        own = {run_id for run_id, name, _ in stands if name in taken and REFERENCE not in taken[name]}
        return tables.only(chosen).but(
            source=_source(taken),
            smoke_shown=tuple(sorted(shown)),
            smoke_hidden=tuple(sorted(smoke - shown)),
            own=frozenset(own & set(chosen)),
        )
    if experiment is None and len(stored.frame("duets")):
        return tables.only([]).but(source=f"data/{RAW}")
    if (stored.frame("duets")["experiment"] == experiment).any():
        raise KvstudyError(
            f"{experiment} was measured as a duet only, and these are pages of independent runs",
            f"page 06 has its answer: kvstudy report --experiment {experiment}",
        )
    raise _nothing_of(experiment, data)


def kinds_measured(
    experiment: str, data_root: Path, progress: bool = True, spread: Spread = map
) -> frozenset[str]:
    """What there is of it: some of KINDS. KvstudyError where nothing is."""
    launches = study_duets(data_root, experiment, progress, spread).duets
    runs = _up_to_date(data_root.resolve(), progress, spread).frame("runs")
    mine = runs[runs["experiment"] == experiment]
    is_trial = mine["search"] != ""
    there = (~is_trial & ~mine["profiled"]).any(), is_trial.any(), mine["profiled"].any(), len(launches) > 0
    return frozenset(kind for kind, is_there in zip(KINDS, there, strict=True) if is_there)


def _is_measured(experiment: str, data: Path) -> bool:
    """Mostly told by a folder of its name; a run may lie elsewhere, and knows its experiment itself."""
    roots = [data / name for name in (RAW, REFERENCE)]
    return any(
        run.facts.get("experiment") == experiment
        for places in ([root / experiment for root in roots], roots)
        for run in known_runs(*places)
    )


def _nothing_of(experiment: str | None, data: Path) -> KvstudyError:
    what = "any experiment" if experiment is None else experiment or "an experiment without a name"
    runs = known_runs(data / RAW, data / REFERENCE)
    measured = {name for run in runs if (name := run.facts.get("experiment"))}
    files = {file.stem for file in (data.parent / "experiments").glob("*.yaml")}
    if experiment is None or experiment in files or not measured:
        hint = f"measure it: kvstudy run experiments/{experiment or 'reproduce'}.yaml"
    else:
        hint = meant(experiment, [*measured, *files], f"measured: {', '.join(sorted(measured))}")
    kind = KvstudyError if experiment is None or experiment in files else InputError
    return kind(f"no sealed run of {what} under {data / RAW} or {data / REFERENCE}", hint)


_opened: dict[Path, tuple[tuple[int, int], Stored]] = {}


def _up_to_date(
    data: Path,
    progress: bool,
    spread: Spread,
    names: tuple[str, ...] = (RAW, REFERENCE),
    tidy: Path | None = None,
) -> Stored:
    """The tables of the folders ``names`` of ``data`` as their runs are now, kept in ``tidy`` (default: that
    of ``data``). As long as no run comes or goes it is the same object, which keeps what was read last: a
    notebook asks a dozen times."""
    tidy = data / "tidy" if tidy is None else tidy
    rebuild([data / name for name in names], tidy, progress, spread)
    stamp = state(tidy)
    if tidy not in _opened or _opened[tidy][0] != stamp:
        _opened[tidy] = stamp, Stored(tidy)
    return _opened[tidy][1]


def state(tidy_root: Path) -> tuple[int, int]:
    """Another value whenever the tables were made anew."""
    index = (tidy_root / INDEX).stat()
    return index.st_ino, index.st_mtime_ns


def _places(folder: Path, smoke: bool, raw: Path, reference: Path) -> set[str]:
    """Where a run stands: raw (or smoke, of that preset), reference, or, published from here, both."""
    if not folder.is_relative_to(raw):
        return {REFERENCE}
    return {SMOKE if smoke else RAW} | (
        {REFERENCE} if (reference / folder.parent.name / folder.name).is_dir() else set()
    )


def _source(taken: dict[str, frozenset[str]]) -> str:
    """ "data/raw", "data/reference", or both with the experiments of the first."""
    own = [name for name, place in taken.items() if REFERENCE not in place]
    if len(own) in (0, len(taken)):
        return f"data/{'raw' if own else 'reference'}"
    return f"data/raw ({', '.join(own)}) and data/reference"


def source_of(found: Tables) -> str:
    """``found.source``; of runs selected from several places, that of these alone."""
    return where_of(found) if found.source.endswith(f" and data/{REFERENCE}") else found.source


def where_of(found: Tables) -> str:
    """Where these runs lie, of all that the study has."""
    own = set(found.runs.loc[found.runs["run_id"].isin(found.own), "experiment"])
    if own and own != set(found.runs["experiment"]):
        return f"data/raw ({', '.join(sorted(own))}) and data/reference"
    return "data/raw" if own else "data/reference"


def _loaded(stored: Stored) -> Tables:
    return Tables(
        **_frames(stored, schema.TABLES, "runs"), source=str(stored.tidy_root), folders=stored.folders
    )


def _frames(stored: Stored, tables: Iterable[str], first: str) -> dict[str, pd.DataFrame | StoredRows]:
    """``first``, by which runs are selected, read; the others not yet."""
    return {name: stored.frame(name) if name == first else StoredRows(stored, name) for name in tables}


def _only(held: pd.DataFrame | Unread, wanted: frozenset[str]) -> Unread:
    if isinstance(held, StoredRows):
        return StoredRows(held.stored, held.table, wanted if held.run_ids is None else wanted & held.run_ids)
    return ChosenRows(held, wanted)


def is_several(value: object) -> bool:
    """Whether a keyword's value is several values: whatever can be gone through but a text."""
    return isinstance(value, Iterable) and not isinstance(value, str)


def _both(one: pd.DataFrame | Unread, other: pd.DataFrame | Unread) -> pd.DataFrame | StoredRows:
    if isinstance(one, StoredRows) and isinstance(other, StoredRows) and one.stored is other.stored:
        both = None if None in (one.run_ids, other.run_ids) else one.run_ids | other.run_ids
        return StoredRows(one.stored, one.table, both)
    frames = [held.frame() if isinstance(held, Unread) else held for held in (one, other)]
    return pd.concat(frames, ignore_index=True)
