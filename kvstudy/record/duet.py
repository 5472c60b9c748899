"""A launch of a duet as it is sealed: two services side by side, loaded in turn, slice by slice.

    slices = slices_of(run)              one row per slice, columns SLICES
    histograms = slice_histograms(run)   (workload, loop, slice) → response times, in nanoseconds

One run folder is one *launch*: both sides started, warmed up and loaded in turn. All launches with the same
``comparison`` are one duet. run.json says ``"kind": "duet"``, schema_version 3 and DUET_FACTS. Files beside
those of any run:

    slices.csv                            one row per slice, in the order of time
    generator-<workload>-<loop>.json      loadgen's result of one part, with ``alternate`` (generator_file)
    service-a.log  service-b.log  …       the files of one side carry its letter (side_file)
    cpu-a.collapsed  cpu-b.collapsed      profiled launches only: stacks of each side from its own slices

A *part* is one workload in one loop (LOOPS): one loadgen run with ``--alternate``. Which side is loadgen's A,
which goes first, is drawn for each part; slices.csv says whose each slice is. Slices are numbered as there,
within their part. Two neighbouring slices, one of each side, are a *round*, numbered from 1 within the part.
"""

import io
import json
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from kvstudy.errors import FormatError
from kvstudy.record import hdr
from kvstudy.record.run_folder import DUET, SealedRun

if TYPE_CHECKING:  # who asks whether a run is a duet needs no pandas, whose import takes as long as kvstudy's
    import pandas as pd

SIDES = ("a", "b")  # b is the one that is asked about: a ratio is b / a
LOOPS = ("rate", "closed", "profile")  # profile: slices that a profiler samples, read for their stacks alone
SLICES_FILE = "slices.csv"
# name: type; "text", "whole" (never missing) or "real" (an empty cell is NaN: not recorded, or there was no
# answer).
SLICES = {
    "workload": "text",
    "loop": "text",  # one of LOOPS
    "round": "whole",  # 1 … within the part
    "slice": "whole",  # loadgen's number, within the part
    "side": "text",  # whose slice it is
    "begin_utc_ns": "whole",  # of the counted part
    "end_utc_ns": "whole",
    "due": "real",  # requests; in a closed loop as many as were sent
    "answered": "whole",  # of those that were due in the slice, however late the answer
    "errors": "whole",  # requests without an answer, or with a status that was not expected
    "late": "whole",  # of the answers those that came after the slice's end
    "rate_rps": "real",  # answers within the slice / its length
    "mean_ns": "real",  # response time, as p50_ns, p90_ns and p99_ns
    "p50_ns": "real",
    "p90_ns": "real",
    "p99_ns": "real",
    "cpu_ns": "real",  # of this side's process in the counted part, its compilers included
    "idle_cpu_ns": "real",  # of the other side's process in it
    "compiler_ns": "real",  # of this side's JIT compiler threads in it, where they are known
    "written_bytes": "real",  # by this side's process in it
    # What the slices and the gaps between them cost each side, whoever's turn it was: from the end of the
    # slice before (of a part's first: from its own beginning) to the end of this one. Work put off until the
    # other's turn is found here.
    "a_cpu_ns": "real",
    "b_cpu_ns": "real",
    "a_compiler_ns": "real",
    "b_compiler_ns": "real",
    "a_written_bytes": "real",
    "b_written_bytes": "real",
    # Of the machine in the counted part, in core nanoseconds: what its host took, what processes other than
    # sides and generator used.
    "steal_ns": "real",
    "foreign_ns": "real",
    # Answers that came before the counted part, while the slice settled: CPU since the slice before is theirs
    # too. At a rate their number follows from the times, in a closed loop it does not.
    "answered_settling": "real",
    # How much later than planned the counters of both borders had been read, by the clock of who read them.
    "read_late_ns": "real",
}
OPTIONAL = (
    "compiler_ns",
    "written_bytes",
    "a_cpu_ns",
    "b_cpu_ns",
    "a_compiler_ns",
    "b_compiler_ns",
    "a_written_bytes",
    "b_written_bytes",
    "steal_ns",
    "foreign_ns",
    "answered_settling",
    "read_late_ns",
)
# of the counted part: when counters were read later than that, what they say of the slice is not kept
READ_LATE_MAX = 0.02


_DTYPES = {"text": None, "whole": "int64", "real": "float64"}


def is_duet(run: SealedRun) -> bool:
    """Whether the folder holds one launch of a duet; folders of before duets do not say a kind."""
    return run.facts.get("kind") == DUET


