"""From an experiment to duets: two sides, the loads that both get, the slices of a launch, and what the seed
draws for each launch.

    a launch    both sides start; for each load: warm-up, slice pairs at the rate, slice pairs in a closed
    loop
    a slice     |not counted|      counted      |gap|     of one side; a pair has one of each
    a duet      launches of one comparison, until what is asked for is decided or its time is over

Everything here is pure. Which launches count, and when a duet is decided: ``kvstudy/analyse/comparison``.
"""

import hashlib
import itertools
import json
import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

from pydantic import ValidationError

from kvstudy.errors import ExperimentError, meant
from kvstudy.plan.comparing import DEFAULT, IN_A_CLOSED_LOOP, MEASURES, Comparing
from kvstudy.plan.experiment import PORT_MAX, Experiment
from kvstudy.plan.run_plan import (
    FILL_OVERHEAD_S,
    FILL_RATE_RPS,
    Configuration,
    PlannedRun,
    configurations_of,
    fill_identity,
)
from kvstudy.plan.run_plan import Plan as RunPlan
from kvstudy.plan.selection import as_planned, selected
from kvstudy.plan.subject import SubjectSpec
from kvstudy.plan.unique_keys import CLOSED_LOOP_RPS_LEAST, enough_unique_keys, least_unique_keys
from kvstudy.units import format_duration

SIDES = ("a", "b")
# Beyond warm-ups and slices: start of two JVMs, checks, stop, reading of two recordings, seal; of each loop
# of slices, which begins at a time that is set a second before. Measured on 2 cores: 3.7 to 5 s and 1.1 s.
LAUNCH_OVERHEAD_S = 5.0
LEAST_LAUNCHES = 6  # that decide a measure: FIRST_LOOK of analyse/comparison/looks.py
LOOP_OVERHEAD_S = 1.2


@dataclass(frozen=True)
class Slices:
    """Of one loop. Times in seconds, whole milliseconds; ``warm_pairs`` come before the ``pairs`` and are not
    measured. ``gap_s``: the shortest and the longest; loadgen draws each, and they are in sum what as many
    means are."""

    loop: str  # rate, closed or profile
    warm_pairs: int
    pairs: int
    not_counted_s: float
    counted_s: float
    gap_s: tuple[float, float]

    @property
    def slice_s(self) -> float:
        return self.not_counted_s + self.counted_s

    @property
    def pair_s(self) -> float:
        """In the mean."""
        return 2 * self.slice_s + sum(self.gap_s)

    @property
    def warm_up_s(self) -> float:
        """In the mean; loadgen takes so many pairs for it, however long the gaps are that it draws."""
        return self.warm_pairs * self.pair_s

    @property
    def duration_s(self) -> float:
        return (self.warm_pairs + self.pairs) * self.pair_s


@dataclass(frozen=True)
class Load:
    """What both sides get: the same requests of one workload. ``a`` and ``b``: whom they go to."""

    a: Configuration
    b: Configuration
    loops: tuple[Slices, ...]

    @property
    def workload(self) -> str:
        return self.a.workload

    def of(self, side: str) -> Configuration:
        return self.a if side == "a" else self.b

    def rate_rps(self, slices: Slices) -> float | None:
        """In a closed loop: None."""
        return _rate_in(slices, self.a.offered_rate_rps)

    def rates_until(self, slices: Slices) -> list[tuple[float | None, float]]:
        """Rate and seconds of the loops before this one, which may be that of the profile, and its own."""
        before = itertools.takewhile(lambda one: one.loop != slices.loop, self.loops)
        return [(self.rate_rps(one), one.duration_s) for one in (*before, slices)]


@dataclass(frozen=True)
class Launch:
    """``number`` from 1. ``starts``: the sides in the order of their start; ``ports``: in the order of the
    ports they get; ``places``: in the order in which their stores are laid out, filled and waited for."""

    number: int
    seed: int
    starts: tuple[str, str]
    ports: tuple[str, str]
    places: tuple[str, str]


