"""Under which conditions a run was made: what was asked for, with which programs, on which machine, as
columns of ``runs``.

    conditions_of_run(sealed)  {"jvm": '["-Xmx128m"]', …, "machine": '{"cores": 2, …}'}

Two runs are repeats only when all of these are equal (configuration.py). Everything is read from run.json and
machine.json, so runs of before these columns existed have them too. A fact that a run did not note is
NOT_RECORDED: equal to another that is not recorded, and to no value, since what was not noted may have been
anything.

Left out on purpose: the seed and the number of the repeat (chance is what repeats are for), times, loads and
free space, which no two runs share, and limits that touch profiling alone.
"""

import json
from collections.abc import Iterable, Mapping

from kvstudy.plan.subject import KV_SERVICE, SERVER_PROGRAMS, SUBJECT
from kvstudy.record.run_folder import SealedRun

NOT_RECORDED = "not recorded"
_ASKED = (
    "arrivals",
    "spin",
    "timeout_s",
    "jvm",
    "pause",
    "fill",
    "awake",
    "cores",
    "head_start_bytes",
    "statuses",
)
_NONE_BEFORE = ("head_start_bytes", "cores")  # what no run had before it was noted
# Facts of machine.json that make it another machine when they differ; processors_awake and pinning are
# columns of their own.
_MACHINE = (
    "machine_id",
    "cpu_model",
    "cores",
    "cores_usable",
    "threads_per_core",
    "governor",
    "memory_bytes",
    "swap_bytes",
    "kernel",
    "system",
    "virtualisation",
    "transparent_hugepage",
    "clock_source",
    "cgroup_cpu_max",
    "disk_device",
    "file_system",
    "mount_options",
)
_OURS = {"program", "build"}  # keys of a subject that is of this project
_SIZES = ("memory_bytes", "swap_bytes")
_GIB = 2**30  # two starts of one virtual machine differ by some megabytes of memory
ONE_MACHINE = "one machine"  # service and generator side by side
COLUMNS = (
    *_ASKED,
    "subject",
    "profiler",
    "pinning",
    "service_program",
    "generator_program",
    "script_digest",
    "machine",
    "hosts",
)


def conditions_of_run(run: SealedRun) -> dict[str, str]:
    """COLUMNS → text; what is not a text already is JSON."""
    facts, machine = run.facts, run.machine
    return {
        **{name: _text(facts, name) for name in _ASKED},
        "subject": _subject(facts),
        "profiler": _profiler(facts),
        "pinning": pinning_of_run(run),
        "service_program": _service_program(facts),
        "generator_program": _digest(facts, facts["generator"]),
        "script_digest": _digest(facts, "script"),
        "machine": machine_identity(machine),
        "hosts": hosts_of_run(run),
    }


def pinning_of_run(run: SealedRun) -> str:
    """On which cores service and generator ran, or why on any."""
    return _text(run.machine, "pinning")


def clock_bound_s(run: SealedRun) -> float:
    """How far the times of the service's events may be off those of the answers: over a network both are
    noted by clocks of different hosts, and either may have wandered in between."""
    compared = _clocks_of_service(run)
    if not compared:
        return 0.0
    clocks, hosts = run.machine["clocks"], run.facts["hosts"]
    wandered = clocks.get("wandered_us", {})
    both = wandered.get(hosts["service"], 0.0) + wandered.get(clocks["reference"], 0.0)
    others = (_off_us(clocks, name) for name in hosts["generators"] if name != clocks["reference"])
    return (max(one["bound_us"] for one in compared) + both + max(others, default=0.0)) / 1e6


def _off_us(clocks: dict, generator: str) -> float:
    """Of the answers of a generator whose clock is not the run's: they count from a start that it was told
    before the load, and go by its own clock from then on."""
    compared = _compared(clocks, generator)
    if not compared:
        return 0.0
    drifted = abs(compared[-1]["offset_us"] - compared[0]["offset_us"])
    return (
        max(one["bound_us"] for one in compared) + drifted + clocks.get("wandered_us", {}).get(generator, 0.0)
    )


def clock_offset_s(run: SealedRun) -> float:
    """What has to be added to a time of the service's host to get the run's: the mean of before and after the
    load; 0 on one machine. Events and counters were moved when the run was sealed, CPU samples were not."""
    known = [one["offset_us"] for one in _clocks_of_service(run)]
    return sum(known) / len(known) / 1e6 if known else 0.0


