"""What duets say of nothing, and of changes of known size: real duets of the service beside itself, with an
agent that plants the change.

    python tests/planted/duet_power.py [--changed 5] [--unchanged 10] [--within 10m] [--only KIND] [--busy]
                                       [--cores shared] [--write FILE]        (make duet-power)

    nothing     the same on both sides: is a word said that is false, and how often "the same"?
    cpu-5       every request burns 5 % of its CPU: dearer?
    p50-5 -3    every request takes 5 %, 3 % of the median longer: slower?
    wait        every 50th request waits for 1 ms: is p99 slower, read off all slices of a launch at once?
    wait-slice  the same: is the p99 of a slice slower, of which a launch has the median?

Each duet is begun anew, sealed under data/raw/duet-power, and may last as long as --within says. One with a
change is over as soon as the measure that was changed is decided: it is the primary one. One without a change
is over when CPU per request and p50 are; with --busy after LAUNCHES_WHEN_BUSY launches. What a finished duet
said is a line of --outcomes, which is committed, so the script may be interrupted and go on another day and
on another machine of the kind; an interrupted duet goes on only where its launches lie. How much 5 % is, the
newest duet without a change says; the table has how much it was of side a in the duet itself. On a machine
that is not quiet launches do not count, and the table says how many did. With --busy other work goes on here
meanwhile: then only duets without a change are measured, and noted as such, since no false word may be said
there either. With --cores shared the services and the generator are not kept apart, as duets were before:
these have outcomes and a table of their own."""

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import textwrap
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from kvstudy.analyse.comparison import launches
from kvstudy.analyse.comparison.looks import FIRST_LOOK
from kvstudy.analyse.comparison.words import CANNOT_TELL
from kvstudy.analyse.duets import Duet
from kvstudy.errors import KvstudyError
from kvstudy.measure import machine
from kvstudy.measure.compare import compare
from kvstudy.measure.duet_table import MEASURE_NAMES
from kvstudy.plan.comparison import Comparison, comparisons
from kvstudy.plan.experiment import APART, SHARED, Experiment
from kvstudy.project import project_root, work_root
from kvstudy.subject.jdk import find_jdk

NAME = "duet-power"
WORKLOADS = ("get", "put")
SAME_PERCENT = 5.0
TINY_USUAL_NS, TINY_PAIRS = 20_000, 5
LAUNCHES_WHEN_BUSY = 8  # by then a third of the error is spent that a duet has in all (looks.py)
# Slices of 0.3 s and a short warm-up make a launch 20 s long. That is enough of p50; p99 is a millisecond and
# more as long as both JVMs compile, and after 15 s they still do.
SHORT = {
    "warm_up": "5s",
    "pairs": 10,
    "not_counted": "100ms",
    "counted": "300ms",
    "profile": [],
}
LOAD = {"service": {"memtable_bytes": "4m", "handler": "selector"}, "connections": 4, "threads": 1}
# Launches differ little in CPU (0.6 %), pairs of slices of a launch much (8 to 10 %, more with flushes): a
# longer launch tells more for its time than two short ones, whose start and warm-up are paid twice. So does
# p99: one pause of 3 ms is 60 requests, as many as a slice may have beyond it.
MANY_PAIRS = 30
EVERY, WAIT_NS = 50, 1_000_000
AGENT = Path(__file__).with_name("agent") / "PlantedAgent.java"
OUTCOMES = {
    APART: Path(__file__).with_name("duet-power.jsonl"),
    SHARED: Path(__file__).with_name("duet-power-shared.jsonl"),
}
PLACEMENTS = {
    APART: "the services on cores of their own, the generator on others",
    SHARED: "the services and the generator on the same cores",
}
TITLE = "# What duets say of planted changes"
Key = tuple[str, str, int, bool, int]  # kind, workload, number, whether the machine was quiet, pairs a launch


