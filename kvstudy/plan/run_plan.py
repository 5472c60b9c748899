"""From an experiment to the runs that answer it, in the order in which they will be run.

Order: one block per repeat; inside a block every configuration once, shuffled by the experiment's seed. A
slow quarter of an hour of the machine then hits all variants, not one. Profiled runs come last, apart from
the latency runs; where the profiling itself is the question (``profile: {interleave: true}``), they are
shuffled into the blocks.
"""

import hashlib
import itertools
import json
import math
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial

from kvstudy.plan.experiment import Experiment
from kvstudy.plan.factors import (
    DEFAULT_KEY_COUNT,
    MEMORY,
    MEMTABLE_ENTRY_BYTES,
    METHOD_OF_WORKLOAD,
    crossed,
    is_path,
    varied_in,
    workload_name,
)
from kvstudy.plan.search import expected_trials
from kvstudy.plan.subject import SubjectSpec, spec_of
from kvstudy.plan.unique_keys import enough_unique_keys
from kvstudy.units import parse_size_bytes

# What a run costs beyond its duration (launch, restore, check, conversions, seal) and how fast a store is
# filled. Measured on 2 cores of an AMD EPYC guest: 1.6 s a run, 5 s a profiled one, 250 000 records filled in
# 5 s; rounded up.
RUN_OVERHEAD_S = 2.0
PROFILED_RUN_OVERHEAD_S = 6.0
FILL_RATE_RPS = 70_000
FILL_OVERHEAD_S = 3.0
HEAD_START_OVERHEAD_S = 0.3
# A store on disk beside its plain keys and values: WAL and SSTable at the same time, tables being compacted,
# manifest.
DISK_SPACE_FACTOR = 3
LARGE = 1_000_000  # records that a plan names of each run
_LATER = ("head_start_bytes", "subject", "script", "statuses", "read_back", "generators", "cores")


@dataclass(frozen=True)
class Configuration:
    """Everything that determines a run, but for chance: two runs of one configuration are repeats of each
    other.

    ``service`` and ``workload_args`` hold what is passed on; ``variant`` the factors that this experiment
    varies in service and JVM.
    """

    experiment: str
    question: str
    server: str
    service: dict
    jvm: list[str]
    generator: str
    arrivals: str
    spin: str
    timeout_s: float
    workload: str
    workload_args: dict
    method: str
    connections: int
    threads: int
    offered_rate_rps: float | None
    duration_s: float
    warm_up_s: float
    fill: dict | None
    pause: dict | None
    awake: bool | str
    variant: dict
    head_start_bytes: int | None = None
    subject: dict | None = None  # None: the one of this tree that ``server`` names
    script: str | None = None  # a workload's script that is not among the project's, as it was written
    statuses: list[int] | None = None  # a workload's own; None: the subject's
    read_back: int | None = (
        None  # how many of the written keys are asked for after the run; None: as many as ever
    )
    cores: str | None = None  # of service and generator: apart or shared; None: as there are enough
    generators: int | None = None  # hosts that load it together over a network; None: the service's own

    @cached_property
    def spec(self) -> SubjectSpec:
        return spec_of(self.subject, self.server)

    @property
    def closed_loop(self) -> bool:
        return self.offered_rate_rps is None

    @property
    def measured_s(self) -> float:
        return self.duration_s - self.warm_up_s

    @property
    def memory_bytes(self) -> int | None:
        """Of the memory group that the subject runs in; None: it has none."""
        asked = self.service.get(MEMORY)
        return self.spec.memory_bytes if asked is None else parse_size_bytes(asked)

    @property
    def disk_bytes(self) -> int:
        """What the run's data directory may need: its fill, and what the run itself can write."""
        record = self.workload_args["key_bytes"] + self.workload_args["value_bytes"]
        records = self.fill["records"] if self.fill else 0
        if not self.spec.keeps_data or self.spec.url:
            return 0
        if self.method in ("PUT", "MIXED"):
            written = self.duration_s * (self.offered_rate_rps or FILL_RATE_RPS)
            records += (
                min(written, self.workload_args["key_count"]) if self.workload == "repeated_put" else written
            )
            records += (self.head_start_bytes or 0) / record
        return math.ceil(records * record * DISK_SPACE_FACTOR)

    def summary(self) -> str:
        """``unique_put c=4 t=4 8000/s handler=workers``; the generator too where it is another one than
        loadgen, and the records of a large store."""
        rate = "closed" if self.closed_loop else f"{self.offered_rate_rps:g}/s"
        words = [
            self.workload,
            f"c={self.connections}",
            f"t={self.threads}",
            rate,
            *([] if self.generator == "loadgen" else [self.generator]),
            *([f"records={self.fill['records']}"] if self.fill and self.fill["records"] >= LARGE else []),
        ]
        return " ".join(words + [f"{name}={value}" for name, value in self.variant.items()])


