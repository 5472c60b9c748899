"""The parts of an experiment that can be varied: options of the service, of the JVM, and the workload.

Every field takes one value or a list; a list makes a factor, and all factors are crossed. Unset fields are
left to the program's own default and are not passed on.
"""

import itertools
import re
from collections.abc import Collection
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    model_validator,
)

from kvstudy.errors import meant
from kvstudy.units import format_bytes, parse_duration_s, parse_rate_rps, parse_size_bytes


class Part(BaseModel):
    """Unknown keys are refused, and nothing is converted silently: "4" is no number, 4 is no text."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def text_of(pattern: str, what: str, known: Collection[str] = ()) -> Any:
    """Text of this form; of another one it is said that it is not ``what``, whose second line is a hint where
    none of ``known`` is nearly that."""
    what, _, hint = what.partition("\n")

    def checked(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"not {what}: {text!r}\n{meant(text, known, hint)}")
        return text

    return Annotated[str, AfterValidator(checked)]


def without_repeats(values: list) -> list:
    """ValueError when one stands twice: its runs would be taken for repeats."""
    if len({repr(item) for item in values}) != len(values):
        raise ValueError(f"a value stands twice in the list: {values!r}")
    return values


def listed(value: Any) -> Any:
    if isinstance(value, list):
        if not value:
            raise ValueError("an empty list has no runs: give one value or more")
        return without_repeats(value)
    return [value]


# A number mistyped by some digits shall not become a plan of weeks, nor one that no run can keep.
COUNT_MAX = (1 << 50) - 1  # of workloads/keyspace.lua
ROUNDS_MAX = 10_000  # of a search: sweeps, trials; of a duet: launches, pairs of slices
VALUE_BYTES_MAX = 1 << 30
DEFAULT_KEY_COUNT = 100_000
# What a record takes in a memtable beyond its key and value, nearly: a memtable of 4 MiB held 28 000 records
# of 116 bytes.
MEMTABLE_ENTRY_BYTES = 32
OneOrMore = BeforeValidator(listed)
Positive = Annotated[int, Field(ge=1, le=COUNT_MAX)]
Natural = Annotated[int, Field(ge=0, le=COUNT_MAX)]
Repeats = Annotated[int, Field(ge=1, le=1000)]
Rounds = Annotated[int, Field(ge=1, le=ROUNDS_MAX)]
SizeBytes = Annotated[int, PlainValidator(parse_size_bytes)]
DurationS = Annotated[float, PlainValidator(parse_duration_s)]


def _time_limit(value: Any) -> float:
    seconds = parse_duration_s(value)
    if seconds == 0:
        raise ValueError(f"a time limit is at least 1us: {value!r}")
    return seconds


TimeLimitS = Annotated[float, PlainValidator(_time_limit)]


def _size_as_written(value: Any) -> str:
    """Of memory, in which a program has to fit."""
    if parse_size_bytes(value) < MEMORY_LEAST_BYTES:
        raise ValueError(f"less than {format_bytes(MEMORY_LEAST_BYTES)}: {value!r}; write its unit, as 256m")
    if parse_size_bytes(value) > MEMORY_MOST_BYTES:
        raise ValueError(f"more than {MEMORY_MOST_BYTES >> 40} TiB: {value!r}")
    return str(value)


SizeAsWritten = Annotated[str, PlainValidator(_size_as_written)]
MEMORY_LEAST_BYTES = 2 << 20  # the smallest heap that HotSpot starts with
MEMORY_MOST_BYTES = 16 << 40  # the largest one


def _sized(least: int, most: int) -> Any:
    """A size between these, the bounds of the service's option."""

    def within(value: Any) -> int:
        size_bytes = parse_size_bytes(value)
        if not least <= size_bytes <= most:
            raise ValueError(f"not {format_bytes(least)} to {format_bytes(most)}: {value!r}")
        return size_bytes

    return Annotated[int, PlainValidator(within)]


def _counted(least: int, most: int) -> Any:
    return Annotated[int, Field(ge=least, le=most)]


# Of ServiceOptions the one that the service is not told: it is started in a memory group of that size.
MEMORY = "memory"


def _rate(value: Any) -> float | str:
    return "closed" if value == "closed" else parse_rate_rps(value)


RateRps = Annotated[float | str, PlainValidator(_rate)]


def crossed(values: dict[str, list]) -> list[dict]:
    """Every combination of one value per name; ``{}`` gives one empty combination."""
    return [
        dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())
    ]


class FactorPart(Part):
    """A part whose fields are all lists (or None when unset)."""

    def combinations(self) -> list[dict]:
        """Every combination of the fields that are set, in the order of the fields."""
        return crossed({name: value for name, value in self if value is not None})


def varied_in(combinations: list[dict]) -> list[str]:
    """The names that do not have the same value in all of them, in their order."""
    names = list(dict.fromkeys(name for one in combinations for name in one))
    return [name for name in names if len({repr(one.get(name)) for one in combinations}) > 1]