@dataclass(frozen=True)
class Kind:
    """``share``: of what ``of`` (a measure) is without a change, burned by every request of side b.
    ``primary``: the measure that is asked about, as an experiment names it; ``also``: one that it goes on for
    as long as there is time, when the primary one is decided; ``right``: the right words; ``warm_up`` and
    ``pairs`` of slices: of each launch."""

    name: str
    told: str
    primary: str
    right: tuple[str, ...]
    also: str | None = None
    share: float = 0.0
    of: str = launches.CPU
    waits: bool = False
    warm_up: str = SHORT["warm_up"]
    pairs: int = SHORT["pairs"]

    @property
    def measure(self) -> str:
        return MEASURE_NAMES[self.primary]

    @property
    def is_changed(self) -> bool:
        return bool(self.share) or self.waits


@dataclass(frozen=True)
class Result:
    """What a duet says of one measure; ``a``: what it is without a change, in the measure's unit."""

    loop: str
    measure: str
    word: str
    ratio: float
    low: float
    high: float
    launches: int
    a: float


@dataclass(frozen=True)
class Outcome:
    """What one finished duet said: a line of the file of outcomes. ``launches``: all that were begun;
    ``at_most``: how many it might have had, None where only the time ended it; ``pairs``: of slices of each;
    ``widths``: by measure, see ``widths_of``; ``is_quiet``: nobody worked on the machine meanwhile."""

    kind: str
    workload: str
    number: int
    planted: str
    date: str
    revision: str
    machine: str
    within: str
    counted: int
    launches: int
    results: tuple[Result, ...]
    widths: dict[str, tuple[float, float]]
    is_quiet: bool = True
    at_most: int | None = None
    pairs: int = SHORT["pairs"]

    @property
    def key(self) -> Key:
        return self.kind, self.workload, self.number, self.is_quiet, self.pairs

    @classmethod
    def from_line(cls, line: str) -> "Outcome":
        found = json.loads(line)
        return cls(**found | {"results": tuple(Result(**one) for one in found["results"])})

    def of(self, measure: str, loop: str = "rate") -> Result | None:
        return next((one for one in self.results if one.measure == measure and one.loop == loop), None)


KINDS = (
    Kind("nothing", "nothing", "cpu", ("the same",), also="p50", pairs=MANY_PAIRS),
    Kind(
        name="cpu-5",
        told="5 % of CPU per request",
        primary="cpu",
        right=("dearer",),
        share=0.05,
        pairs=MANY_PAIRS,
    ),
    Kind("p50-5", "5 % of p50", "p50", ("slower",), share=0.05, of=launches.P50),
    Kind("p50-3", "3 % of p50", "p50", ("slower",), share=0.03, of=launches.P50),
    Kind(
        "wait",
        f"every {EVERY}th request waits 1 ms",
        "p99",
        ("slower",),
        waits=True,
        warm_up="40s",
        pairs=MANY_PAIRS,
    ),
    Kind(
        "wait-slice",
        f"every {EVERY}th request waits 1 ms: p99 of a slice",
        "p99-slice",
        ("slower",),
        waits=True,
        warm_up="40s",
        pairs=15,
    ),
)


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--changed", type=int, default=5, help="of each planted change and workload")
    arguments.add_argument("--unchanged", type=int, default=10, help="without a change, of each workload")
    arguments.add_argument("--within", default="10m")
    arguments.add_argument("--launches", type=int, help="of a duet at most: 1 tells how long one takes")
    arguments.add_argument("--rate", type=float, default=20_000.0)
    arguments.add_argument(
        "--only", action="append", choices=[kind.name for kind in KINDS], help="these kinds only"
    )
    arguments.add_argument("--workload", action="append", choices=WORKLOADS)
    arguments.add_argument(
        "--busy", action="store_true", help="other work goes on here: only what is without a change, noted so"
    )
    arguments.add_argument("--cores", choices=sorted(PLACEMENTS), default=APART)
    arguments.add_argument(
        "--tiny",
        action="store_true",
        help="slices and stores so small that they say nothing: tries the script itself",
    )
    arguments.add_argument(
        "--outcomes",
        type=Path,
        help=f"what was found before, and what is found; default {OUTCOMES[APART].name}, with "
        f"--cores shared {OUTCOMES[SHARED].name}, beside this script",
    )
    arguments.add_argument("--write", type=Path, help="the table into this file, too")
    given = arguments.parse_args()
    root, kinds, workloads = (
        project_root(),
        [
            kind
            for kind in KINDS
            if (not given.only or kind.name in given.only) and not (given.busy and kind.is_changed)
        ],
        given.workload or WORKLOADS,
    )
    outcomes = given.outcomes or (
        work_root(root) / "planted" / "tiny.jsonl" if given.tiny else OUTCOMES[given.cores]
    )
    agent, known = built_agent(root), recorded(outcomes)
    try:
        for number in range(1, max(given.changed, given.unchanged) + 1):
            for workload in workloads:
                for kind in kinds:
                    wanted = given.changed if kind.is_changed else given.unchanged
                    key = kind.name, workload, number, not given.busy, _pairs(kind, given)
                    if number <= wanted and key not in known:
                        found = measure(root, agent, kind, workload, number, known, given)
                        if found:
                            known[found.key] = found
                            record(outcomes, found)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
    lines = table(list(known.values()), kinds, workloads, PLACEMENTS[given.cores])
    print("\n".join(lines))
    if given.write:
        text = [TITLE, "", *(one for line in lines for one in wrapped(line))]
        given.write.write_text("\n".join(text) + "\n", encoding="utf-8")