@dataclass(frozen=True)
class PlannedRun:
    """One run: a configuration, which repeat of it (from 1), its place in the plan (from 0), and what is
    profiled in it."""

    configuration: Configuration
    repeat: int
    repeats: int
    seed: int
    profile: tuple[str, ...] | None = None
    plan_index: int = 0
    plan_size: int = 0
    purpose: str = "measure"  # or "search" or "sweep": a trial of a search for the stable rate

    @property
    def head_start_writes(self) -> int:
        """How many records are written before the warm-up: a part of the experiment's ``head_start`` that is
        another in every repeat, so that flushes and compactions do not come at the same moment in all of
        them; the same in all variants of one repeat. Drawn, from the seed, so that each of the repeats has a
        stretch of its own of the whole."""
        of_bytes = self.configuration.head_start_bytes
        if of_bytes is None:
            return 0
        record = (
            self.configuration.workload_args["key_bytes"]
            + self.configuration.workload_args["value_bytes"]
            + MEMTABLE_ENTRY_BYTES
        )
        order = random.Random(f"head start {self.seed - self.repeat + 1}").sample(
            range(self.repeats), self.repeats
        )
        part = (
            order[self.repeat - 1] + random.Random(f"head start {self.seed}, repeat").random()
        ) / self.repeats
        return int(part * of_bytes / record)

    @property
    def estimated_s(self) -> float:
        writes = self.head_start_writes
        filled = (
            self.configuration.fill["records"]
            if self.configuration.fill and not self.configuration.spec.is_restored
            else 0
        )
        return (
            self.configuration.duration_s
            + (writes / FILL_RATE_RPS + HEAD_START_OVERHEAD_S if writes else 0.0)
            + filled / FILL_RATE_RPS
            + (PROFILED_RUN_OVERHEAD_S if self.profile else RUN_OVERHEAD_S)
        )

    def name(self, time: str) -> str:
        """The run id: sortable UTC time and a hint for people; the truth is in run.json."""
        configuration = self.configuration
        rate = "closed" if configuration.closed_loop else f"r{round(configuration.offered_rate_rps):05d}"
        words = [
            time,
            configuration.workload.replace("_", "-"),
            f"c{configuration.connections}",
            f"t{configuration.threads}",
            rate,
        ]
        return "-".join([*words, f"rep{self.repeat}"] + (["profiled"] if self.profile else []))

    def identity(self) -> str:
        """A digest of what was asked for, the same for every attempt at this run: by it a sealed run is found
        again."""
        asked = asdict(self.configuration) | {
            "question": None,
            "repeat": self.repeat,
            "seed": self.seed,
            "profile": self.profile,
        }
        for name in _LATER:  # so that runs of before there were such are found again
            if asked[name] is None:
                del asked[name]
        if self.purpose != "measure":
            asked["purpose"] = self.purpose
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Plan:
    """``runs`` in order; ``fills`` the distinct stores to be filled first, each once."""

    experiment: Experiment
    runs: list[PlannedRun]

    @property
    def fills(self) -> list[dict]:
        distinct = {
            json.dumps(fill_identity(run.configuration), sort_keys=True): fill_identity(run.configuration)
            for run in self.runs
            if run.configuration.fill and run.configuration.spec.is_restored
        }
        return list(distinct.values())

    @property
    def estimated_s(self) -> float:
        filling = sum(fill["records"] / FILL_RATE_RPS + FILL_OVERHEAD_S for fill in self.fills)
        search = self.experiment.search
        if search is not None:
            return filling + expected_trials(search) * sum(run.estimated_s for run in self.runs)
        return filling + sum(run.estimated_s for run in self.runs)

    @property
    def disk_bytes(self) -> int:
        """Filled stores are kept side by side."""
        return sum(map(fill_bytes, self.fills)) + self.stores_bytes

    @property
    def stores_bytes(self) -> int:
        """Of the runs' own stores there is one at a time."""
        return max((run.configuration.disk_bytes for run in self.runs), default=0)


