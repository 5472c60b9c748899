"""Sealed runs → data/tidy/*.parquet, and back as frames.

    rebuild([root / "data/raw"], root / "data/tidy")     reads what is new or changed, drops what is gone
    tables = load(root / "data/tidy").select(experiment="report-1")
    tables = study_tables(experiment="report-1")          the reader's own runs, or the committed reference runs

Invariants:
1. The tables are a function of the sealed runs and of this code: rebuilt from nothing or run by run, in any order, they are the same
   byte for byte.
2. A run is read again only if its seal, or the code that reads it, has changed.
3. A table file is replaced whole, by renaming; index.json is written last and lists what the tables hold.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tqdm.auto import tqdm

import kvstudy
from kvstudy import project
from kvstudy.analyse import schema
from kvstudy.analyse.duet_observation import observe_duet
from kvstudy.analyse.observation import observe
from kvstudy.errors import KvstudyError
from kvstudy.record.duet import is_duet
from kvstudy.record.run_folder import SEAL, SMOKE, SealedRun, sealed_runs

RAW, REFERENCE = "raw", "reference"
OWN_THEN_REFERENCE = frozenset({RAW}), frozenset({REFERENCE}), frozenset({SMOKE})
ALL_OWN = frozenset({RAW, SMOKE}), frozenset({REFERENCE})
REFERENCE_ALONE = (frozenset({REFERENCE}),)
INDEX = "index.json"
_ROW_GROUP_ROWS = 100_000
_BATCH_RUNS = 50  # rows of so many runs are turned into Arrow at a time: bounds the Python objects alive
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Tables:
    """The seven tables as kvstudy.analyse.schema has them. ``source``: what they are from, for people; ``folders``: run id → run folder;
    ``smoke_shown``, ``smoke_hidden``: experiments whose only runs are of the profile smoke, and those whose smoke runs gave way to others.

    Nobody changes a table once it is in here.
    """

    runs: pd.DataFrame
    percentiles: pd.DataFrame
    intervals: pd.DataFrame
    slowest: pd.DataFrame
    stacks: pd.DataFrame
    events: pd.DataFrame
    validity: pd.DataFrame
    source: str = ""
    folders: dict[str, Path] = field(default_factory=dict)
    smoke_shown: tuple[str, ...] = ()
    smoke_hidden: tuple[str, ...] = ()
    _found: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, work: Callable[..., _Found], *arguments: object) -> _Found:
        """``work(self, *arguments)``, done once for these tables: the charts of a page ask for the same again and again. Whoever gets it
        leaves it as it is."""
        key = (work, *arguments)
        if key not in self._found:
            self._found[key] = work(self, *arguments)
        return self._found[key]

    def select(self, **columns: object) -> "Tables":
        """Runs whose column equals the value (or is in it, for a list, tuple or set), and their rows in every table:
        ``select(experiment="report-1", label=["before", "after"])``."""
        keep = pd.Series(True, index=self.runs.index)
        for name, wanted in columns.items():
            column = self.runs[name]
            keep &= column.isin(list(wanted)) if isinstance(wanted, (list, tuple, set)) else column == wanted
        return self.only(self.runs.loc[keep, "run_id"])

    def only(self, run_ids: pd.Series | list[str]) -> "Tables":
        """These runs and their rows in every table."""
        wanted = set(run_ids)
        frames = {name: getattr(self, name) for name in schema.TABLES}
        return replace(self, **{name: frame[frame["run_id"].isin(wanted)].reset_index(drop=True) for name, frame in frames.items()})

    def believed(self) -> "Tables":
        """Without the runs that FAILed a check or were profiled: what a claim about latency may rest on."""
        return self.only(self.runs.loc[(self.runs["verdict"] != "FAIL") & ~self.runs["profiled"], "run_id"])


@dataclass(frozen=True)
class Duets:
    """The tables of launches of duets, as kvstudy.analyse.schema has them; ``source`` and ``folders`` as of ``Tables``."""

    duets: pd.DataFrame
    slices: pd.DataFrame
    ratios: pd.DataFrame
    duet_stacks: pd.DataFrame
    duet_validity: pd.DataFrame
    source: str = ""
    folders: dict[str, Path] = field(default_factory=dict)

    def only(self, run_ids: pd.Series | list[str]) -> "Duets":
        """These launches and their rows in every table."""
        wanted = set(run_ids)
        frames = {name: getattr(self, name) for name in schema.DUET_TABLES}
        return replace(self, **{name: frame[frame["run_id"].isin(wanted)].reset_index(drop=True) for name, frame in frames.items()})

    def select(self, **columns: object) -> "Duets":
        """Launches whose column of ``duets`` equals the value."""
        keep = pd.Series(True, index=self.duets.index)
        for name, wanted in columns.items():
            keep &= self.duets[name] == wanted
        return self.only(self.duets.loc[keep, "run_id"])


def rebuild(raw_roots: list[Path], tidy_root: Path, progress: bool = True) -> None:
    """Brings the tables in ``tidy_root`` up to date with the sealed runs under ``raw_roots``; nothing is written when nothing changed.

    A run that stands under two roots is taken from the first one.
    """
    runs = _unique(raw_roots)
    seals = {run.run_id: _seal_digest(run) for run in runs}
    index = {"reader": _reader_digest(), "runs": seals, "folders": {run.run_id: str(run.path.resolve()) for run in runs}}
    old = _read_index(tidy_root)
    if old == index:
        return
    known = old["runs"] if old and old["reader"] == index["reader"] else {}
    kept = {run_id for run_id, seal in seals.items() if known.get(run_id) == seal}
    fresh = [run for run in runs if run.run_id not in kept]
    if fresh or set(known) - kept or not known:
        parts: dict[str, list[pa.Table]] = {name: _kept_rows(tidy_root, name, kept) for name in schema.ALL_TABLES}
        for tables in _observed(fresh, progress):
            for name in schema.ALL_TABLES:
                parts[name].append(tables[name])
        tidy_root.mkdir(parents=True, exist_ok=True)
        for name in schema.ALL_TABLES:
            _write(tidy_root / f"{name}.parquet", _by_run(parts.pop(name)))
    _replace(tidy_root / INDEX, lambda path: path.write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8"))


def load(tidy_root: Path) -> Tables:
    """The tables of ``tidy_root``; KvstudyError when they were never built."""
    index = _read_index(tidy_root)
    if index is None:
        raise KvstudyError(f"no tables here: {tidy_root}", "run: kvstudy tables")
    return Tables(**_frames(tidy_root, schema.TABLES), source=str(tidy_root), folders={run_id: Path(path) for run_id, path in index["folders"].items()})


def study_duets(data_root: Path | None = None, experiment: str | None = None, progress: bool = True) -> Duets:
    """Up-to-date tables of the launches of duets of ``experiment`` (None: of all): one's own, or the committed ones of experiments of which there are no
    own. Those of the profile smoke, which says nothing of speed, are left out. Without any launch the tables are empty."""
    data = (data_root or project.project_root() / "data").resolve()
    rebuild([data / name for name in (RAW, REFERENCE) if (data / name).is_dir()], data / "tidy", progress)
    index = _read_index(data / "tidy") or {"folders": {}}
    folders = {run_id: Path(path) for run_id, path in index["folders"].items()}
    found = Duets(**_frames(data / "tidy", schema.DUET_TABLES), folders=folders)
    found = found if experiment is None else found.select(experiment=experiment)
    raw = (data / RAW).resolve()
    own = {run_id for run_id in found.duets["run_id"] if folders[run_id].is_relative_to(raw)}
    smoke = {run_id for run_id in own if SealedRun(folders[run_id]).is_smoke}
    measured = set(found.duets.loc[found.duets["run_id"].isin(own - smoke), "experiment"])
    chosen = [run_id for run_id, name in zip(found.duets["run_id"], found.duets["experiment"], strict=True)
              if run_id in own - smoke or (run_id not in own and name not in measured)]
    places = {RAW if run_id in own else REFERENCE for run_id in chosen}
    return replace(found.only(chosen), source=" and ".join(f"data/{place}" for place in (RAW, REFERENCE) if place in places))


def study_tables(data_root: Path | None = None, experiment: str | None = None, progress: bool = True,
                 places: tuple[frozenset[str], ...] = OWN_THEN_REFERENCE) -> Tables:
    """Up-to-date tables of ``experiment`` (None: of all): of each experiment the runs of the first of ``places`` that has any. So what somebody
    measured stands in the place of the same question's reference, and only of that; what was measured with the profile smoke, which says
    nothing of speed, stands in nobody's.

    ``data_root``: default the project's data folder. ``source`` says which of the two. KvstudyError when no place has a run.
    """
    data = (data_root or project.project_root() / "data").resolve()
    roots = [data / name for name in (RAW, REFERENCE) if (data / name).is_dir()]
    rebuild(roots, data / "tidy", progress)
    tables = load(data / "tidy")
    tables = tables if experiment is None else tables.select(experiment=experiment)
    resolved = {name: (data / name).resolve() for name in (RAW, REFERENCE)}
    stands = [(run_id, name, _places(tables.folders[run_id], name, **resolved)) for run_id, name in zip(tables.runs["run_id"], tables.runs["experiment"], strict=True)]
    taken: dict[str, frozenset[str]] = {}  # experiment → place
    chosen: list[str] = []
    for place in places:
        for run_id, name, at in stands:
            if place & at and taken.setdefault(name, place) == place:
                chosen.append(run_id)
    if chosen:
        smoke = {name for _, name, at in stands if SMOKE in at and name in taken}
        shown = {name for name in smoke if SMOKE in taken[name]}
        return replace(tables.only(chosen), source=_source(taken), smoke_shown=tuple(sorted(shown)), smoke_hidden=tuple(sorted(smoke - shown)))
    what = "any experiment" if experiment is None else experiment
    raise KvstudyError(f"no sealed run of {what} under {data / 'raw'} or {data / 'reference'}",
                       f"measure it: kvstudy run experiments/{experiment or '…'}.yaml")


def _frames(tidy_root: Path, tables: Iterable[str]) -> dict[str, pd.DataFrame]:
    # In one piece: of a column in many chunks Arrow puts all together whenever some of its rows are taken.
    return {name: schema.conform(name, pq.read_table(tidy_root / f"{name}.parquet").combine_chunks().to_pandas()) for name in tables}


def _places(folder: Path, experiment: str, raw: Path, reference: Path) -> set[str]:
    """Where a run stands: raw (or smoke, of that profile), reference, or, published from here, both."""
    if not folder.is_relative_to(raw):
        return {REFERENCE}
    return {SMOKE if SealedRun(folder).is_smoke else RAW} | ({REFERENCE} if (reference / experiment / folder.name).is_dir() else set())


def _source(taken: dict[str, frozenset[str]]) -> str:
    """ "data/raw", "data/reference", or both with the experiments of the first."""
    own = [name for name, place in taken.items() if REFERENCE not in place]
    if len(own) in (0, len(taken)):
        return f"data/{'raw' if own else 'reference'}"
    return f"data/raw ({', '.join(own)}) and data/reference"


def _unique(roots: list[Path]) -> list[SealedRun]:
    found: dict[str, SealedRun] = {}
    for root in roots:
        for run in sealed_runs(root):
            found.setdefault(run.run_id, run)
    return [found[run_id] for run_id in sorted(found)]


def _observed(runs: list[SealedRun], progress: bool) -> Iterator[dict[str, pa.Table]]:
    """Tables of up to _BATCH_RUNS runs at a time."""
    parts: dict[str, list[list[dict] | dict]] = {name: [] for name in schema.ALL_TABLES}
    for number, run in enumerate(tqdm(runs, "reading runs", unit="run", delay=2, disable=not progress), start=1):
        for name, of_run in (observe_duet(run) if is_duet(run) else observe(run)).items():
            parts[name].append(of_run)
        if number % _BATCH_RUNS == 0 or number == len(runs):
            yield {name: _arrow(parts[name], schema.arrow_schema(name)) for name in schema.ALL_TABLES}
            parts = {name: [] for name in schema.ALL_TABLES}


def _arrow(parts: list[list[dict] | dict], columns: pa.Schema) -> pa.Table:
    """One table of what ``observe`` has of several runs: of each its rows, or its columns."""
    if parts and isinstance(parts[0], dict):
        return pa.concat_tables([pa.Table.from_pydict(of_run, schema=columns) for of_run in parts])
    return pa.Table.from_pylist(list(chain.from_iterable(parts)), schema=columns)


def _kept_rows(tidy_root: Path, name: str, kept: set[str]) -> list[pa.Table]:
    if not kept:
        return [schema.arrow_schema(name).empty_table()]
    table = pq.read_table(tidy_root / f"{name}.parquet", schema=schema.arrow_schema(name))
    return [table.filter(pc.is_in(table["run_id"], pa.array(sorted(kept), pa.large_string())))]


def _by_run(parts: list[pa.Table]) -> pa.Table:
    """Rows ordered by run; the order within a run is that of its reading (Arrow's sort is stable)."""
    table = pa.concat_tables(parts).combine_chunks()
    return table.take(pc.sort_indices(table["run_id"]))


def _write(path: Path, table: pa.Table) -> None:
    # Dictionaries pay for names, not for histograms: each is different.
    names = [name for name in table.column_names if name != "histogram"]
    _replace(path, lambda new: pq.write_table(table.combine_chunks(), new, compression="zstd", row_group_size=_ROW_GROUP_ROWS,
                                              use_dictionary=names))


def _replace(path: Path, write) -> None:
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        write(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _read_index(tidy_root: Path) -> dict | None:
    try:
        return json.loads((tidy_root / INDEX).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def _seal_digest(run: SealedRun) -> str:
    return hashlib.sha256((run.path / SEAL).read_bytes()).hexdigest()


def _reader_digest() -> str:
    """Of the code that turns files into rows: whoever changes a check or a reader gets tables of that code, without a version to raise."""
    package = Path(kvstudy.__file__).parent
    digest = hashlib.sha256()
    for path in sorted([*package.glob("record/*.py"), *package.glob("analyse/*.py"), *package.glob("analyse/comparison/*.py")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