@dataclass(frozen=True)
class Comparison:
    """``names``: of the sides, as people call them."""

    experiment: Experiment
    names: tuple[str, str]
    loads: tuple[Load, ...]

    @property
    def comparing(self) -> Comparing:
        return self.experiment.comparing

    @property
    def fills(self) -> list[dict]:
        """Distinct stores to be filled first; not those that are written in each launch."""
        found = [fill_identity(one) for one in self._filled if one.spec.is_restored]
        return list({json.dumps(one, sort_keys=True): one for one in found}.values())

    @property
    def launch_s(self) -> float:
        loops = [loop for load in self.loads for loop in load.loops]
        written = [max((one.fill["records"] for one in self._written(side)), default=0) for side in SIDES]
        return (
            LAUNCH_OVERHEAD_S
            + sum(written) / FILL_RATE_RPS
            + sum(loop.duration_s + LOOP_OVERHEAD_S for loop in loops)
        )

    @property
    def _filled(self) -> list[Configuration]:
        return [load.of(side) for load in self.loads for side in SIDES if load.of(side).fill]

    def _written(self, side: str) -> list[Configuration]:
        """Whose records this side gets in each launch anew."""
        return [
            load.of(side) for load in self.loads if load.of(side).fill and not load.of(side).spec.is_restored
        ]

    @property
    def estimated_s(self) -> float:
        """Fills, and as many launches as there may be; where the primary measure alone is waited for as few
        as may decide it, which most measures need no more than."""
        comparing = self.comparing
        few = comparing.until == "primary"
        launches = min(comparing.launches or LEAST_LAUNCHES, LEAST_LAUNCHES) if few else comparing.launches
        if launches is None:
            return self.at_most_s
        profiled_s = profile_loop(comparing).duration_s + LOOP_OVERHEAD_S if comparing.profile else 0.0
        return min(self.at_most_s, self.fill_s + launches * self.launch_s + profiled_s)

    @property
    def at_most_s(self) -> float:
        return self.fill_s + self.comparing.within

    @property
    def time_for_words_s(self) -> float:
        """Of the launches alone, whole minutes."""
        return math.ceil(LEAST_LAUNCHES * self.launch_s / 60) * 60

    @property
    def fill_s(self) -> float:
        return sum(fill["records"] / FILL_RATE_RPS + FILL_OVERHEAD_S for fill in self.fills)

    @property
    def stores_bytes(self) -> int:
        """Both sides' own at once."""
        return sum(load.of(side).disk_bytes for load in self.loads for side in SIDES)

    def launch(self, number: int) -> Launch:
        """Drawn from the seed."""
        return Launch(
            number,
            self.experiment.seed + number - 1,
            self._turned("start", number),
            self._turned("port", number),
            self._turned("place", number),
        )

    def first(self, number: int, workload: str, loop: str) -> str:
        """Whose slice is the first of a launch's part."""
        return self._turned(f"slice {workload} {loop}", number)[0]

    def _turned(self, what: str, number: int) -> tuple[str, str]:
        return turned(what, self.experiment.seed, number)

    def asked(self, programs: Mapping[str, str | None]) -> str:
        """A digest of all that was asked for and of the ``programs``: by it --resume finds the launches of
        before."""
        loads = [asdict(load) for load in self.loads]
        for load in loads:
            for side in SIDES:
                load[side] |= {"question": None}
        comparing = self.comparing.model_dump() | {
            "within": None,
            "launches": None,
            "until": None,
            "profile": bool(self.comparing.profile),  # the JVM is started in another way for it
            "profile_pairs": None,
        }
        asked = {
            "loads": loads,
            "comparing": comparing,
            "same": self.experiment.same,
            "seed": self.experiment.seed,
            "names": self.names,
            "programs": programs,
        }
        return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()[:16]


def turned(what: str, seed: int, number: int) -> tuple[str, str]:
    """The sides in an order drawn for ``what`` of a launch. Of launches 1 and 2, 3 and 4, … one is the other
    way round, so that what an order does befalls both sides alike."""
    turn = random.Random(f"{what} {seed} {(number + 1) // 2}").random() < 0.5
    return SIDES if turn == (number % 2 == 1) else SIDES[::-1]


def changed(
    experiment: Experiment,
    *,
    baseline: str | None = None,
    within: float | None = None,
    same: float | None = None,
    primary: str | None = None,
) -> Experiment:
    """With what the command line says in the place of what the file says. Who gives the time is not held to
    the file's number of launches."""
    own: dict = {"within": within, "launches": None} if within is not None else {}
    if primary is not None:
        if primary not in MEASURES:
            hint = meant(primary, MEASURES, f"measures: {', '.join(MEASURES)}")
            raise ExperimentError(f"no such measure: {primary!r}", hint)
        own["primary"] = primary
    if baseline is not None:
        if "=" not in baseline and baseline != DEFAULT:
            raise ExperimentError(
                f"--baseline takes KEY=VALUE: {baseline}",
                f"as --baseline handler=selector; {DEFAULT} is the side of which no option is given",
            )
        own["baseline"] = {} if baseline == DEFAULT else dict([baseline.split("=", 1)])
    return experiment.model_copy(
        update={"comparing": experiment.comparing.model_copy(update=own)}
        | ({"same": same} if same is not None else {})
    )