# Service options that decide what lies on disk: a store filled under one of them is not restored for another.
ON_DISK_OPTIONS = ("memtable_bytes", "block_bytes", "bloom_bits", "compaction", "compression")


def fill_identity(configuration: Configuration) -> dict:
    """What a filled store depends on: records, sizes, and the options that shape the files."""
    assert configuration.fill is not None
    other = {} if configuration.subject is None else {"subject": configuration.subject}
    return configuration.fill | {name: configuration.service.get(name) for name in ON_DISK_OPTIONS} | other


def fill_bytes(fill: dict) -> int:
    """What a filled store takes on disk, at most."""
    return fill["records"] * (fill["key_bytes"] + fill["value_bytes"]) * 2


def plan(experiment: Experiment) -> Plan:
    """All runs of an experiment with fixed rates, in their order. A search chooses its rates and repeats
    itself (plan/search.py): of it each configuration once."""
    configurations, profile = configurations_of(experiment), experiment.profile
    to_profile = (
        [one for one in configurations_of(experiment.for_profiled_runs()) if _is_profiled(one, experiment)]
        if profile
        else []
    )
    plain = _blocks(experiment, configurations, 1 if experiment.search else experiment.repeats)
    profiled = _blocks(experiment, to_profile, profile.repeats, profile.events) if profile else []
    blocks = plain + profiled
    if profile and profile.interleave:
        blocks = [one + other for one, other in itertools.zip_longest(plain, profiled, fillvalue=[])]
    order = random.Random(experiment.seed)
    runs = [run for block in blocks for run in order.sample(block, len(block))]
    return Plan(
        experiment, [replace(run, plan_index=index, plan_size=len(runs)) for index, run in enumerate(runs)]
    )


def _blocks(
    experiment: Experiment, configurations: list[Configuration], repeats: int, events: list[str] | None = None
) -> list[list[PlannedRun]]:
    """One block per repeat: every configuration once."""
    return [
        [
            PlannedRun(
                configuration,
                repeat,
                repeats,
                experiment.seed + repeat - 1,
                profile=tuple(events) if events else None,
            )
            for configuration in configurations
        ]
        for repeat in range(1, repeats + 1)
    ]