def wrapped(line: str) -> list[str]:
    return [line] if line.startswith("|") else textwrap.wrap(line, 100) or [""]


def recorded(file: Path) -> dict[Key, Outcome]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    found = [Outcome.from_line(line) for line in lines]
    return {one.key: one for one in found}


def record(file: Path, outcome: Outcome) -> None:
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")


def built_agent(root: Path) -> Path:
    """The agent's jar, compiled anew each time: it takes a second. Its name is of its source, so that it is
    part of what was asked: a duet is not resumed with another agent."""
    jar = f"planted-{hashlib.sha256(AGENT.read_bytes()).hexdigest()[:12]}.jar"
    folder, jdk = work_root(root) / "planted", find_jdk()
    classes = folder / "classes"
    classes.mkdir(parents=True, exist_ok=True)
    (folder / "manifest").write_text("Premain-Class: PlantedAgent\n", encoding="utf-8")
    for command in (
        [jdk.tool("javac"), "-d", str(classes), str(AGENT)],
        [
            jdk.tool("jar"),
            "cfm",
            str(folder / jar),
            str(folder / "manifest"),
            "-C",
            str(classes),
            ".",
        ],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"agent cannot be built: {done.stderr.strip()}")
    return folder / jar


def measure(
    root: Path,
    agent: Path,
    kind: Kind,
    workload: str,
    number: int,
    known: dict[Key, Outcome],
    given: argparse.Namespace,
) -> Outcome | None:
    """None where nothing was found: then the duet was not asked, and is the next time. One of which too few
    launches counted for a word was not either."""
    usual_ns = TINY_USUAL_NS if given.tiny else unchanged(known, workload, kind.of, _pairs(kind, given))
    if kind.share and usual_ns is None:
        print(
            f"{workload} {kind.name} {number}: left out, since no duet without a change counts here yet: "
            "--only nothing first",
            file=sys.stderr,
        )
        return None
    burn_ns = round(kind.share * (usual_ns or 0))
    change = f"burn={burn_ns},every={EVERY if kind.waits else 0},wait={WAIT_NS}"
    seed = 1000 * number + KINDS.index(kind) + (500 if given.busy else 0)
    one = planned(agent, kind, workload, change, seed, given)
    print(f"{workload} {kind.name} {number}: {change}", file=sys.stderr, flush=True)
    try:
        # One that was interrupted goes on: its number is in its seed, so it is no other.
        found = compare(one, root, label=f"{kind.name} {workload}", resume=True).found
        while kind.also and not _at_most(kind, given) and _goes_on(found, kind):
            one = one_more(one, found)
            before, found = found, compare(one, root, label=f"{kind.name} {workload}", resume=True).found
            if found.counted == before.counted:
                break  # the time is over
    except KvstudyError as error:
        print(f"{workload} {kind.name} {number}: {error}", file=sys.stderr)
        return None
    if found is None or found.counted < (1 if given.tiny else FIRST_LOOK):
        return None
    return outcome_of(found, kind, workload, number, change, given)


