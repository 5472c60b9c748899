"""The run folder: the only place that writes, opens and checks data/raw.

    <raw_root>/<experiment>/<run-id>.partial/   while the run goes on; never read as data
    <raw_root>/<experiment>/<run-id>/           sealed: SHA256SUMS names every other file

Sealing, in this order, so that a crash at any point leaves a folder that does not look whole:
bulky files packed → fsync every file → SHA256SUMS.new written and fsynced → renamed to SHA256SUMS → folder
fsynced → ``.partial`` dropped from the folder's name → parent fsynced.

Invariants:
1. A folder is data only if its name does not end in ``.partial`` and it holds SHA256SUMS.
2. A sealed folder is never written again: its files lose their write permission, and there is no function
   here that opens one
   for writing.
3. Every sealed folder holds a run.json with the keys of REQUIRED_FACTS, or of DUET_FACTS.
4. Files whose name is_packed() are sealed as ``<name>.gz``, the same bytes for the same content. Nobody else
   knows: a reader asks for
   ``latency.hlog`` and gets its text, packed or, as in runs of schema 1, not. A person reads one with
   ``zcat`` or ``zless``.
"""

import errno
import gzip
import hashlib
import json
import os
import re
import shlex
import shutil
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import TracebackType

from kvstudy.errors import NotSealed, RunFolderError, reason, what_to_do
from kvstudy.record.durable import to_disk

# 1: every file as it was written. 2: bulky files packed. 3: launches of duets beside runs (record/duet.py).
# Readers take all, and refuse what is newer than they are.
SCHEMA_VERSION = 3
PACKED_SUFFIX = ".gz"
# What shrinks by half or more. run.json and the short logs that a person opens first stay.
_PACKED_NAMES = frozenset(
    {
        "latency.hlog",
        "slowest.csv",
        "gc.log",
        "events.json",
        "store.csv",
        "process.csv",
        "generator.json",
        "generator.txt",
        "profile.jfr",
        "slices.csv",
    }
)
_PACKED_ENDINGS = (".collapsed", ".flamegraph.html", ".heatmap.html")
# Of a duet: loadgen's result of each part, and of each side what a run has one of. Of a run of several
# generators: each one's.
_PACKED_OF_DUETS = re.compile(
    r"generator-.*\.(json|txt)|process-\d+\.csv|(gc|events|store|process|profile)-[ab]\.(log|json|csv|jfr)"
)
SEAL = "SHA256SUMS"
RUN_JSON = "run.json"
PARTIAL_SUFFIX = ".partial"
SMOKE = "smoke"  # the preset that proves that everything works, not how fast it is
REQUIRED_FACTS = frozenset(
    {
        "schema_version",
        "run_id",
        "experiment",
        "label",
        "question",
        "workload",
        "workload_args",
        "method",
        "generator",
        "closed_loop",
        "connections",
        "threads",
        "offered_rate_rps",
        "duration_s",
        "warm_up_s",
        "timeout_s",
        "variant",
        "service",
        "jvm",
        "fill",
        "profile",
        "repeat",
        "repeats",
        "plan_index",
        "plan_size",
        "seed",
        "revision",
        "dirty",
        "tool_versions",
        "phases",
        "data_check",
        "outcome",
    }
)
DUET = "duet"  # the kind of a run folder that holds one launch of a duet: record/duet.py
DUET_FACTS = frozenset(
    {
        "schema_version",
        "kind",
        "run_id",
        "experiment",
        "label",
        "question",
        # digest of all that must be equal for two launches to be pooled: both sides' configurations and
        # programs, parts, machine
        "comparison",
        "launch",  # 1 … of this comparison, in the order in which they were begun, failed ones included
        "sides",  # {"a": {"name": "main", …configuration}, "b": {…}}
        # [{"workload": "put", "method": "PUT", "loop": "rate", "offered_rate_rps": 20000 | null,
        # "connections": 4, "threads": 1}, …]
        "parts",
        "primary",  # {"workload": "put", "loop": "rate", "measure": "p50"}: named before the first launch
        "same_within_percent",
        "first_started",  # "a" | "b": drawn from the seed
        # {"a": {"died": false, "fault": "", "log_errors": …, "rss_max_bytes": …, "store_bytes_before": …,
        # "store_bytes_after": …, "data_check": …}, "b": {…}}
        "ends",
        "profile",
        "seed",
        "revision",
        "dirty",
        "tool_versions",
        "phases",
        "outcome",
    }
)
# Those of them that launches of every age have, and that its row tells.
FACTS_OF_LAUNCH = frozenset(
    {
        "experiment",
        "label",
        "comparison",
        "launch",
        "sides",
        "parts",
        "primary",
        "same_within_percent",
        "profile",
        "seed",
        "revision",
        "dirty",
        "outcome",
    }
)