def configurations_of(
    experiment: Experiment, unique_keys: Callable[[float | None], int] | None = None
) -> list[Configuration]:
    """Every combination of the factors, each once. Under ``search`` the rate is the highest one, in place of
    the one to be found. ``unique_keys``: how many keys unique_put gets at a rate; None: those of a run."""
    unique_keys = unique_keys or partial(enough_unique_keys, duration_s=experiment.duration)
    rates = experiment.rate or [experiment.search.highest_rate]
    services = [one for part in experiment.service for one in part.combinations()]
    varied = {*varied_in(services), *experiment.jvm.varied()} | (
        {"subject"} if len(experiment.subject) > 1 else set()
    )
    threads = experiment.threads or [None]
    found = []
    for service in services:
        for jvm in experiment.jvm.combinations():
            for workload in [one for part in experiment.workload for one in part.combinations()]:
                for choice in crossed(
                    {
                        "subject": experiment.subject,
                        "generator": experiment.generator,
                        "arrivals": experiment.arrivals,
                        "spin": experiment.spin,
                        "connections": experiment.connections,
                        "threads": threads,
                        "rate": rates,
                        "records": experiment.fill.records if experiment.fill else [None],
                    }
                ):
                    spec = choice["subject"]
                    named = (
                        (service if spec.is_ours else {})
                        | (jvm if spec.has_our_jvm else {})
                        | {"subject": spec.label}
                    )
                    one = _configuration(
                        experiment,
                        service,
                        experiment.jvm.flags(jvm),
                        workload,
                        choice,
                        {name: value for name, value in named.items() if name in varied},
                        unique_keys,
                    )
                    # Options of the service and its JVM do not vary another subject, records no run that
                    # writes.
                    if one not in found:
                        found.append(one)
    return found


def _configuration(
    experiment: Experiment,
    service: dict,
    jvm: list[str],
    workload: dict,
    choice: dict,
    variant: dict,
    unique_keys: Callable[[float | None], int],
) -> Configuration:
    arguments, spec = dict(workload), choice["subject"]
    script, statuses = arguments.pop("script"), arguments.pop("statuses", None)
    method = experiment.method or METHOD_OF_WORKLOAD[script]
    offered_rate_rps = None if choice["rate"] == "closed" else choice["rate"]
    filled = experiment.fill is not None and method in experiment.fill.methods and spec.can_be_filled
    if "key_count" not in arguments:
        # All filled keys; for unique_put as many as can be written at most, so that each is written once.
        if filled:
            arguments["key_count"] = choice["records"]
        elif script == "unique_put":
            arguments["key_count"] = unique_keys(offered_rate_rps)
        else:
            arguments["key_count"] = DEFAULT_KEY_COUNT
    fill = (
        {
            "records": choice["records"],
            "key_bytes": arguments["key_bytes"],
            "value_bytes": arguments["value_bytes"],
        }
        if filled
        else None
    )
    return Configuration(
        experiment=experiment.name,
        question=experiment.question,
        server=spec.server,
        service=service if spec.is_ours else {},
        jvm=jvm if spec.has_our_jvm else [],
        generator=choice["generator"],
        arrivals=choice["arrivals"],
        spin=choice["spin"],
        timeout_s=experiment.timeout,
        workload=workload_name(script),
        workload_args=arguments,
        method=method,
        connections=choice["connections"],
        threads=choice["threads"] or choice["connections"],
        offered_rate_rps=offered_rate_rps,
        duration_s=experiment.duration,
        warm_up_s=experiment.warm_up,
        fill=fill,
        pause=experiment.pause.model_dump() if experiment.pause else None,
        awake=experiment.awake,
        cores=experiment.cores,
        variant=variant,
        head_start_bytes=experiment.head_start
        if method in ("PUT", "MIXED", "DELETE") and spec.can_be_filled
        else None,
        subject=spec.facts,
        script=script if is_path(script) else None,
        statuses=statuses,
        read_back=None if experiment.verify is None else experiment.verify.sample,
    )


def _is_profiled(configuration: Configuration, experiment: Experiment) -> bool:
    profile = experiment.profile
    assert profile is not None
    if not configuration.spec.can_be_profiled:
        return False
    rate = "closed" if configuration.closed_loop else configuration.offered_rate_rps
    return (
        (profile.workload is None or configuration.workload in map(workload_name, profile.workload))
        and (profile.connections is None or configuration.connections in profile.connections)
        and (profile.rate is None or rate in profile.rate)
    )
