"""An experiment: one question as data. A YAML file that papermill takes with ``-f`` and kvstudy reads as it
is.

``Experiment.load(path, preset)`` and ``Experiment.from_parameters(values, preset)`` either give a
whole, possible experiment or raise ExperimentError with file, line, key and the nearest valid name. Every
preset of a file is checked, not only the one asked for.
"""

import difflib
import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from kvstudy.errors import ExperimentError, KvstudyError, meant
from kvstudy.plan.comparing import COMPARABLE, SMOKE_DUET, Comparing
from kvstudy.plan.factors import (
    DEFAULT_KEY_COUNT,
    DRAWN,
    MAX_VALUE_BYTES,
    MEMTABLE_ENTRY_BYTES,
    METHOD_OF_WORKLOAD,
    DurationS,
    JvmOptions,
    OneOrMore,
    Part,
    Positive,
    RateRps,
    Repeats,
    ServiceOptions,
    SizeBytes,
    TimeLimitS,
    Workload,
    Workloads,
    is_path,
    listed,
    text_of,
    without_repeats,
    workload_name,
)
from kvstudy.plan.objective import Search
from kvstudy.plan.refusal import Impossible, Source, keys_of, read_yaml, refusal, refuse, unknown_key
from kvstudy.plan.subject import OUR_SERVICE, Subjects
from kvstudy.plan.unique_keys import CLOSED_LOOP_RPS_LEAST, enough_unique_keys
from kvstudy.project import project_root, workloads_root
from kvstudy.units import parse_duration_s, write_duration, write_rate

# Presets that every experiment here has; a file may have more, of any name that is not nearly one of these.
PRESETS = ("quick", "full", "smoke", "reference")
NAME, NAME_HINT = r"[a-z0-9][a-z0-9-]*", "small letters, digits and -, as my-service"
_PRESET_NAME = re.compile(r"[a-z][a-z0-9-]*")
HELPER_SCRIPTS = ("fill", "keyspace")  # beside the workloads, and none
CONNECTIONS_MAX, THREADS_MAX = 1_000_000, 1024  # of loadgen
PORT_MAX = 65535
Cores = Literal["apart", "shared"]  # of service and generator
APART, SHARED = get_args(Cores)
RATE_OR_SEARCH = {"rate": "search", "search": "rate"}  # an experiment has one of them
NOT_OVERRIDABLE = frozenset({"name", "question", "expectation", "presets"})
Method = Literal["PUT", "GET", "MIXED", "DELETE"]
ProfilerEvent = Literal["cpu", "alloc", "lock", "wall"]


class Fill(Part):
    """Keys 0 … records-1 are written before a run whose method is in ``methods``; their sizes are the
    workload's. Several numbers of records make a factor."""

    records: Annotated[list[Positive], OneOrMore]
    methods: Annotated[list[Method], OneOrMore] = ["GET", "MIXED", "DELETE"]


class ProfiledRuns(Part):
    """Runs of their own under async-profiler, never used for latency: of which configurations, how often
    each, and how long.

    Without ``duration`` and ``warm_up`` they last as long as the latency runs. A JVM goes on compiling long
    after its latency has settled, and what it compiles is in the profile: so a longer warm-up is worth its
    time here.
    """

    events: Annotated[list[ProfilerEvent], OneOrMore]
    workload: Annotated[list[str], OneOrMore] | None = None
    connections: Annotated[list[Positive], OneOrMore] | None = None
    rate: Annotated[list[RateRps], OneOrMore] | None = None
    repeats: Repeats = 1
    duration: DurationS | None = None
    warm_up: DurationS | None = None
    interleave: bool = False  # among the latency runs, to be compared with them; else after all of them


class Verify(Part):
    """So many of the keys that a run wrote are read back after it; 0: none."""

    sample: Annotated[int, Field(ge=0, le=10_000)]


class Pause(Part):
    """The service is stopped (SIGSTOP) ``at`` into the measured window, for ``length``: a stall of known
    size."""

    at: DurationS
    length: TimeLimitS