class ServiceOptions(FactorPart):
    """Options of the service, as its --help lists them; ``cache_entries`` is passed as
    ``--cache-entries``. ``memory`` is passed to nobody: it is the size of its memory group."""

    handler: Annotated[list[Literal["selector", "workers", "virtual"]], OneOrMore] | None = None
    selectors: Annotated[list[Positive], OneOrMore] | None = None
    workers: Annotated[list[Positive], OneOrMore] | None = None
    queue: Annotated[list[Positive], OneOrMore] | None = None
    wal: Annotated[list[Literal["none", "os", "interval", "always"]], OneOrMore] | None = None
    wal_interval_ms: Annotated[list[_counted(1, 3_600_000)], OneOrMore] | None = None
    memtable_bytes: Annotated[list[_sized(1 << 10, 1 << 30)], OneOrMore] | None = None
    block_bytes: Annotated[list[_sized(64, 1 << 15)], OneOrMore] | None = None
    bloom_bits: Annotated[list[_counted(0, 32)], OneOrMore] | None = None
    compaction: Annotated[list[Literal["leveled", "tiered", "none"]], OneOrMore] | None = None
    read: Annotated[list[Literal["mmap", "pread"]], OneOrMore] | None = None
    compression: Annotated[list[Literal["none", "lz4"]], OneOrMore] | None = None
    cache_entries: Annotated[list[Natural], OneOrMore] | None = None
    max_value_bytes: Annotated[list[_sized(0, VALUE_BYTES_MAX)], OneOrMore] | None = None
    memory: Annotated[list[SizeAsWritten], OneOrMore] | None = None


# What a service has without the option.
MAX_VALUE_BYTES = 1 << 20
HEAP_FLAG = re.compile(r"(?:-Xmx|-XX:MaxHeapSize=)(.*)")
# Flags that say the same as heap and gc.
_SAME_FLAGS = {
    "heap": HEAP_FLAG,
    "gc": re.compile(r"-XX:[+-]Use(Serial|Parallel|G1|Z|Shenandoah|Epsilon)GC"),
}


def _flag(flag: str) -> str:
    """How much memory a JVM needs is asked before it is started."""
    if found := HEAP_FLAG.fullmatch(flag):
        _size_as_written(found[1])
    return flag


Flag = text_of(r"-\S+", "a flag of a JVM\neach flag is a word of its own, as [-Xss1m, -XX:+UseNUMA]")


class JvmOptions(FactorPart):
    """``heap`` → -Xmx, ``gc`` → -XX:+Use…GC, ``options``: further flags as they are (a list of flags, not a
    factor)."""

    heap: Annotated[list[SizeAsWritten], OneOrMore] | None = None
    gc: Annotated[list[Literal["Serial", "Parallel", "G1", "Z", "Shenandoah"]], OneOrMore] | None = None
    options: list[Annotated[Flag, AfterValidator(_flag)]] | None = None

    @model_validator(mode="after")
    def _says_nothing_twice(self) -> "JvmOptions":
        for key, same in _SAME_FLAGS.items():
            for flag in self.options or []:
                if getattr(self, key) is not None and same.fullmatch(flag):
                    raise ValueError(
                        f"{flag} would be in force whatever {key} says\n"
                        f"leave it out of options, or write it as {key} alone"
                    )
        return self

    def combinations(self) -> list[dict]:
        return crossed(
            {name: value for name, value in (("heap", self.heap), ("gc", self.gc)) if value is not None}
        )

    def varied(self) -> list[str]:
        return [name for name in ("heap", "gc") if len(getattr(self, name) or []) > 1]

    def flags(self, combination: dict) -> list[str]:
        """The JVM's argv of one combination."""
        flags = [f"-Xmx{combination['heap']}"] if "heap" in combination else []
        flags += [f"-XX:+Use{combination['gc']}GC"] if "gc" in combination else []
        return flags + (self.options or [])


METHOD_OF_WORKLOAD = {
    "put": "PUT",
    "unique_put": "PUT",
    "repeated_put": "PUT",
    "get": "GET",
    "unique_get": "GET",
    "repeated_get": "GET",
    "random_get": "GET",
    "missing_get": "GET",
    "mixed": "MIXED",
    "delete": "DELETE",
}
# Of these the workloads that draw their keys by `distribution`.
DRAWN = frozenset({"put", "get", "missing_get", "mixed", "delete"})


def is_path(script: str) -> bool:
    """A script of its own, not one of experiments/workloads."""
    return script.endswith(".lua")


def workload_name(script: str) -> str:
    """What a workload is called in run ids and tables: ``my/Script-2.lua`` → ``script_2``."""
    return re.sub(r"[^a-z0-9_]", "_", PurePath(script).stem.lower()) if is_path(script) else script


Script = text_of(
    r"[a-z][a-z0-9_]*|\S+\.lua",
    "a workload\nwrite its name, as put, or the path of a script without blanks, as my/own.lua",
    known=METHOD_OF_WORKLOAD,
)


class Workload(FactorPart):
    """A Lua script and its arguments: one of experiments/workloads by its name, or any other by its path from
    the project's folder. ``script`` can be a list too. ``statuses``: the answers that are expected, of one's
    own script; not a factor."""

    script: Annotated[list[Script], OneOrMore]
    statuses: Annotated[list[Annotated[int, Field(ge=100, le=599)]], OneOrMore] | None = None
    key_count: Annotated[list[Positive], OneOrMore] | None = None
    key_bytes: Annotated[list[Annotated[int, Field(ge=8, le=1024)]], OneOrMore] = [16]
    value_bytes: Annotated[list[Annotated[int, Field(ge=1, le=VALUE_BYTES_MAX)]], OneOrMore] = [100]
    distribution: Annotated[list[Literal["uniform", "zipfian", "latest"]], OneOrMore] = ["uniform"]
    read_share: Annotated[list[Annotated[float, Field(ge=0, le=1)]], OneOrMore] | None = None

    def combinations(self) -> list[dict]:
        own = {} if self.statuses is None else {"statuses": self.statuses}
        return [
            one | own
            for one in crossed(
                {name: value for name, value in self if value is not None and name != "statuses"}
            )
        ]


def _workloads(value: Any) -> Any:
    items = value if isinstance(value, list) else [value]
    if not items:
        raise ValueError("an empty list has no runs: give one workload or more")
    return without_repeats([{"script": item} if isinstance(item, str) else item for item in items])


Workloads = Annotated[list[Workload], BeforeValidator(_workloads)]