def generator_file(workload: str, loop: str) -> str:
    """loadgen's result of one part."""
    return f"generator-{workload}-{loop}.json"


def side_file(name: str, side: str) -> str:
    """``("service.log", "a")`` → ``service-a.log``: a file that each side has."""
    stem, dot, ending = name.partition(".")
    return f"{stem}-{side}{dot}{ending}"


def slices_of(run: SealedRun) -> "pd.DataFrame":
    """One row per slice, with the columns SLICES; no row when the launch failed before its first slice.
    FormatError for a damaged file."""
    return read_slices(run.text(SLICES_FILE), SLICES_FILE) if run.has(SLICES_FILE) else no_slices().copy()


@cache
def no_slices() -> "pd.DataFrame":
    """As ``slices_of``, without a row: nobody changes it."""
    return read_slices(",".join(SLICES), SLICES_FILE)


def read_slices(text: str, file: str) -> "pd.DataFrame":
    """The content of slices.csv; columns of OPTIONAL may be missing, and are NaN then."""
    import pandas as pd

    try:
        frame = pd.read_csv(
            io.StringIO(text),
            dtype={name: str for name, kind in SLICES.items() if kind == "text"},
            keep_default_na=True,
        )
    except (ValueError, pd.errors.ParserError) as reason:
        raise FormatError(file, None, f"not a table: {reason}") from None
    missing = [name for name in SLICES if name not in frame and name not in OPTIONAL]
    if missing:
        raise FormatError(file, 1, f"columns are missing: {', '.join(missing)}")
    frame = frame.reindex(columns=list(SLICES))
    lacking = frame[[name for name, kind in SLICES.items() if kind != "real"]].isna()
    for name in lacking.columns[lacking.any()]:
        raise FormatError(file, int(np.flatnonzero(lacking[name])[0]) + 2, f"{name} is missing")
    for name, kind in SLICES.items():
        wanted = _DTYPES[kind]
        if wanted and frame.dtypes[name] != wanted:
            try:
                frame[name] = frame[name].astype(wanted)
            except (ValueError, TypeError) as reason:
                raise FormatError(file, None, f"{name}: not a number: {reason}") from None
    for name, known in (("side", SIDES), ("loop", LOOPS)):
        if not frame[name].isin(known).all():
            raise FormatError(
                file,
                int(np.flatnonzero(~frame[name].isin(known))[0]) + 2,
                f"{name} must be {' or '.join(known)}",
            )
    return frame


def write_slices(frame: "pd.DataFrame") -> str:
    """The text of slices.csv: what ``read_slices`` reads back."""
    return frame.reindex(columns=list(SLICES)).to_csv(index=False, lineterminator="\n")


def slice_histograms(run: SealedRun) -> dict[tuple[str, str, int], hdr.Histogram]:
    """Response times of every slice, in nanoseconds (``percentile_ns``), by workload, loop and loadgen's
    number of the slice."""
    found = {}
    for part in run.facts["parts"]:
        name = generator_file(part["workload"], part["loop"])
        if not run.has(name):
            continue
        try:
            for one in json.loads(run.text(name))["alternate"]["slices"]:
                found[part["workload"], part["loop"], int(one["slice"])] = hdr.decode(
                    one["response_time_ns"]["histogram_v2_base64"]
                )
        except (KeyError, TypeError, ValueError) as reason:
            raise FormatError(name, None, f"not what loadgen --alternate writes: {reason!r}") from None
    return found


def unexpected_answers(run: SealedRun) -> dict[str, int]:
    """Answers with a status that was not expected, by side; empty where the launch does not say which side is
    loadgen's A (``first_slices``)."""
    firsts, found = run.facts.get("first_slices") or {}, {}
    for part in run.facts["parts"]:
        name, first = (
            generator_file(part["workload"], part["loop"]),
            firsts.get(f"{part['workload']} {part['loop']}"),
        )
        if first not in SIDES or not run.has(name):
            continue
        sides = {"A": first, "B": SIDES[1 - SIDES.index(first)]}
        for one in json.loads(run.text(name)).get("alternate", {}).get("slices", ()):
            found[sides[one["server"]]] = found.get(sides[one["server"]], 0) + int(one.get("unexpected", 0))
    return found


def percentile_ns(histogram: hdr.Histogram, percentile: float) -> float:
    """Of a slice's histogram, or of several merged: it counts nanoseconds, where those of other files count
    microseconds."""
    return histogram.percentile_us(percentile)