def _clocks_of_service(run: SealedRun) -> list[dict]:
    clocks, service = run.machine.get("clocks"), (run.facts.get("hosts") or {}).get("service")
    return _compared(clocks, service) if clocks else []


def _compared(clocks: dict, host: str | None) -> list[dict]:
    return [clocks[when][host] for when in ("before", "after") if host in clocks[when]]


def _text(facts: dict, name: str) -> str:
    if name not in facts and name not in _NONE_BEFORE:
        return NOT_RECORDED
    value = facts.get(name)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _subject(facts: dict) -> str:
    """Where and how another service than ours was reached, and what it was told. Ours is told by its program
    and options, whichever revision it was built from; runs of before there were subjects have no other."""
    noted = facts.get("subject")
    return json.dumps(None if noted is None or _OURS & noted.keys() else noted, sort_keys=True)


def _profiler(facts: dict) -> str:
    """What it counted, and by what it sampled the CPU; null of a run without one."""
    if not facts.get("profile"):
        return json.dumps(None)
    engine = (facts.get("profiler") or {}).get("cpu_engine", NOT_RECORDED)
    return json.dumps({"events": facts["profile"], "cpu_engine": engine}, sort_keys=True)


def _service_program(facts: dict) -> str:
    """What was measured, and the JDK that ran it. The empty server was part of the service's jar before it
    had one of its own."""
    program = SERVER_PROGRAMS.get(facts.get("server") or KV_SERVICE, SUBJECT)
    digest = _digest(facts, program)
    if digest == NOT_RECORDED and program != SUBJECT:
        digest = _digest(facts, SERVER_PROGRAMS[KV_SERVICE])
    return json.dumps(
        {"digest": digest, "jdk": (facts.get("tool_versions") or {}).get("jdk", NOT_RECORDED)}, sort_keys=True
    )


def _digest(facts: dict, program: str) -> str:
    return (facts.get("tool_digests") or {}).get(program, NOT_RECORDED)


def hosts_of_run(run: SealedRun) -> str:
    """Where a run, or a launch of a duet, ran: on hosts JSON of the service's, of what the generators were,
    and of which machines had those names."""
    if not (hosts := run.facts.get("hosts")):
        return ONE_MACHINE
    noted = run.machine.get("hosts") or {}
    generators = {
        name: json.loads(machine_identity(noted.get(name, {}), "{}")) for name in hosts["generators"]
    }
    names = [name for name in (hosts["service"], *hosts["generators"]) if name]
    return json.dumps(
        {"service": hosts["service"], "generators": generators} | machine_ids(noted, names), sort_keys=True
    )


def machine_ids(noted: Mapping[str, dict], names: Iterable[str]) -> dict[str, dict[str, str]]:
    """``machine_ids``: of each host that noted one; nothing where none did, as before it was noted.
    ``noted``: facts of the machines by host."""
    found = {name: known for name in names if (known := noted.get(name, {}).get("machine_id"))}
    return {"machine_ids": found} if found else {}


def has_known_program(service_program: str) -> bool:
    """Of the column: whether a rebuilt service would have been told from the one before."""
    return f'"digest": "{NOT_RECORDED}"' not in service_program


def hosts_in_words(hosts: str) -> str:
    """``service on a, loaded by b and c``, of the column; runs of before there were hosts are of one
    machine."""
    if hosts in (ONE_MACHINE, NOT_RECORDED):
        return ONE_MACHINE
    names = json.loads(hosts)
    if list(names["generators"]) == [names["service"]]:
        return f"service and generator on {names['service']}"
    where = f"on {names['service']}" if names["service"] else "at its address"
    return f"service {where}, loaded by {' and '.join(names['generators'])}"


def machine_identity(machine: dict, otherwise: str = NOT_RECORDED) -> str:
    """JSON of the facts that make it this machine and no other; ``otherwise`` where none of them was
    noted."""
    known = {name: machine[name] for name in _MACHINE if name in machine}
    if known.get("machine_id", "") is None:  # the system has none, as before it was noted
        del known["machine_id"]
    sizes = {name: known[name] for name in _SIZES if isinstance(known.get(name), int)}
    known |= {name: round(size / _GIB) * _GIB for name, size in sizes.items()}
    return json.dumps(known, sort_keys=True) if known else otherwise