class SealedRun:
    """A sealed run folder, read only. Opening does not recompute checksums: that is
    kvstudy.record.verification."""

    def __init__(self, path: Path):
        self.path = path

    @property
    def run_id(self) -> str:
        return self.path.name

    @cached_property
    def facts(self) -> dict:
        """run.json. RunFolderError when it is of a schema that this code does not know."""
        facts = self._json(RUN_JSON)
        version = facts.get("schema_version")
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise RunFolderError(
                f"run is of a newer kvstudy: run={self.path} schema_version={version} known={SCHEMA_VERSION}",
                "read it with the revision that run.json names, or a newer one",
            )
        return facts

    @property
    def missing_facts(self) -> list[str]:
        """What run.json lacks without which nothing can be told of this run, or launch of a duet."""
        required = FACTS_OF_LAUNCH if self.facts.get("kind") == DUET else REQUIRED_FACTS
        return sorted(required - self.facts.keys())

    @property
    def why_unknown(self) -> str:
        """Why nothing can be told of this run; empty when it says what it is of."""
        try:
            seal_digest(self.path)
            missing = self.missing_facts
        except OSError as error:
            return f"{self.path / SEAL}: cannot be read: {reason(error)}"
        except RunFolderError as error:
            return error.message
        return f"{self.path / RUN_JSON} lacks {', '.join(missing[:3])}" if missing else ""

    @property
    def is_smoke(self) -> bool:
        """Whether it was asked for by the preset ``smoke`` of its experiment; ``profile_name`` says
        it in older ones."""
        return SMOKE in (self.facts.get("preset"), self.facts.get("profile_name"))

    @cached_property
    def machine(self) -> dict:
        """machine.json; empty when a run failed before the machine was looked at, and when it is damaged,
        which kvstudy.record.verification says."""
        try:
            return self._json("machine.json") if self.has("machine.json") else {}
        except RunFolderError:
            return {}

    def has(self, name: str) -> bool:
        """Whether the run holds file ``name``, packed or not."""
        return self._stored(name) is not None

    def text(self, name: str) -> str:
        """The content of a file, unpacked; RunFolderError when it is not there, cannot be read or its packing
        is damaged."""
        return self.content(name).decode("utf-8", errors="replace")

    def content(self, name: str) -> bytes:
        """``text`` for files that are none."""
        path = self._stored(name)
        if path is None:
            raise RunFolderError(f"run has no such file: run={self.path} file={name}", self._verify())
        try:
            return gzip.decompress(path.read_bytes()) if path.name != name else path.read_bytes()
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise RunFolderError(f"{path}: not gzip, or cut: {error}", self._verify()) from error
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be read: {reason(error)}", self._verify()) from error

    def _verify(self) -> str:
        return f"kvstudy verify {shlex.quote(str(self.path))}"

    def _stored(self, name: str) -> Path | None:
        return next(
            (path for path in (self.path / name, self.path / (name + PACKED_SUFFIX)) if path.is_file()), None
        )

    def _json(self, name: str) -> dict:
        try:
            found = json.loads(self.text(name))
        except json.JSONDecodeError as error:
            raise RunFolderError(
                f"{self.path / name}:{error.lineno}: not JSON: {error.msg}", self._verify()
            ) from error
        except (ValueError, RecursionError) as error:  # a number of too many digits; too deep
            raise RunFolderError(f"{self.path / name}: not JSON: {error}", self._verify()) from error
        if not isinstance(found, dict):
            raise RunFolderError(f"{self.path / name}: no JSON object", self._verify())
        return found

    def __repr__(self) -> str:
        return f"SealedRun({str(self.path)!r})"