def comparisons(
    experiment: Experiment, *, builds: tuple[str, str] | None = None, only: Iterable[str] = ()
) -> list[Comparison]:
    """One for each value of the factor beside the baseline; with ``builds`` one. ExperimentError says what is
    missing or too much."""
    if experiment.port == PORT_MAX:
        raise ExperimentError(
            f"two sides need two ports, and there is none above: port={experiment.port}",
            "choose a lower one, or port: 0, which takes free ones",
        )
    if experiment.search:
        raise ExperimentError(
            f"a duet sends at a rate, and {experiment.name} searches for one: "
            f"highest_rate={experiment.search.highest_rate:g}",
            "give one, in the file's compare: {rate: 20000}, or rate: closed",
        )
    configurations = _chosen(experiment, only)
    for configuration in configurations:
        if configuration.generator != "loadgen":
            raise ExperimentError(
                f"two sides in turn need loadgen: generator={configuration.generator}",
                "choose with --only generator=loadgen",
            )
        if configuration.pause or configuration.head_start_bytes:
            raise ExperimentError(
                "a duet has no pause and no head_start: neither side may stand still in the other's slice",
                "leave them out, or measure independent runs: kvstudy run",
            )
        if configuration.spec.url:
            raise ExperimentError(
                "a duet starts both sides anew in each launch, and what runs at an address is not "
                f"ours to start: url={configuration.spec.url}",
                "give its command instead of its url, or measure independent runs: kvstudy run",
            )
        _check_keys(experiment, configuration)
    loads = _by_load(configurations)
    named = {_name(one): one.variant for load in loads for one in load}
    if builds:
        if len(named) > 1:
            raise ExperimentError(
                f"two builds are compared with the same options: the file has {len(named)}: "
                f"{', '.join(named)}",
                f"choose one: --only {_an_option_of(named)}",
            )
        _check_loads(loads)
        names = builds if builds[0] != builds[1] else (builds[0], f"{builds[1]} again")
        sides = [tuple(_built(one[0], build) for build in builds) for one in loads]
        return [_possible(Comparison(experiment, names, tuple(_load(experiment, both) for both in sides)))]
    if len(named) < 2:
        if len({one.workload_args["value_bytes"] for one in configurations}) > 1:
            _check_loads(loads)  # they were meant as sides, and are written
        raise _one_side_only(experiment, configurations[0], next(iter(named)))
    _check_loads(loads)
    baseline = _baseline(experiment, named)
    return [_possible(_of_two(experiment, loads, baseline, other)) for other in named if other != baseline]


def _possible(comparison: Comparison) -> Comparison:
    """ExperimentError when its primary measure is measured in no loop, or not even one launch fits in."""
    primary, within_s = comparison.comparing.primary, comparison.comparing.within
    loops = [loop.loop for loop in comparison.loads[0].loops]
    if not any((primary in IN_A_CLOSED_LOOP) if loop == "closed" else (primary != "rate") for loop in loops):
        raise ExperimentError(
            f"primary measure is not measured: {primary}: slices are {' and '.join(loops)}",
            "latencies need a rate; the rate needs closed_pairs",
        )
    if within_s < comparison.launch_s:
        raise ExperimentError(
            f"--within {format_duration(within_s)} is shorter than one launch of both sides, about "
            f"{format_duration(round(comparison.launch_s))}",
            f"words need {LEAST_LAUNCHES} launches or more: --within "
            f"{format_duration(comparison.time_for_words_s)}, "
            "or fewer and shorter slices: compare: {pairs, closed_pairs, warm_up}",
        )
    return comparison


class OneSideOnly(ExperimentError):
    """Nothing to compare."""


def _one_side_only(experiment: Experiment, one: Configuration, name: str) -> OneSideOnly:
    sides = {_name(other) for other in _chosen(experiment, ())}
    if len(sides) > 1:
        return OneSideOnly(
            f"one side only: --only leaves {name} of {len(sides)} sides",
            "leave --only out, or name two values",
        )
    if not one.spec.has_our_jvm:
        return OneSideOnly(
            f"one side only: {experiment.name} has one subject: {one.spec.label}",
            "give a list of two, each with a name: subject: [{name: before, command: […]}, {name: after, "
            "command: […]}]",
        )
    return OneSideOnly(
        f"one side only: {experiment.name} varies no option of the service or of the JVM, no subject and no "
        "size of the values",
        "give two builds, as --builds main ., or a factor of two values, as service: {handler: [selector, "
        "workers]}",
    )


