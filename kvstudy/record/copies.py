"""The copy of one sealed run for data/reference, which every clone carries: what no table, page or check
reads is left out of it and of its seal.

    copy(run, target)       writes the copy, sealed
    size_bytes(run)         how large it is

Left out: the recording of a profile (``profile.jfr``), whose stacks, pages and events are there; the log of
the collector, whose pauses are among the events; the generator's text where its JSON is; the single answers
of profiled runs, which no latency is read off, and of closed loops, in which nobody waits for the service but
who has been answered. Single answers and samples by time are copied of the experiment alone that pages 05 and
07 show by the moment; of the others the latency log is added up to seconds. Of the generator's JSON: the
sampled requests, which were read back when the run was measured (``data_check`` of run.json), and of a duet
what is told of each server as a whole, and the service times of its slices. All else is byte for byte as it
was sealed.
"""

import gzip
import hashlib
import json
import re
import shutil
from pathlib import Path

from kvstudy.errors import KvstudyError
from kvstudy.record import interval_log
from kvstudy.record.run_folder import DUET, PACKED_SUFFIX, SEAL, SealedRun

BY_THE_MOMENT = "reproduce"  # the experiment of pages 05 and 07, where the reader names no other
_REPEATED_OF_DUETS = re.compile(r"(profile-[ab]\.jfr|gc-[ab]\.log|generator-.*\.txt)(\.gz)?")
_GENERATOR_JSON = re.compile(r"generator(-.*)?\.json\.gz")


def copy(run: SealedRun, target: Path) -> None:
    """``target`` must not exist."""
    left_out, lines = _left_out(run), []
    target.mkdir(parents=True)
    for line in (run.path / SEAL).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        if name in left_out:
            continue
        trimmed = _trimmed(run, run.path / name)
        if trimmed is None:
            shutil.copyfile(run.path / name, target / name)
        else:
            (target / name).write_bytes(trimmed)
            digest = hashlib.sha256(trimmed).hexdigest()
        (target / name).chmod(0o444)
        lines.append(f"{digest}  {name}\n")
    (target / SEAL).write_text("".join(lines), encoding="utf-8")
    (target / SEAL).chmod(0o444)


def size_bytes(run: SealedRun) -> int:
    """Without the seal's lines of what is left out, and so a little too much."""
    left_out = _left_out(run)
    return sum(
        path.stat().st_size if (trimmed := _trimmed(run, path)) is None else len(trimmed)
        for path in run.path.iterdir()
        if path.name not in left_out
    )


def _left_out(run: SealedRun) -> set[str]:
    """Names of the files, as they are stored, that the copy of a run does without."""
    if run.facts.get("kind") == DUET:
        return {path.name for path in run.path.iterdir() if _REPEATED_OF_DUETS.fullmatch(path.name)}
    is_shown = _is_shown(run)
    has_answers = is_shown and not (run.facts["profile"] or run.facts["closed_loop"])
    names = (
        "profile.jfr",
        "gc.log",
        *(("generator.txt",) if run.has("generator.json") else ()),
        *(() if has_answers else ("slowest.csv",)),
        *(() if is_shown else ("cpu.heatmap.html",)),
    )
    return {stored for name in names for stored in (name, name + PACKED_SUFFIX)}


def _is_shown(run: SealedRun) -> bool:
    return run.path.parent.name == BY_THE_MOMENT


def _trimmed(run: SealedRun, path: Path) -> bytes | None:
    """What of a latency log or a generator's JSON is copied, as it is stored; None for a file that stays as
    it is."""
    if path.name == "latency.hlog.gz" and not _is_shown(run):
        return _in_seconds(path)
    if not _GENERATOR_JSON.fullmatch(path.name):
        return None
    try:
        result = json.loads(gzip.decompress(path.read_bytes()))
    except ValueError:  # whoever reads the run says so
        return None
    alternate = result.get("alternate") or {}
    if "sample" not in result and not alternate:
        return None
    result.pop("sample", None)
    alternate.pop("servers", None)
    for one in alternate.get("slices", ()):
        one.pop("service_time_ns", None)
    return gzip.compress((json.dumps(result, ensure_ascii=False) + "\n").encode(), 9, mtime=0)


def _in_seconds(path: Path) -> bytes | None:
    try:
        log = gzip.decompress(path.read_bytes()).decode()
        in_seconds = interval_log.by_second(log, path.name)
    except (KvstudyError, OSError, ValueError):  # whoever reads the run says so
        return None
    return None if in_seconds == log else gzip.compress(in_seconds.encode(), 9, mtime=0)