def _check_preset_name(name: Any, source: Source) -> None:
    """Any name will do, but for what is a usual name mistyped: nobody would ever ask for it."""
    if not isinstance(name, str) or not _PRESET_NAME.fullmatch(name):
        raise refuse(("presets", name), f"a preset's name is a word in lower case: {name!r}", source)
    if name not in PRESETS and difflib.get_close_matches(name, PRESETS, n=1, cutoff=0.75):
        raise unknown_key(("presets", name), PRESETS, source)


def workload_scripts() -> list[str]:
    """Names of the project's workloads, sorted; none outside a project, where nobody knows."""
    try:
        folder = workloads_root(project_root())
    except KvstudyError:
        return []
    return sorted(path.stem for path in folder.glob("*.lua") if path.stem not in HELPER_SCRIPTS)


def _threads(value: Any) -> Any:
    return None if value == "connections" else listed(value)


def _parts(value: Any) -> Any:
    """One set of options, or several beside each other that are not all crossed."""
    if value == []:
        raise ValueError("an empty list has no runs: give one set of options or more")
    return without_repeats(value) if isinstance(value, list) else [value]


def _fill(value: Any) -> Any:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return {"records": value} if is_number or isinstance(value, list) else value


def _from_project(script: str) -> Path:
    try:
        return project_root() / script
    except KvstudyError:
        return Path(script)


def _renamed(values: dict[str, Any], where: tuple[str, ...], source: Source) -> dict[str, Any]:
    """``server`` is what ``subject`` was called before it could be anything else."""
    if "server" in values:
        if "subject" in values:
            raise refuse(
                (*where, "server"), "server is the older name of subject: write subject alone", source
            )
        values["subject"] = values.pop("server")
        source.renamed((*where, "server"), (*where, "subject"))
    return values


def _without(values: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in keys}


def _awake(value: Any) -> Any:
    if value != "auto" and not isinstance(value, bool):
        raise ValueError(f"not one of true, false, auto: {value!r}")
    return value


def _verify(value: Any) -> Any:
    return {"sample": 0} if value is False else value


def _profiled_runs(value: Any) -> Any:
    events = get_args(ProfilerEvent)
    if isinstance(value, str) and not difflib.get_close_matches(value, events, n=1):
        raise ValueError(
            f"not one of {', '.join(events)}: {value!r}\n"
            "`profile` says what async-profiler samples; a preset of the file is chosen by "
            f"--preset {value}, in a notebook by -p preset {value}"
        )
    return {"events": value} if isinstance(value, (list, str)) else value