def _built(configuration: Configuration, build: str) -> Configuration:
    """Of another build of our service; ``.``: of the checkout."""
    if not configuration.spec.is_ours or not configuration.spec.keeps_data:
        raise ExperimentError(
            f"only kv-service is built: subject={configuration.spec.label}",
            "choose with --only subject=kv-service, or give a factor of two subjects",
        )
    try:
        spec = SubjectSpec(build=build)
    except ValidationError:
        raise ExperimentError(
            f"no such revision: {build}",
            "a branch, a tag or a commit that `git log` shows; a jar, without blanks in its path; . is the "
            "checkout as it is",
        ) from None
    return replace(configuration, subject=spec.facts, server=spec.server)


def _chosen(experiment: Experiment, only: Iterable[str]) -> list[Configuration]:
    whole = RunPlan(
        experiment,
        [
            PlannedRun(configuration, 1, 1, experiment.seed)
            for configuration in configurations_of(
                _long_enough(experiment), partial(_unique_keys, experiment.comparing)
            )
        ],
    )
    return [run.configuration for run in selected(whole, only).runs]


def _unique_keys(comparing: Comparing, offered_rate_rps: float | None) -> int:
    """As many as all loops of one load can write."""
    return sum(
        enough_unique_keys(_rate_in(loop, offered_rate_rps), loop.duration_s)
        for loop in _all_loops(comparing, offered_rate_rps is not None)
    )


def _check_keys(experiment: Experiment, one: Configuration) -> None:
    """Of what the file says of a run's keys: a duet writes more of them."""
    if one.workload != "unique_put" or one.script:
        return
    keys, key_bytes = one.workload_args["key_count"], one.workload_args["key_bytes"]
    named = "fill.records" if one.fill else "key_count"
    written = sum(
        least_unique_keys(_rate_in(loop, one.offered_rate_rps), loop.duration_s)
        for loop in _all_loops(experiment.comparing, not one.closed_loop)
    )
    if keys < written:
        raise ExperimentError(
            f"unique_put would write keys twice in a duet: {named}={keys} rate × duration of its slices="
            f"{written:.0f}, a closed loop taken for {CLOSED_LOOP_RPS_LEAST}/s",
            "leave PUT out of fill.methods"
            if one.fill
            else "leave key_count out: it is then chosen to suffice",
        )
    if key_bytes <= len(str(keys - 1)):
        raise ExperimentError(
            f"a key is a letter and its number, so key_bytes must exceed the digits: workload={one.workload} "
            f"key_bytes={key_bytes} keys of a duet={keys}",
            "write key_bytes: 16, in the file's compare: {workload: …}",
        )


def _long_enough(experiment: Experiment) -> Experiment:
    """Its duration is that of all slices: the disk that is needed follows from it."""
    loops = _loops(experiment.comparing, experiment.rate != ["closed"])
    return experiment.model_copy(
        update={
            "duration": math.ceil(sum(loop.duration_s for loop in loops)),
            "warm_up": experiment.comparing.warm_up,
        }
    )


def _loops(comparing: Comparing, at_rate: bool) -> tuple[Slices, ...]:
    def loop(name: str, warm_up_s: float, pairs: int) -> Slices:
        one = Slices(name, 0, pairs, comparing.not_counted, comparing.counted, comparing.gap)
        return replace(one, warm_pairs=math.ceil(round(warm_up_s / one.pair_s, 6)))

    if not at_rate:
        return (loop("closed", comparing.warm_up, comparing.pairs),)
    closed = (loop("closed", 0, comparing.closed_pairs),) if comparing.closed_pairs else ()
    return (loop("rate", comparing.warm_up, comparing.pairs), *closed)


def _all_loops(comparing: Comparing, at_rate: bool) -> tuple[Slices, ...]:
    """That of the profile too."""
    return (*_loops(comparing, at_rate), *((profile_loop(comparing),) if comparing.profile else ()))


def _rate_in(slices: Slices, offered_rate_rps: float | None) -> float | None:
    """Of a load of this rate."""
    return None if slices.loop == "closed" else offered_rate_rps


def profile_loop(comparing: Comparing) -> Slices:
    return Slices(
        "profile", 0, comparing.profile_pairs, comparing.not_counted, comparing.counted, comparing.gap
    )


def _by_load(configurations: list[Configuration]) -> list[list[Configuration]]:
    """The configurations of each load, those that read before those that write, after which two stores are no
    longer the same."""
    found: dict[tuple, list[Configuration]] = {}
    for one in configurations:
        found.setdefault((one.workload, *(repr(value) for value in _load_facts(one).values())), []).append(
            one
        )
    return [_with_sizes(load) for load in sorted(found.values(), key=lambda load: load[0].method != "GET")]