class RunWriter:
    """A run folder while its run goes on. Leaving the ``with`` block unsealed leaves ``.partial`` behind,
    which nobody reads."""

    def __init__(self, partial: Path, run_id: str):
        self._partial = partial
        self._sealed = False
        self.run_id = run_id

    @classmethod
    def create(cls, raw_root: Path, experiment: str, run_id: str) -> "RunWriter":
        """Makes the ``.partial`` folder; RunFolderError when a run of this id exists, sealed or not."""
        partial = Path(raw_root) / experiment / (run_id + PARTIAL_SUFFIX)
        if sealed_path(partial).exists():
            raise RunFolderError(f"run exists already: {sealed_path(partial)}")
        try:
            partial.mkdir(parents=True)
        except FileExistsError:
            raise RunFolderError(f"run exists already: {partial}") from None
        except OSError as error:
            raise _explained(error, partial, "create the run folder") from error
        return cls(partial, run_id)

    def path(self, name: str) -> Path:
        """Where to write file ``name`` (flat names only); valid until sealed."""
        assert not self._sealed, "a sealed run is never written"
        assert Path(name).name == name, f"a run folder is flat: {name}"
        return self._partial / name

    def write_text(self, name: str, text: str) -> None:
        try:
            # A path with bytes that are no text, in an outcome or a label, shall not cost the run.
            self.path(name).write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise _explained(error, self._partial / name, "write") from error

    def write_json(self, name: str, value: object) -> None:
        """Keys in the order given, so that two files can be compared; NaN is refused: it is not JSON."""
        self.write_text(name, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    def remove(self, name: str) -> None:
        """Drops an intermediate file that shall not be sealed; absent is fine."""
        self.path(name).unlink(missing_ok=True)

    def seal(self) -> SealedRun:
        """Makes the folder data. RunFolderError when run.json is not whole or the disk is full; then it stays
        ``.partial``."""
        assert not self._sealed, "sealed twice"
        self._check_facts()
        try:
            sealed = self._seal()
        except OSError as error:
            for unfinished in (SEAL, SEAL + ".new"):
                (self._partial / unfinished).unlink(missing_ok=True)
            raise _explained(error, self._partial, "seal the run") from error
        self._sealed = True
        return SealedRun(sealed)

    def _seal(self) -> Path:
        for path in files_of(self._partial):
            if is_packed(path.name):
                _pack(path)
        lines = []
        for path in files_of(self._partial):
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                os.fsync(file.fileno())
            path.chmod(0o444)
            lines.append(f"{digest}  {path.name}\n")
        new = self._partial / (SEAL + ".new")
        with new.open("w", encoding="utf-8") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        new.chmod(0o444)
        new.rename(self._partial / SEAL)
        to_disk(self._partial)
        sealed = sealed_path(self._partial)
        self._partial.rename(sealed)
        to_disk(sealed.parent)
        return sealed

    def _check_facts(self) -> None:
        path = self._partial / RUN_JSON
        if not path.is_file():
            raise RunFolderError(f"cannot seal a run without its run.json: {self._partial}")
        facts = json.loads(path.read_text(encoding="utf-8"))
        missing = sorted((DUET_FACTS if facts.get("kind") == DUET else REQUIRED_FACTS) - facts.keys())
        if missing:
            raise RunFolderError(f"run.json lacks facts: run={self.run_id} missing={','.join(missing)}")
        if facts["run_id"] != self.run_id:
            raise RunFolderError(f"run.json is of another run: folder={self.run_id} run_id={facts['run_id']}")

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def is_packed(name: str) -> bool:
    """Whether a file of this name is sealed as ``<name>.gz``."""
    return (
        name in _PACKED_NAMES
        or name.endswith(_PACKED_ENDINGS)
        or _PACKED_OF_DUETS.fullmatch(name) is not None
    )


def open_run(path: Path) -> SealedRun:
    """A sealed run; NotSealed when the folder carries no seal. Checksums are not recomputed."""
    path = _named(Path(path))
    if path.name.endswith(PARTIAL_SUFFIX) or not (path / SEAL).is_file():
        raise NotSealed(
            f"not a sealed run: {path}",
            f"a run folder holds {SEAL}; an interrupted run stays {PARTIAL_SUFFIX}",
        )
    return SealedRun(path)


def seal_digest(run: Path) -> str:
    """Of the checksums of all its files: two runs with the same are the same run. OSError where there is no
    seal."""
    return hashlib.sha256((run / SEAL).read_bytes()).hexdigest()


def sealed_runs(*roots: Path) -> list[SealedRun]:
    """Every sealed run under the roots (a root may be a run itself), sorted by run id; ``.partial`` folders
    are not looked into."""
    return run_folders(*roots)[0]


def known_runs(*roots: Path) -> Iterator[SealedRun]:
    """``sealed_runs`` without those of which nothing can be told: who makes the tables says why."""
    return (run for run in sealed_runs(*roots) if not run.why_unknown)


def unsealed_runs(*roots: Path) -> list[Path]:
    """Folders that look like sealed runs (run.json, a final name) and carry no seal: it was taken away, or
    never copied. They are not data."""
    return run_folders(*roots)[1]


def run_folders(*roots: Path) -> tuple[list[SealedRun], list[Path]]:
    """``sealed_runs`` and ``unsealed_runs`` in one pass over the disk."""
    sealed: dict[Path, SealedRun] = {}
    unsealed = set()
    for root in roots:
        for folder, subfolders, files in _walked(root):
            subfolders[:] = [name for name in subfolders if not name.endswith(PARTIAL_SUFFIX)]
            if folder.endswith(PARTIAL_SUFFIX):
                continue
            if SEAL in files:
                subfolders.clear()
                sealed[Path(folder)] = SealedRun(Path(folder))
            elif RUN_JSON in files:
                unsealed.add(Path(folder))
    return sorted(sealed.values(), key=lambda run: (run.run_id, str(run.path))), sorted(unsealed)


def partial_runs(*roots: Path) -> list[Path]:
    """Folders that were never sealed: of a run that goes on, or of one that was killed. They are not data."""
    return sorted(
        Path(folder) / name
        for root in roots
        for folder, subfolders, _ in _walked(root)
        for name in subfolders
        if name.endswith(PARTIAL_SUFFIX)
    )


def _walked(root: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """As os.walk, then through links too, since an experiment may lie on another disk; each folder once, by
    its own name where that lies under ``root``. RunFolderError for one that cannot be read, and for a link to
    what is not there: it would be left out as if nothing had been there."""
    seen, starts = set(), [str(_named(Path(root)))]
    for start in starts:
        check_link(start)
        for folder, subfolders, files in os.walk(start, onerror=_unreadable):
            if (place := os.path.realpath(folder)) in seen:
                subfolders.clear()
                continue
            seen.add(place)
            yield folder, subfolders, files
            starts += [path for name in subfolders if os.path.islink(path := os.path.join(folder, name))]
            if not {SEAL, RUN_JSON} & set(files):  # those of a run are looked at by who verifies it
                for name in files:
                    check_link(os.path.join(folder, name))


def _named(path: Path) -> Path:
    """``.`` and ``..`` by the name of the folder: it is the run's."""
    return path if path.name not in ("", "..") else path.resolve()


def check_link(path: str | Path) -> None:
    """RunFolderError for a link to what is not there, but for those of editors, as ``.#notes``."""
    if os.path.islink(path) and not os.path.exists(path) and not os.path.basename(path).startswith("."):
        raise RunFolderError(
            f"link to what is not there: {path} -> {os.readlink(path)}",
            "mount or put back what it leads to, or remove the link: no run would be found there",
        )


def _unreadable(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):  # gone meanwhile, or never there
        raise RunFolderError(
            f"folder of runs cannot be read: {error.filename}: {reason(error)}",
            "make it readable, or move it away: what lies in it would be left out",
        ) from error


def sealed_path(partial: Path) -> Path:
    """``…/<run-id>.partial`` → ``…/<run-id>``."""
    return partial.with_name(partial.name.removesuffix(PARTIAL_SUFFIX))


def _pack(path: Path) -> None:
    """``<name>`` → ``<name>.gz``, without a time or a name inside; on an error the file is as it was."""
    packed = path.with_name(path.name + PACKED_SUFFIX)
    try:
        with (
            path.open("rb") as plain,
            packed.open("wb") as out,
            gzip.GzipFile("", "wb", 9, out, mtime=0) as zipped,
        ):
            shutil.copyfileobj(plain, zipped, 1 << 20)
    except OSError:
        packed.unlink(missing_ok=True)
        raise
    path.unlink()


def files_of(folder: Path) -> list[Path]:
    """The files of a run folder, in the order of their names."""
    return sorted(path for path in folder.iterdir() if path.is_file())


def _explained(error: OSError, path: Path, doing: str) -> RunFolderError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunFolderError(
            f"disk full: could not {doing}: {path}",
            "free some space and run the same command with --resume; sealed runs are kept",
        )
    return RunFolderError(f"could not {doing}: {path}: {reason(error)}", what_to_do(error))