def _goes_on(found: Duet | None, kind: Kind) -> bool:
    return found is not None and any(
        one.loop == "rate"
        and one.measure == MEASURE_NAMES[kind.also]
        and not one.decided
        and not one.held_back
        for one in found.results
    )


def one_more(one: Comparison, found: Duet) -> Comparison:
    """Goes on for one launch, whether the primary measure is decided or not."""
    comparing = one.experiment.comparing.model_copy(update={"until": "all", "launches": found.counted + 1})
    return replace(one, experiment=one.experiment.model_copy(update={"comparing": comparing}))


def outcome_of(
    duet: Duet,
    kind: Kind,
    workload: str,
    number: int,
    change: str,
    given: argparse.Namespace,
) -> Outcome:
    widths = {
        measure: width
        for measure in (launches.P50, launches.CPU)
        if (width := widths_of(duet, measure)) is not None
    }
    return Outcome(
        kind=kind.name,
        workload=workload,
        number=number,
        planted=change,
        date=date.today().isoformat(),
        revision=" and ".join(sorted({one[:8] for one in duet.tables.duets["revision"]})),
        machine=this_machine(),
        within=given.within,
        counted=duet.counted,
        launches=len(duet.tables.duets),
        results=tuple(
            Result(one.loop, one.measure, one.word, one.ratio, one.low, one.high, one.launches, one.a)
            for one in duet.results
        ),
        widths=widths,
        is_quiet=not given.busy,
        at_most=_at_most(kind, given),
        pairs=_pairs(kind, given),
    )


def _at_most(kind: Kind, given: argparse.Namespace) -> int | None:
    return given.launches or (LAUNCHES_WHEN_BUSY if given.busy and not kind.is_changed else None)


def _pairs(kind: Kind, given: argparse.Namespace) -> int:
    """Beside other work the question is a false word, and a short launch asks it as well."""
    if given.tiny:
        return TINY_PAIRS
    return SHORT["pairs"] if given.busy else kind.pairs


def planned(
    agent: Path, kind: Kind, workload: str, planted: str, seed: int, given: argparse.Namespace
) -> Comparison:
    """The service beside itself, both with the agent, that of side b with the change."""
    tiny = {
        "warm_up": "200ms",
        "closed_pairs": 2,
        "not_counted": "20ms",
        "counted": "80ms",
        "gap": "10ms",
        "launches": 1,
    }
    # Beside other work it is asked whether a word about any measure is false; else one at the rate is.
    asked = {"closed_pairs": 6, "until": "all"} if given.busy else {"closed_pairs": 0, "until": "primary"}
    compare_as = {"primary": kind.primary, "within": given.within} | SHORT | asked
    compare_as |= {"warm_up": kind.warm_up, "pairs": _pairs(kind, given)}
    compare_as |= {"launches": most} if (most := _at_most(kind, given)) else {}
    compare_as |= tiny if given.tiny else {}
    experiment = Experiment.from_parameters(
        LOAD
        | {
            "name": NAME,
            "question": "Does a duet see what was planted?",
            "expectation": "In 9 of 10 duets.",
            "jvm": {"heap": "128m", "options": [f"-javaagent:{agent}=burn=0"]},
            "workload": workload,
            "cores": given.cores,
            "rate": 500 if given.tiny else given.rate,
            "fill": {"records": 2_000 if given.tiny else 300_000, "methods": ["GET", "PUT"]},
            "duration": "30s",
            "warm_up": "10s",
            "repeats": 1,
            "same": SAME_PERCENT,
            "seed": seed,
            "compare": compare_as,
        },
        compared=True,
    )
    (one,) = comparisons(experiment, builds=(".", "."))
    loads = tuple(
        replace(load, b=replace(load.b, jvm=[*load.b.jvm[:-1], f"-javaagent:{agent}={planted}"]))
        for load in one.loads
    )
    return replace(one, loads=loads, names=("as it is", "planted"))