def _check_loads(loads: list[list[Configuration]]) -> None:
    """ExperimentError where a workload has two of them."""
    for load in loads:
        if len({one.fill["records"] for one in load if one.fill}) > 1:
            raise _two_loads(load[0].workload, ["records"])
    for first in loads:
        for other in loads:
            if first is not other and first[0].workload == other[0].workload:
                differing = [
                    name
                    for name, value in _load_facts(first[0]).items()
                    if _load_facts(other[0])[name] != value
                ]
                raise _two_loads(first[0].workload, differing)


def _two_loads(workload: str, differing: list[str]) -> ExperimentError:
    return ExperimentError(
        f"two loads of one workload cannot be measured in one duet: {workload}: "
        f"they differ in {', '.join(differing)}",
        "choose one with --only KEY=VALUE, or in the file's compare: {…}",
    )


def _with_sizes(load: list[Configuration]) -> list[Configuration]:
    """The size of the values is a factor like any other where it makes the sides."""
    if len({one.workload_args["value_bytes"] for one in load}) == 1:
        return load
    return [
        replace(one, variant=one.variant | {"value_bytes": one.workload_args["value_bytes"]}) for one in load
    ]


def _load_facts(one: Configuration) -> dict:
    """What must be the same of both sides: they get the same requests. The size of values that are only read
    is the store's."""
    arguments = {
        name: value
        for name, value in one.workload_args.items()
        if name != "value_bytes" or one.method != "GET"
    }
    return {
        **arguments,
        "connections": one.connections,
        "threads": one.threads,
        "rate": one.offered_rate_rps,
        "arrivals": one.arrivals,
        "spin": one.spin,
        "statuses": one.statuses,
    }


def _check_contracts(a: Configuration, b: Configuration) -> None:
    """One loadgen sends the same paths to both, and expects the same statuses of both."""
    methods = ("PUT", "GET") if a.method == "MIXED" else (a.method,)
    for what in ("path", "statuses"):
        for method in methods:
            of_a, of_b = (getattr(one.spec, f"{what}_of")(method) for one in (a, b))
            if of_a != of_b and not (what == "statuses" and a.statuses):
                texts = [
                    ", ".join(map(str, found)) if what == "statuses" else found for found in (of_a, of_b)
                ]
                raise ExperimentError(
                    f"both sides of a duet get the same requests, and theirs differ: {method} {what}: "
                    f"{texts[0]}; {texts[1]}",
                    "write the same paths and statuses for both, or measure independent runs: kvstudy run",
                )


def _name(one: Configuration) -> str:
    return " ".join(f"{name}={value}" for name, value in one.variant.items()) or DEFAULT


def _an_option_of(named: Iterable[str]) -> str:
    """By which one side may be chosen."""
    return next(name for name in named if name != DEFAULT).split()[0]


def _baseline(experiment: Experiment, named: dict[str, dict]) -> str:
    asked = experiment.comparing.baseline
    if asked is None:
        if len(named) > 2:
            raise ExperimentError(
                f"two sides are compared, and the file has {len(named)}: {', '.join(named)}",
                "choose two with --only, or say what each is compared with: --baseline "
                f"{_an_option_of(named)}",
            )
        return next(iter(named))
    found = [
        name
        for name, variant in named.items()
        if (
            all(str(variant.get(key)) == as_planned(key, str(value)) for key, value in asked.items())
            if asked
            else not variant
        )
    ]
    if len(found) != 1:
        raise ExperimentError(
            f"baseline is {'no' if not found else 'more than one'} side of the file: "
            f"{' '.join(f'{key}={value}' for key, value in asked.items()) or DEFAULT}",
            f"sides: {', '.join(named)}",
        )
    return found[0]


def _of_two(
    experiment: Experiment, loads: list[list[Configuration]], baseline: str, other: str
) -> Comparison:
    pairs = []
    for load in loads:
        of = {_name(one): one for one in load}
        if baseline not in of or other not in of:
            raise ExperimentError(
                f"workload {load[0].workload} has not both sides: {baseline}, {other}", "choose with --only"
            )
        pairs.append(_load(experiment, (of[baseline], of[other])))
    return Comparison(experiment, (baseline, other), tuple(pairs))


def _load(experiment: Experiment, sides: tuple[Configuration, Configuration]) -> Load:
    _check_contracts(*sides)
    return Load(*sides, _loops(experiment.comparing, not sides[0].closed_loop))