class Experiment(Part):
    """All keys of experiments/README.md. Durations in seconds, rates in requests per second."""

    name: text_of(NAME, f"a name of an experiment\n{NAME_HINT}; a file without the key has its own")
    question: Annotated[str, Field(min_length=1)]
    expectation: str
    subject: Subjects = [OUR_SERVICE]
    service: Annotated[list[ServiceOptions], BeforeValidator(_parts)] = [ServiceOptions()]
    jvm: JvmOptions = JvmOptions()
    generator: Annotated[list[Literal["loadgen", "wrk2", "wrk"]], OneOrMore] = ["loadgen"]
    arrivals: Annotated[list[Literal["uniform", "poisson"]], OneOrMore] = ["uniform"]
    spin: Annotated[list[str], OneOrMore] = ["auto"]
    timeout: TimeLimitS = 2.0
    workload: Workloads
    method: Method | None = None
    connections: Annotated[list[Annotated[int, Field(ge=1, le=CONNECTIONS_MAX)]], OneOrMore]
    threads: Annotated[list[Positive] | None, BeforeValidator(_threads)]  # None: as many as connections
    rate: Annotated[list[RateRps], OneOrMore] | None = None
    search: Search | None = None
    duration: DurationS
    warm_up: DurationS
    repeats: Repeats
    fill: Annotated[Fill | None, BeforeValidator(_fill)] = None
    profile: Annotated[ProfiledRuns | None, BeforeValidator(_profiled_runs)] = None
    verify: Annotated[Verify | None, BeforeValidator(_verify)] = None
    head_start: SizeBytes | None = None  # of records, a random part of which is written before the warm-up
    pause: Pause | None = None
    same: Annotated[float, Field(gt=0, lt=100)] = 5.0  # percent: sides that differ by less are the same
    awake: Annotated[bool | Literal["auto"], BeforeValidator(_awake)] = "auto"
    cores: Cores | None = None  # None: apart from four cores on, in a duet from two on
    port: Annotated[int, Field(ge=0, le=PORT_MAX)] = 0  # 0: a free one
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 1  # loadgen takes 64 bits; a repeat adds its number
    comparing: Comparing = Comparing()  # of the key `compare`, see for_comparison
    preset: str | None = None

    def for_profiled_runs(self) -> "Experiment":
        """The same with the duration and warm-up of the profiled runs."""
        own = {
            key: value
            for key in ("duration", "warm_up")
            if self.profile and (value := getattr(self.profile, key)) is not None
        }
        return self.model_copy(update=own)

    @classmethod
    def load(cls, path: Path, preset: str | None = None, compared: bool = False) -> "Experiment":
        """The experiment of a file. Without the name of a preset: ``quick`` where the file has it, else the
        file as it stands. ``compared``: with the keys of ``compare`` in the place of its own, for a duet."""
        path = Path(path)
        values, source = read_yaml(path)
        if values.setdefault("name", path.stem) != path.stem:
            raise refuse(
                ("name",),
                f"the name must be the file's: name={' '.join(str(values['name']).split())} file={path.name}",
                source,
                f"leave name out, or write name: {path.stem}",
            )
        return cls._checked(values, preset, source, compared)

    @classmethod
    def from_parameters(
        cls, parameters: dict[str, Any], preset: str | None = None, compared: bool = False
    ) -> "Experiment":
        """The experiment of a notebook's parameters: the same keys as a file's, None where a parameter was
        left alone.

        With ``experiment_file`` the file is read first; then the other parameters take the place of its keys,
        in the preset that is asked for: nobody asked for them in another one.
        """
        given = {key: value for key, value in parameters.items() if value is not None}
        file = given.pop("experiment_file", None)
        if file is None:
            return cls._checked({"name": "sweep"} | given, preset, Source("parameters"), compared)
        values, source = read_yaml(Path(file))
        values, given = _renamed(values, (), source), _renamed(given, (), source)
        values.setdefault("name", Path(file).stem)
        # Who gives a rate wants no search for one.
        replaced = {*given, *(other for one, other in RATE_OR_SEARCH.items() if one in given)}
        presets, asked = values.get("presets"), preset or "quick"
        if given and isinstance(presets, dict) and isinstance(overrides := presets.get(asked), dict):
            overrides = _renamed(dict(overrides), ("presets", asked), source)
            values["presets"] = {asked: _without(overrides, replaced)}
        return cls._checked(_without(values, replaced) | given, preset, source, compared)

    @classmethod
    def _checked(
        cls, values: dict[str, Any], preset: str | None, source: Source, compared: bool = False
    ) -> "Experiment":
        values = dict(values)
        if "profiles" in values:  # as it was called; the nearest known key would be profile, another thing
            raise refuse(("profiles",), "unknown key: it is called presets", source)
        presets = values.pop("presets", None)
        presets = {} if presets is None else presets
        for ours in ("preset", "comparing"):
            if ours in values:
                raise unknown_key((ours,), cls.keys(), source)
        _renamed(values, (), source)
        for name, overrides in presets.items() if isinstance(presets, dict) else ():
            if isinstance(overrides, dict):
                presets = presets | {name: _renamed(dict(overrides), ("presets", name), source)}
        if not isinstance(presets, dict):
            raise refuse(
                ("presets",),
                "must map names, as quick, full and smoke, to the keys that they override",
                source,
            )
        for name, overrides in presets.items():
            _check_preset_name(name, source)
            if not isinstance(overrides, dict):
                raise refuse(("presets", name), "must be a mapping of keys to values", source)
            for key in overrides:
                if key in NOT_OVERRIDABLE:
                    raise refuse(("presets", name, key), "is the same in all presets", source)
                if key not in cls.keys() - NOT_OVERRIDABLE:
                    raise unknown_key(("presets", name, key), cls.keys() - NOT_OVERRIDABLE, source)
        if preset is None and "quick" in presets:
            preset = "quick"
        if preset is not None and preset not in presets:
            hint = meant(preset, presets, f"presets of this file: {', '.join(presets) or 'none'}")
            raise ExperimentError(f"{source.name}: no such preset: {preset}", hint)
        whole = None
        for name in [*presets] + ([None] if preset is None else []):
            overrides = presets.get(name, {})
            source.restored()
            for key in overrides:
                source.moved(key, ("presets", name, key))
            asked = {**values, **overrides, "preset": name}
            compare, at = (
                asked.pop("compare", None),
                ("presets", name, "compare") if "compare" in overrides else ("compare",),
            )
            if name == "smoke" and isinstance(compare, dict) and "compare" not in overrides:
                compare = compare | SMOKE_DUET
            experiment = cls._validated(asked, source)
            in_a_duet = cls._validated(cls._in_a_duet(asked, compare, at, source), source)
            if name == preset:
                whole = in_a_duet if compared else experiment
        assert whole is not None
        return whole

    @classmethod
    def _validated(cls, values: dict[str, Any], source: Source) -> "Experiment":
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise refusal(error, cls, source) from None

    @classmethod
    def _in_a_duet(
        cls, values: dict[str, Any], compare: Any, at: tuple[str, ...], source: Source
    ) -> dict[str, Any]:
        """``values`` with the keys of ``compare``, which stands ``at`` its place in the file; None where it
        stands nowhere."""
        asked = compare is not None
        compare = compare if asked else {}
        if not isinstance(compare, dict):
            raise refuse(at, "must be a mapping of keys to values", source)
        known = COMPARABLE | frozenset(Comparing.model_fields)
        for key in compare:
            if key in cls.keys() - known:
                raise refuse((*at, key), "a duet has none of its own: it is of the whole file", source)
            if key not in known:
                raise unknown_key((*at, key), known, source)
            source.moved(key, (*at, key))
        source.moved("comparing", at)
        own = {key: value for key, value in compare.items() if key not in COMPARABLE}
        rate = {"search": None} if "rate" in compare else {}
        return {
            **values,
            **rate,
            "profile": None,
            "pause": None,
            "head_start": None,
            **{key: compare[key] for key in compare if key in COMPARABLE},
            **({"comparing": own} if asked else {}),
        }

    @classmethod
    def keys(cls) -> frozenset[str]:
        """The keys that a file may have."""
        return frozenset(keys_of(cls))

    @field_validator("expectation")
    @classmethod
    def _has_a_number(cls, text: str) -> str:
        if not any(letter.isdigit() for letter in text):
            raise ValueError("an expectation carries a number, written down before the run")
        return text

    @field_validator("spin")
    @classmethod
    def _is_spin(cls, values: list[str]) -> list[str]:
        for value in values:
            if value not in ("auto", "off"):
                parse_duration_s(value)
        return ["".join(value.split()) for value in values]  # loadgen takes no blank before the unit

    @field_validator("subject")
    @classmethod
    def _can_be_told_apart(cls, subjects: list) -> list:
        labels = [subject.label for subject in subjects]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(
                    f"two subjects have one name: {label}\n"
                    "give each a name of its own: {name: …, command: …}"
                )
        return subjects

    @model_validator(mode="after")
    def _is_possible(self) -> "Experiment":
        if (self.rate is None) == (self.search is None):
            raise Impossible(
                "rate",
                "give either rate or search"
                + (", not both" if self.rate else ": the rates to measure, or how to find one"),
            )
        if self.warm_up >= self.duration:
            raise Impossible(
                "warm_up",
                f"warm_up must be shorter than duration, of which it is the first part: "
                f"warm_up={self.warm_up:g}s duration={self.duration:g}s",
            )
        if self.threads is not None and min(self.connections) < max(self.threads):
            raise Impossible(
                "connections",
                f"number of connections must be >= threads: connections={min(self.connections)} "
                f"threads={max(self.threads)}"
                "\nwrite threads: connections to have as many threads as connections",
            )
        profiled = self.for_profiled_runs()
        if profiled.warm_up >= profiled.duration:
            raise Impossible(
                "profile",
                "warm_up must be shorter than duration, which it is part of: profiled runs have "
                f"warm_up={profiled.warm_up:g}s duration={profiled.duration:g}s",
            )
        if self.pause and self.pause.at + self.pause.length >= min(
            self.duration - self.warm_up, profiled.duration - profiled.warm_up
        ):
            raise Impossible("pause", "pause must end inside the measured window")
        if self.head_start and self.search:
            raise Impossible(
                "head_start", "a search has no head start: its trials are not compared moment by moment"
            )
        if self.profile and self.search:
            raise Impossible(
                "profile",
                "a search has no profiled runs\nleave profile out, or profile at a rate: rate: 20000",
            )
        self._options_have_a_program()
        self._generators_can_do_it()
        self._scripts_can_be_told_apart()
        for workload in self.workload:
            for script in workload.script:
                self._workload_is_possible(script, workload)
        if self.profile:
            self._profiled_runs_exist(self.profile)
        return self

    def _generators_can_do_it(self) -> None:
        rates = self.rate or []
        if self.pause and any(subject.url for subject in self.subject):
            raise Impossible("pause", "what runs at an address is not ours to stop: it cannot have a pause")
        if self.cores == APART and any(subject.url for subject in self.subject):
            raise Impossible(
                "cores", "what runs at an address is not ours to give cores to: it cannot have cores: apart"
            )
        if "wrk" in self.generator and any(rate != "closed" for rate in rates):
            raise Impossible("generator", "generator wrk has no rate: write rate: closed")
        if "wrk2" in self.generator and "closed" in rates:
            raise Impossible(
                "generator", "generator wrk2 has no closed loop: give rates, or use loadgen or wrk"
            )
        if self.search and self.generator != ["loadgen"]:
            raise Impossible(
                "search",
                "search needs generator: loadgen, which says whether a trial failed through its own fault",
            )
        if self.generator != ["loadgen"] and (self.arrivals != ["uniform"] or self.spin != ["auto"]):
            raise Impossible("generator", "only generator loadgen has arrivals and spin")
        if "loadgen" in self.generator and max(self.threads or self.connections) > THREADS_MAX:
            raise Impossible(
                "threads",
                f"generator loadgen has at most {THREADS_MAX} threads: "
                f"threads={max(self.threads or self.connections)}",
            )
        for generator in self.generator:
            if generator != "loadgen":
                self._are_whole_numbers(generator)

    def _are_whole_numbers(self, generator: str) -> None:
        """All that wrk and wrk2 can read."""
        profiled = self.for_profiled_runs()
        for key, seconds in (
            ("duration", self.duration),
            ("warm_up", self.warm_up),
            ("timeout", self.timeout),
            ("profile", profiled.duration),
            ("profile", profiled.warm_up),
        ):
            if seconds % 1:
                raise Impossible(
                    key,
                    f"generator {generator} takes whole seconds: {write_duration(seconds)}\n"
                    f"write {math.ceil(seconds)}s, or take generator: loadgen",
                )
        for rate in self.rate or []:
            if rate != "closed" and rate % 1:
                raise Impossible("rate", f"generator {generator} takes whole rates: {write_rate(rate)}")

    def _scripts_can_be_told_apart(self) -> None:
        """Runs are known by the name of their script: those of two would pass for repeats of one."""
        named: dict[str, str] = {}
        for script in [script for workload in self.workload for script in workload.script]:
            if named.setdefault(workload_name(script), script) != script:
                raise Impossible(
                    "workload",
                    f"two scripts have one name, {workload_name(script)}: "
                    f"{named[workload_name(script)]}, {script}\nname the file of one of them otherwise",
                )

    def _workload_is_possible(self, script: str, workload: Any) -> None:
        method, scripts = self.method or METHOD_OF_WORKLOAD.get(script), workload_scripts()
        if is_path(script):
            if not (path := _from_project(script)).is_file():
                raise Impossible(
                    "workload", f"no such script: {path}\na path is taken from the project's folder"
                )
        elif scripts and script not in scripts:
            own = f"one of your own is a script experiments/workloads/{script}.lua"
            hint = meant(script, scripts, f"workloads: {', '.join(scripts)}; {own}")
            raise Impossible("workload", f"no such workload: {script}\n{hint}")
        if method is None:
            raise Impossible(
                "workload",
                f"method is needed for a workload of your own: workload={script}\n"
                "write method: PUT, GET, MIXED or DELETE",
            )
        if METHOD_OF_WORKLOAD.get(script, method) != method:
            raise Impossible(
                "method", f"workload {script} sends {METHOD_OF_WORKLOAD[script]}: method={method}"
            )
        if min(workload.value_bytes) <= max(workload.key_bytes):
            raise Impossible(
                "workload",
                "a value begins with its key and a blank, so value_bytes must exceed key_bytes: "
                f"workload={script} "
                f"value_bytes={min(workload.value_bytes)} key_bytes={max(workload.key_bytes)}",
            )
        records = self.fill.records if self.fill and method in self.fill.methods else [0]
        most = max(*records, *(workload.key_count or [self._keys_of(script) if records == [0] else 1]))
        most += self._head_start_keys(workload) if script == "unique_put" else 0
        if script in METHOD_OF_WORKLOAD and min(workload.key_bytes) <= len(str(most - 1)):
            raise Impossible(
                "workload",
                "a key is a letter and its number, so key_bytes must exceed the digits: "
                f"workload={script} key_bytes={min(workload.key_bytes)} keys={most}\n"
                f"write key_bytes: {len(str(most - 1)) + 1} or more",
            )
        if script in METHOD_OF_WORKLOAD:
            self._arguments_are_read(script, workload)
        self._values_are_taken(script, workload, method, filled=records != [0])
        reads_filled_keys = (
            (method == "GET" or script == "mixed")
            and script != "missing_get"
            and not is_path(script)
            and any(one.can_be_filled for one in self.subject)
        )
        filled = min(records)
        if reads_filled_keys and filled == 0 and method == "GET":
            raise Impossible(
                "workload",
                f"workload {script} reads keys that nothing wrote\n"
                f"add fill: {{records: {max(workload.key_count or [100_000])}}}",
            )
        if reads_filled_keys and 0 < filled < max(workload.key_count or [0]):
            raise Impossible(
                "workload",
                f"workload {script} reads more keys than are filled: "
                f"key_count={max(workload.key_count)} fill.records={filled}",
            )
        if script == "unique_put":
            self._keys_suffice(workload, records)

    def _arguments_are_read(self, script: str, workload: Workload) -> None:
        """A list of what no run heeds would make a factor of nothing."""
        for name, is_read in (
            ("read_share", script == "mixed" or workload.read_share is None),
            ("distribution", script in DRAWN or workload.distribution == ["uniform"]),
        ):
            if not is_read:
                raise Impossible(
                    "workload",
                    f"workload {script} heeds no {name}: {name}="
                    f"{', '.join(map(str, getattr(workload, name)))}\n"
                    "leave it out, or give the workloads that heed it in a set of their own",
                )

    def _values_are_taken(self, script: str, workload: Workload, method: str, filled: bool) -> None:
        """Our service answers 413 to larger values, of a fill too."""
        is_written = script in METHOD_OF_WORKLOAD and method in ("PUT", "MIXED")
        if not (is_written or filled) or not any(one.is_ours for one in self.subject):
            return
        most = min(min(options.max_value_bytes or [MAX_VALUE_BYTES]) for options in self.service)
        if max(workload.value_bytes) > most:
            raise Impossible(
                "workload",
                f"the service takes no value so large: value_bytes={max(workload.value_bytes)} "
                f"max_value_bytes={most}\n"
                f"write service: {{max_value_bytes: {max(workload.value_bytes)}}}",
            )

    def _keys_of(self, script: str) -> int:
        """As many as the plan chooses at most, where nothing is filled and no key_count said."""
        if script != "unique_put":
            return DEFAULT_KEY_COUNT
        rates = [self.search.highest_rate] if self.search else self.rate or []
        duration_s = max(self.duration, self.for_profiled_runs().duration)
        return max(enough_unique_keys(None if rate == "closed" else rate, duration_s) for rate in rates)

    def _head_start_keys(self, workload: Workload) -> int:
        """unique_put has keys of its own for a head start."""
        record = min(workload.key_bytes) + min(workload.value_bytes) + MEMTABLE_ENTRY_BYTES
        return (self.head_start or 0) // record

    def _keys_suffice(self, workload: Workload, filled: list[int]) -> None:
        """unique_put has as many keys as it writes, where these are not left to the plan. How many it writes
        in a closed loop is not known."""
        keys = min(workload.key_count or filled)
        rates = [self.search.highest_rate] if self.search else self.rate or []
        rate = max((CLOSED_LOOP_RPS_LEAST if rate == "closed" else rate for rate in rates), default=0)
        written = rate * max(self.duration, self.for_profiled_runs().duration)
        if 0 < keys < written:
            named, remedy = (
                ("key_count", "leave key_count out: it is then chosen to suffice")
                if workload.key_count
                else ("fill.records", "fill more records, or leave PUT out of fill.methods")
            )
            raise Impossible(
                "workload",
                f"unique_put would write keys twice: {named}={keys} rate × duration={written:.0f}"
                + (f", a closed loop taken for {CLOSED_LOOP_RPS_LEAST}/s" if "closed" in rates else "")
                + f"\n{remedy}",
            )

    def _options_have_a_program(self) -> None:
        if any(subject.has_our_jvm for subject in self.subject):
            return
        for key, given, of_a_command in (
            (
                "service",
                self.service != [ServiceOptions()],
                "its options, and its memory group in memory of the subject",
            ),
            ("jvm", self.jvm != JvmOptions(), "the flags of its JVM"),
        ):
            if given:
                raise Impossible(
                    key,
                    "is of our own programs, and no subject is one\n"
                    f"leave it out, or write {key}: {{}}; a command has in its words {of_a_command}",
                )

    def _profiled_runs_exist(self, profile: ProfiledRuns) -> None:
        if not any(subject.can_be_profiled for subject in self.subject):
            raise Impossible(
                "profile",
                "async-profiler needs a JVM, and no subject has one\n"
                "write jvm: true in a subject that runs on HotSpot",
            )
        scripts = [script for workload in self.workload for script in workload.script]
        by_path_or_name = list(dict.fromkeys([*scripts, *map(workload_name, scripts)]))
        for key, asked, present in (
            ("workload", profile.workload, by_path_or_name),
            ("connections", profile.connections, self.connections),
            ("rate", profile.rate, self.rate or []),
        ):
            for value in asked or []:
                if value not in present:
                    raise Impossible(
                        "profile",
                        f"profile.{key} is not among the experiment's: {value}\n"
                        f"it has: {', '.join(map(str, present))}",
                    )