def unchanged(known: dict[Key, Outcome], workload: str, measure: str, pairs: int) -> float | None:
    """What the measure was without a change in the newest duet on this machine while it was quiet, with as
    many pairs, in ns: within an hour the machine's host may make requests twice as dear, and p50 falls
    while a launch goes on. None where no duet says it."""
    found = [
        one.a
        for (kind, of, _, is_quiet, of_pairs), outcome in known.items()
        if is_quiet
        and (kind, of, of_pairs) == (KINDS[0].name, workload, pairs)
        and outcome.machine == this_machine()
        and (one := outcome.of(measure))
    ]
    return found[-1] if found else None


def this_machine() -> str:
    facts = machine.fixed_facts()
    return f"{facts['cpu_model']}, {facts['cores']} cores, {facts['system']}, {facts['kernel']}"


def table(known: list[Outcome], kinds: list[Kind], workloads: list[str], placement: str) -> list[str]:
    dates, machines, within = (
        sorted({getattr(one, name) for one in known}) for name in ("date", "machine", "within")
    )
    lines = [
        f"{' and '.join(dict.fromkeys((dates[0], dates[-1])))}, {'; '.join(machines)}; duets of at most "
        f"{' or '.join(within)}; {placement}."
        if known
        else "No duet is finished yet.",
        "",
        (
            "| planted | workload | of side a it was | duets | right word | other words | "
            "launches that counted, of all | median ratio, launches of a duet |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in kinds:
        for workload in workloads:
            for conditions in _all_conditions(known):
                outcomes = [
                    one
                    for one in known
                    if (one.kind, one.workload, _conditions(one)) == (kind.name, workload, conditions)
                ]
                if outcomes:
                    lines.append(_row(kind, f"{workload}, {conditions}", outcomes))
    nothing = [one for one in known if one.kind == KINDS[0].name and one.workload in workloads]
    ways = _all_conditions(nothing)
    lines += [
        "",
        (
            "Without a change, by measure: words asked for and false ones (any but *the same* and *cannot "
            "tell*), and how often *the same*. Duets of few launches or beside other work are over too early "
            "for it."
        ),
        "",
        f"| measure | asked for | false | {' | '.join(f'the same, {one}' for one in ways)} | cannot tell |",
        "|---|---|---|" + "---|" * len(ways) + "---|",
    ]
    for loop, measures in launches.MEASURES.items():
        for measure in measures:
            words = [
                (_conditions(outcome), one.word)
                for outcome in nothing
                if (one := outcome.of(measure, loop)) and one.launches >= FIRST_LOOK
            ]
            if words:
                unknown = sum(word == CANNOT_TELL for _, word in words)
                same = [
                    [word.startswith("the same") for conditions, word in words if conditions == way]
                    for way in ways
                ]
                lines.append(
                    f"| {measure} ({loop}) | {len(words)} | {len(words) - sum(map(sum, same)) - unknown} | "
                    f"{' | '.join(f'{sum(one)} of {len(one)}' for one in same)} | {unknown} |"
                )
    lines += [
        "",
        (
            "Width of the interval (95 %, of a mean over launches) of the same launches, taken as pairs "
            "and as two heaps of launches, without a change on a quiet machine:"
        ),
        "",
        "| measure | pairs of slices a launch | duets | pairs | heaps | heaps / pairs, median (all) |",
        "|---|---|---|---|---|---|",
    ]
    for measure in (launches.P50, launches.CPU):
        for pairs in sorted({one.pairs for one in nothing}):
            widths = [
                one.widths[measure]
                for one in nothing
                if measure in one.widths and one.is_quiet and one.pairs == pairs
            ]
            if widths:
                ratios = [heaps / of_pairs for of_pairs, heaps in widths]
                lines.append(
                    f"| {measure} | {pairs} | {len(widths)} | "
                    f"{statistics.median(of_pairs for of_pairs, _ in widths):.1%} | "
                    f"{statistics.median(heaps for _, heaps in widths):.1%} | "
                    f"{statistics.median(ratios):.1f} ({min(ratios):.1f} – {max(ratios):.1f}) |"
                )
    return lines


def _all_conditions(known: list[Outcome]) -> list[str]:
    return sorted({_conditions(one) for one in known})


def _row(kind: Kind, workload: str, outcomes: list[Outcome]) -> str:
    found = [one for outcome in outcomes if (one := outcome.of(kind.measure))]
    right = sum(one.word.startswith(kind.right) for one in found)
    others: dict[str, int] = {}
    for one in found:
        if not one.word.startswith(kind.right):
            others[one.word] = others.get(one.word, 0) + 1
    counted, of = sum(one.counted for one in outcomes), sum(one.launches for one in outcomes)
    ratio = (
        (
            f"{statistics.median(one.ratio for one in found):.3f}, "
            f"{statistics.median(one.launches for one in found):g}"
        )
        if found
        else ""
    )
    return (
        f"| {kind.told} | {workload} | {_shares(kind, outcomes)} | {len(outcomes)} | {right} | "
        f"{json.dumps(others, ensure_ascii=False)[1:-1].replace(chr(34), '')} | {counted} of {of} | "
        f"{ratio} |"
    )


def _conditions(outcome: Outcome) -> str:
    beside = "" if outcome.is_quiet else ", beside other work"
    few = f", {outcome.at_most} launches at most" if outcome.at_most is not None else ""
    return f"{outcome.pairs} pairs{few}{beside}"


def _shares(kind: Kind, outcomes: list[Outcome]) -> str:
    """Smallest to largest: what was burned, of what side a took in the same duet."""
    shares = [
        _burned_ns(outcome) / one.a for outcome in outcomes if kind.share and (one := outcome.of(kind.of))
    ]
    return f"{min(shares):.1%} – {max(shares):.1%}" if shares else ""


def _burned_ns(outcome: Outcome) -> int:
    return int(outcome.planted.split(",")[0].removeprefix("burn="))


def widths_of(duet: Duet, measure: str) -> tuple[float, float] | None:
    """Half widths of t intervals of the mean log ratio: of launches as pairs, and of the sides' values as
    independent heaps (Welch)."""
    ratios = duet.tables.ratios
    rows: pd.DataFrame = ratios[(ratios["measure"] == measure) & (ratios["loop"] == "rate")]
    count = len(rows)
    if count < 4:
        return None
    a, b = (np.log(rows[side].to_numpy(dtype=float)) for side in ("a", "b"))
    pairs = stats.t.isf(0.025, count - 1) * rows["log_ratio"].std(ddof=1) / count**0.5
    return (float(pairs), width_of_heaps(a, b)) if pairs > 0 else None


def width_of_heaps(a: np.ndarray, b: np.ndarray) -> float:
    """Half the t interval (95 %) of the difference of the means of two equally large heaps (Welch)."""
    count = len(a)
    of_a, of_b = a.var(ddof=1) / count, b.var(ddof=1) / count
    if of_a + of_b == 0:
        return 0.0  # what is resolved in whole microseconds may be the same in all
    freedom = (of_a + of_b) ** 2 / ((of_a**2 + of_b**2) / (count - 1))
    return float(stats.t.isf(0.025, freedom) * (of_a + of_b) ** 0.5)


if __name__ == "__main__":
    main()
