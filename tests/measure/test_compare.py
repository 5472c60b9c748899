"""Whole duets with real services and the real generator: what is sealed, what is said, and what is left when
something goes wrong.

Slices are tiny, so nothing here says which side is faster; on a busy machine the launches do not count, and
are sealed all the same."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import psutil
import pytest
from project import TINY_SLICES, UNDISTURBED

from kvstudy.analyse.comparison.launches import MEASURES
from kvstudy.analyse.duets import duet_of
from kvstudy.cli import exit_code_of
from kvstudy.errors import ExperimentError
from kvstudy.hosts.local import LocalHost
from kvstudy.measure import awake, compare, machine
from kvstudy.measure.crew import Crew, Member
from kvstudy.measure.duet_station import DuetStation
from kvstudy.measure.duet_table import MEASURE_NAMES
from kvstudy.measure.pinning import OF_A_DUET, pinning
from kvstudy.plan.comparison import SIDES, comparisons
from kvstudy.plan.experiment import Experiment
from kvstudy.project import work_root
from kvstudy.record.duet import slice_histograms, slices_of
from kvstudy.record.run_folder import sealed_runs
from kvstudy.record.verification import verify

sys.path.append(str(Path(__file__).parents[1] / "analyse"))
from duet_maker import DuetMaker

pytestmark = pytest.mark.machine

FOREIGN = Path(__file__).parents[1] / "subject" / "foreign.py"
EMPTY_SIDES = {"subject": "empty", "jvm": {"heap": ["48m", "64m"]}, "workload": "get"}


def experiment(project, compare=None, **change):
    return project.experiment(
        **{
            "subject": None,
            "rate": 400,
            "fill": None,
            "duration": "2s",
            "warm_up": "1s",
            "compare": TINY_SLICES | (compare or {}),
        }
        | change
    )


def of(project, builds=None, **change):
    (one,) = comparisons(Experiment.load(experiment(project, **change), compared=True), builds=builds)
    return one


def crew_of(project, one) -> Crew:
    """This machine alone, without programs."""
    host = LocalHost(project.root, work_root(project.root), lambda *_: None)
    here = Member(host, host.stationed(DuetStation, None, None, one))
    return Crew(here, (here,))


def test_two_builds_that_are_one_program_are_refused_unless_the_same_name_was_asked_for(project):
    ours = {"workload": "put", "jvm": {"heap": "64m"}}
    alike = {"a": "0123", "b": "0123"}
    with pytest.raises(
        ExperimentError, match="nothing to compare: main and . are the same program .* digest=0123"
    ):
        compare.check_difference(of(project, ("main", "."), **ours), alike)
    compare.check_difference(of(project, (".", "."), **ours), alike)
    compare.check_difference(of(project, ("main", "."), **ours), {"a": "0123", "b": "4567"})
    compare.check_difference(of(project, **EMPTY_SIDES), alike)


def test_slices_too_few_for_a_value_are_told_before_they_are_measured(project):
    assert compare.without_value(of(project, **EMPTY_SIDES, compare={"pairs": 5, "closed_pairs": 0})) == []
    at_rate, closed = compare.without_value(of(project, **EMPTY_SIDES, compare={"pairs": 4}))[::-1]
    assert at_rate.startswith("pairs: 4 is too few for a value at the rate, which takes 5")
    assert closed.startswith("closed_pairs: 2 is too few for a value of the closed loop, which takes 5")


def test_a_duet_that_wants_a_word_and_can_have_no_value_is_refused(project):
    def check(**asked) -> None:
        compare.check_pairs(of(project, **EMPTY_SIDES, compare=asked))

    for launches in (None, 6):
        with pytest.raises(
            ExperimentError, match="no launch would give a value: pairs: 4 is too few "
        ) as one:
            check(pairs=4, closed_pairs=0, launches=launches)
        assert one.value.hint == "write compare: {pairs: 5} or more"
        check(pairs=4, closed_pairs=5, launches=launches)
    check(pairs=2, closed_pairs=0, launches=2)


def test_launches_too_few_for_a_word_are_told_before_they_are_measured(project):
    def told(**asked) -> list[str]:
        return compare.without_word(of(project, **EMPTY_SIDES, compare=asked))

    for launches in (None, 20):
        (few,) = told(within="1m", counted="1s", launches=launches)
        assert re.fullmatch(
            r"no word will be said: within 1m there is time for [1-5] launch.* needs 6: --within [2-9]m", few
        )
    assert told(within="1m", counted="1s", launches=2) == [], "who asks for two launches knows"
    assert told(within="1h", counted="1s", launches=None) == []


@pytest.mark.parametrize("primary", MEASURE_NAMES)
def test_a_measure_is_planned_in_the_loops_in_which_it_is_analysed(project, primary):
    asked = {"primary": primary, "closed_pairs": 0}
    for change, loop in (({}, "rate"), ({"rate": "closed"}, "closed")):
        if MEASURE_NAMES[primary] in MEASURES[loop]:
            one = of(project, **EMPTY_SIDES | change, compare=asked)
            assert compare.primary_of(one)["loop"] == loop
        else:
            with pytest.raises(ExperimentError, match=f"primary measure is not measured: {primary}"):
                of(project, **EMPTY_SIDES | change, compare=asked)


def test_answers_too_few_for_the_percentile_that_is_primary_are_told_before_they_are_measured(project):
    def told(rate: int, primary: str) -> list[str]:
        asked = {"pairs": 11, "counted": "100ms", "closed_pairs": 0, "primary": primary}
        return compare.without_value(of(project, **EMPTY_SIDES | {"rate": rate}, compare=asked))

    assert told(10_000, "p99.9") == told(1_000, "p99") == told(100, "p50") == []
    (few,) = told(9_000, "p99.9")
    assert few.startswith("no launch gives a value of p99.9: get has 9000 answers of a side that count, ")
    assert told(900, "p99")
    assert told(20_000, "p99-slice") == []
    (few,) = told(9_000, "p99-slice")
    assert "get has 900 answers of a slice that count, and it takes 1000" in few


def test_a_changed_script_is_another_question_and_a_side_without_a_digest_is_not_resumed(project):
    one = of(project, **EMPTY_SIDES)
    before = compare.conditions_of(one, project.root, crew_of(project, one))
    assert before == compare.conditions_of(one, project.root, crew_of(project, one))
    script = project.root / "experiments" / "workloads" / "get.lua"
    script.write_text(script.read_text() + "-- other\n")
    after = compare.conditions_of(one, project.root, crew_of(project, one))
    assert {name for name in before if before[name] != after[name]} == {"scripts"}
    (script.parent / "aside.lua").write_text("-- which no load requires")
    assert compare.conditions_of(one, project.root, crew_of(project, one)) == after
    with pytest.raises(ExperimentError, match="--resume cannot know whether side heap=64m"):
        compare.check_digests(one, {"a": "0123", "b": None})


def test_a_changed_module_below_a_script_of_one_s_own_is_another_question(project, monkeypatch):
    monkeypatch.setenv("KVSTUDY_ROOT", str(project.root))
    own, module = (project.root / "my" / name for name in ("own.lua", "lib/util.lua"))
    module.parent.mkdir(parents=True)
    own.write_text('local util = require "lib.util"')
    module.write_text("-- one")
    one = of(project, **EMPTY_SIDES | {"workload": {"script": "my/own.lua"}, "method": "GET"})
    before = compare.conditions_of(one, project.root, crew_of(project, one))
    module.write_text("-- other")
    after = compare.conditions_of(one, project.root, crew_of(project, one))
    assert {name for name in before if before[name] != after[name]} == {"scripts"}


def test_launches_of_before_the_processors_could_sleep_are_of_another_duet(project, monkeypatch):
    one = of(project, **EMPTY_SIDES)

    def found(why: str | None) -> dict[str, str]:
        monkeypatch.setattr(awake, "problem", lambda _device: why)
        return compare.conditions_of(one, project.root, crew_of(project, one))

    before, after = found(None), found("no permission")
    assert {name for name in before if before[name] != after[name]} == {"awake"}


@pytest.mark.parametrize("fact", ["governor", "transparent_hugepage", "mount_options", "swap_bytes"])
def test_launches_on_a_machine_that_was_set_otherwise_meanwhile_are_of_another_duet(
    project, monkeypatch, fact
):
    one = of(project, **EMPTY_SIDES)
    before = compare.conditions_of(one, project.root, crew_of(project, one))
    other = {fact: 1 << 40}
    monkeypatch.setattr(DuetStation, "machine_facts", lambda _: machine.fixed_facts() | other)
    monkeypatch.setattr(DuetStation, "disk_facts", lambda _: machine.disk_facts(project.root) | other)
    after = compare.conditions_of(one, project.root, crew_of(project, one))
    assert {name for name in before if before[name] != after[name]} == {"machine"}


def test_waiting_and_filling_are_no_part_of_the_time_for_launches(project, monkeypatch):
    """Each launch waits for ten hours by the clock that is asked, and takes a minute beside that; the
    profiled first one takes an hour."""
    clock, took = [0.0], iter([3600.0, 60.0, 60.0, 60.0])
    monkeypatch.setattr(compare.time, "monotonic", lambda: clock[0])

    class Launch:
        waited_s = 36_000.0

        def __init__(self, launch, _bench, profile):
            self.facts = {
                "launch": launch.number,
                "sampled_after": list(profile) or None,
                "outcome": "completed",
            }

        def sealed(self):
            clock[0] += self.waited_s + next(took)
            return SimpleNamespace(facts=self.facts, path=None)

    monkeypatch.setattr(compare, "DuetLaunch", Launch)
    monkeypatch.setattr(compare.DuetInProgress, "found", None)
    monkeypatch.setattr(compare, "outcome_of", lambda *_: "")
    duet = compare.DuetInProgress(
        of(project, **EMPTY_SIDES, compare={"profile": ["cpu"], "launches": None}), "x"
    )
    compare._launches(duet, None, 3600.0 + 3 * 60.0, compare.DuetProgress(0))
    assert len(duet.launches) == 4 and duet.over.startswith("the time is over")


@pytest.fixture
def sealed(tmp_path):
    """Launches of a duet; each has lasted for two minutes."""
    make = DuetMaker(tmp_path / "raw")
    begin, end = "2026-11-20T21:00:00.000Z", "2026-11-20T21:02:00.000Z"

    def launch(number, **facts):
        phases = {
            "launch": {"start_utc": begin, "stop_utc": begin},
            "stop": {"start_utc": begin, "stop_utc": end},
        }
        return make(number, **{"phases": phases, "sampled_after": None} | facts)

    return launch


class NextLaunch:
    """``made``: which are begun."""

    made: ClassVar[list[int]] = []
    waited_s = 0.0

    def __init__(self, launch, bench, _profile):
        self.made.append(launch.number)
        self.number, self.make = launch.number, bench

    def sealed(self):
        return self.make(self.number)


@pytest.fixture
def begun(monkeypatch):
    monkeypatch.setattr(compare, "DuetLaunch", NextLaunch)
    NextLaunch.made = []
    return NextLaunch.made


DISTURBED = {"machine": {"load_during": {"steal_share_mean": 0.5}}}
INTERRUPTED = {"outcome": "failed: interrupted during put at the rate"}


def test_launches_that_were_interrupted_or_disturbed_are_none_of_those_that_were_asked_for(
    project, sealed, begun
):
    one = of(project, **EMPTY_SIDES, compare={"launches": 2})
    before = [sealed(1), sealed(2, **INTERRUPTED), sealed(3, **DISTURBED)]
    duet = compare.DuetInProgress(one, "c0ffee", before)
    compare._launches(duet, sealed, 3600.0, compare.DuetProgress(0))
    assert begun == [4] and duet.over.startswith("no more launches were asked for")


def test_a_launch_that_a_side_ended_is_one_of_those_that_were_asked_for(project, sealed, begun):
    died = {"a": DuetMaker.end(), "b": DuetMaker.end(died=True)}
    one = of(project, **EMPTY_SIDES, compare={"launches": 2})
    duet = compare.DuetInProgress(one, "c0ffee", [sealed(1), sealed(2, ends=died, outcome="failed: side b")])
    compare._launches(duet, sealed, 3600.0, compare.DuetProgress(0))
    assert begun == []


@pytest.mark.parametrize(("within_s", "more"), [(239.0, 0), (600.0, 1)])
def test_a_duet_goes_on_in_the_time_that_its_launches_left_and_not_beyond(
    project, sealed, begun, monkeypatch, within_s, more
):
    """Two launches took two minutes each; another one, by the clock that is asked, takes five."""
    clock = [0.0]
    monkeypatch.setattr(compare.time, "monotonic", lambda: clock[0])

    def launched(number):
        clock[0] += 300.0
        return sealed(number)

    duet = compare.DuetInProgress(
        of(project, **EMPTY_SIDES, compare={"launches": None}), "c0ffee", [sealed(1), sealed(2)]
    )
    compare._launches(duet, launched, within_s, compare.DuetProgress(0))
    assert len(begun) == more and duet.over.startswith("the time is over")


def test_a_start_of_the_machine_with_a_little_less_memory_is_no_other_question(project, monkeypatch):
    one, facts = of(project, **EMPTY_SIDES), machine.fixed_facts()
    found = []
    for memory in (8 << 30, (8 << 30) - (5 << 20), 4 << 30):
        monkeypatch.setattr(machine, "fixed_facts", lambda size=memory: facts | {"memory_bytes": size})
        found.append(compare.conditions_of(one, project.root, crew_of(project, one)))
    assert found[0] == found[1] != found[2]


def test_a_duet_seals_each_launch_with_both_sides_files_and_every_slice(project):
    path = experiment(
        project,
        workload="mixed",
        fill={"records": 500, "methods": ["MIXED"]},
        service={"handler": ["selector", "workers"]},
        jvm={"heap": "64m"},
        compare={"profile": ["cpu"], "profile_pairs": 2},
    )
    code, out, err = project.finished(
        project.kvstudy("compare", path, "--markdown", "--label", "short", code=UNDISTURBED), 180
    )
    assert code == 0 and "Traceback" not in err, err
    assert "launch 2: completed" in err and "no more launches were asked for" in out
    first, second = sealed_runs(project.raw)
    assert verify(first.path) == verify(second.path) == []
    assert first.facts["comparison"] == second.facts["comparison"]
    assert [run.facts["launch"] for run in (first, second)] == [1, 2]
    assert [run.facts["outcome"] for run in (first, second)] == ["completed"] * 2
    assert {first.facts["first_started"], second.facts["first_started"]} == {"a", "b"}
    assert [first.facts["sides"][side]["service"] for side in SIDES] == [
        {"handler": "selector"},
        {"handler": "workers"},
    ]
    assert first.facts["sampled_after"] == ["cpu"] and second.facts["sampled_after"] is None
    files = {path.name for path in first.path.iterdir()}
    assert files >= {
        f"{name}-{side}{ending}"
        for side in SIDES
        for name, ending in (
            ("service", ".cmd"),
            ("service", ".log"),
            ("gc", ".log.gz"),
            ("events", ".json.gz"),
            ("cpu", ".collapsed.gz"),
            ("cpu", ".flamegraph.html.gz"),
        )
    }
    assert not any(name.startswith("service-") and ".jfr" in name for name in files)
    for run in (first, second):
        slices, histograms = slices_of(run), slice_histograms(run)
        sampled = slices[slices["loop"] == "profile"]
        assert len(sampled) == (4 if run is first else 0)
        slices = slices[slices["loop"] != "profile"]
        assert len(slices) == 8 and slices.groupby(["loop", "round"])["side"].nunique().eq(2).all()
        at_rate = slices[slices["loop"] == "rate"]
        assert (
            slices["answered"].gt(0).any()
            and at_rate["due"].eq(32).all()
            and (at_rate["answered"] + at_rate["errors"]).eq(32).all()
        )
        assert slices["a_cpu_ns"].notna().any()
        for row in slices.itertuples():
            assert histograms[row.workload, row.loop, row.slice].total == row.answered
            assert row.end_utc_ns - row.begin_utc_ns == 80_000_000
        ends = run.facts["ends"]
        for side in SIDES:
            assert (ends[side]["died"], ends[side]["log_errors"]) == (False, [])
            assert (
                ends[side]["data_check"]["sampled"] > 0
                and ends[side]["data_check"]["missing"] + ends[side]["data_check"]["wrong"] == 0
            )
            assert ends[side]["rss_max_bytes"] > 10 << 20 and ends[side]["store_bytes_before"] > 0
    split = pinning(threads=1, wanted=OF_A_DUET)
    assert [run.machine["pinning"] for run in (first, second)] == [split.reason] * 2
    if len(os.sched_getaffinity(0)) > 1:
        assert split.generator and all("Using G1" in first.text(f"gc-{side}.log") for side in SIDES)
    found = duet_of([first, second], first.facts["comparison"])
    assert (found.a, found.b) == ("handler=selector", "handler=workers")
    assert project.processes() == []
    assert list((project.root / "data" / "work" / "stores").iterdir()) == []
    stacks = [first.text(f"cpu-{side}.collapsed") for side in SIDES]
    assert all("kv/http" in text for text in stacks)


def test_a_duet_of_which_no_launch_counts_does_not_end_as_if_it_had_an_answer(project):
    disturbed = UNDISTURBED.replace("lambda load: None", "lambda load: 'others used half of the CPU'")
    assert disturbed != UNDISTURBED
    path = experiment(project, **EMPTY_SIDES | {"compare": TINY_SLICES | {"within": "12s"}})
    code, out, err = project.finished(project.kvstudy("compare", path, code=disturbed))
    count = len(sealed_runs(project.raw))
    assert count and code == 1 and "the time is over" in out and "Traceback" not in err, out + err
    assert err.splitlines()[-2:] == [
        f"kvstudy: no launch counts, of {count}: others used the machine",
        "  when it is quiet: the same command with --resume --patience 30m",
    ]


@pytest.mark.parametrize(
    ("preset", "changes", "ended"),
    [
        ("smoke", {"machine": {"load_during": {"steal_share_mean": 0.5}}}, 0),
        ("full", {"machine": {"load_during": {"steal_share_mean": 0.5}}}, 1),
        ("smoke", {"ends": {"a": DuetMaker.end(), "b": DuetMaker.end(log_errors=["ERROR: no disk"])}}, 1),
    ],
)
def test_launches_that_others_disturbed_are_no_failure_in_smoke_alone(
    project, sealed, monkeypatch, capsys, preset, changes, ended
):
    launches = [sealed(1, preset=preset, **changes)]
    monkeypatch.setenv("KVSTUDY_ROOT", str(project.root))
    monkeypatch.setattr(
        compare, "compare", lambda one, *_, **__: compare.DuetInProgress(one, "c0ffee", launches, "over")
    )
    file = experiment(project, **EMPTY_SIDES, presets={"smoke": {}, "full": {}})
    assert exit_code_of(["compare", str(file), "--preset", preset]) == ended
    assert "no launch counts, of 1: " in capsys.readouterr().err


def test_a_duet_of_which_a_side_spoiled_every_launch_does_not_end_as_if_it_had_an_answer(
    project, sealed, monkeypatch, capsys
):
    ends = {"a": DuetMaker.end(), "b": DuetMaker.end(log_errors=["ERROR: no disk"])}
    launches = [sealed(1, ends=ends), sealed(2, ends=ends)]
    monkeypatch.setenv("KVSTUDY_ROOT", str(project.root))
    monkeypatch.setattr(
        compare, "compare", lambda one, *_, **__: compare.DuetInProgress(one, "c0ffee", launches, "over")
    )
    assert exit_code_of(["compare", str(experiment(project, **EMPTY_SIDES))]) == 1
    assert "no launch counts, of 2: 2 failed by change; the last one: log_clean_b" in capsys.readouterr().err


def test_ctrl_c_keeps_what_is_sealed_and_resume_goes_on_with_the_next_launch(project):
    # Longer slices than others': in 80 ms of both of a side's the generator may have no processor here.
    path = experiment(project, compare={"counted": "250ms"}, **EMPTY_SIDES)
    interrupting = (
        UNDISTURBED
        + """
import os, signal
from kvstudy.measure.duet_progress import DuetProgress
doing = DuetProgress.doing
def interrupting(self, phase):
    doing(self, phase)
    if phase == "get closed loop" and self._launch == 2:
        os.kill(os.getpid(), signal.SIGINT)
DuetProgress.doing = interrupting
"""
    )
    code, _, err = project.finished(project.kvstudy("compare", path, code=interrupting))
    assert code == 130 and err.splitlines()[-1] == "kvstudy: interrupted" and "Traceback" not in err
    assert "2 launches are sealed; the same command with --resume goes on from here in the time that" in err
    first, second = sealed_runs(project.raw)
    assert [run.facts["outcome"] for run in (first, second)] == [
        "completed",
        "failed: interrupted during get closed loop",
    ]
    assert len(slices_of(second)) == 4, "what was measured until then stays"
    assert verify(second.path) == [] and project.processes() == []
    code, _, err = project.finished(project.kvstudy("compare", path, "--resume", code=UNDISTURBED))
    assert code == 0 and "2 launches are sealed already and kept" in err
    assert len(sealed_runs(project.raw)) == 3, "an interrupted launch is none of the two that were asked for"
    third = sealed_runs(project.raw)[-1]
    assert (third.facts["launch"], third.facts["comparison"], third.facts["outcome"]) == (
        3,
        first.facts["comparison"],
        "completed",
    )
    without_measuring = """
from kvstudy.errors import KvstudyError
from kvstudy.measure import compare
def refuse(duet, *_rest):
    raise KvstudyError(f"duet {duet.identity} has {len(duet.launches)} launches")
compare._launches = refuse
"""
    code, _, err = project.finished(project.kvstudy("compare", path, code=without_measuring))
    assert code == 1 and " has 0 launches" in err and first.facts["comparison"] not in err, (
        "without --resume a new duet begins"
    )
    assert "nothing to resume" not in err
    again = project.kvstudy("compare", path, "--resume", "--label", "other", code=without_measuring)
    code, _, err = project.finished(again)
    assert code == 1 and " has 0 launches" in err
    assert "nothing to resume: of 3 launches under data/raw/trial none is of this comparison" in err


def test_a_side_that_dies_ends_the_launch_in_one_line_and_three_in_a_row_end_the_duet(project):
    path = experiment(project, **EMPTY_SIDES, rate=200, compare={"pairs": 40, "launches": 5})
    process = project.kvstudy("compare", path)
    session = project.root / "data" / "work" / "session.json"
    killed = set()
    while len(killed) < 3 and process.poll() is None:
        time.sleep(0.1)
        sides = [
            child
            for child in psutil.process_iter(["cmdline"])
            if f"{project.root}" in " ".join(child.info["cmdline"] or [])
            and "-Xmx64m" in child.info["cmdline"]
        ]
        is_loaded = session.exists() and session.read_text().count('"started"') == 4
        if sides and is_loaded and sides[0].pid not in killed:
            killed.add(sides[0].pid)
            sides[0].kill()
    code, _, err = project.finished(process)
    assert code == 1 and "Traceback" not in err
    assert (
        "3 launches in a row failed, the last one: side heap=64m: service died during get at the rate: "
        "signal 9"
    ) in err
    runs = sealed_runs(project.raw)
    assert len(runs) == 3 and project.processes() == []
    died = [[run.facts["ends"][side]["died"] for side in SIDES] for run in runs]
    assert died == [[False, True]] * 3, [run.facts["outcome"] for run in runs]


def test_a_launch_that_cannot_be_sealed_leaves_neither_process_nor_store(project):
    full = """
import errno, os
from kvstudy.record import run_folder
def full(*_arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
run_folder.os.fsync = full
"""
    path = experiment(project, workload="put", jvm={"heap": ["48m", "64m"]}, subject="kv-service")
    code, _, err = project.finished(project.kvstudy("compare", path, code=full))
    assert code == 1 and "disk full: could not" in err and "Traceback" not in err, err
    assert sealed_runs(project.raw) == [] and project.processes() == []
    assert list((project.root / "data" / "work" / "stores").iterdir()) == []


def test_a_side_that_does_not_start_is_that_sides_doing_and_a_profiler_that_fails_is_a_note(project):
    path = experiment(project, **EMPTY_SIDES, compare={"profile": ["cpu"], "profile_pairs": 1, "launches": 2})
    failing = (
        UNDISTURBED
        + """
from kvstudy.errors import RunFailed
from kvstudy.subject.evidence.profiler import AttachedProfiler
from kvstudy.subject.kv_service import OurProgram
from kvstudy.measure.duet_progress import DuetProgress
begin, launch = DuetProgress.begin, OurProgram.launch
def begun(self, number):
    begin(self, number)
    def refusing(program, place):
        if "-Xmx64m" in program._jvm_flags:
            raise RunFailed("service was not ready after 60 s")
        return launch(program, place)
    OurProgram.launch = refusing if number == 2 else launch
DuetProgress.begin = begun
def refused(*_):
    raise RunFailed("profiler refused: start: no perf events")
AttachedProfiler.start = refused
"""
    )
    _, _, err = project.finished(project.kvstudy("compare", path, code=failing))
    first, second = sealed_runs(project.raw)
    assert first.facts["outcome"] == "completed", err
    assert (first.facts["sampled_after"], first.facts["profile_note"]) == (
        None,
        "profiler refused: start: no perf events",
    )
    assert [first.facts["ends"][side]["fault"] for side in SIDES] == ["", ""]
    assert second.facts["outcome"] == "failed: side heap=64m: service was not ready after 60 s"
    assert second.facts["ends"]["b"]["fault"] == "service was not ready after 60 s"
    found = duet_of([second], second.facts["comparison"])
    assert (found.outside, found.lost.b) == (0, 1)


def test_an_answer_of_another_status_fails_the_launch(project):
    """Keys that nothing wrote: 404, where reading filled ones expects 200."""
    path = experiment(
        project,
        workload={"script": "get", "key_count": 2000},
        fill=2000,
        service={"handler": ["selector", "workers"]},
        jvm={"heap": "64m"},
        compare={"launches": 1},
    )
    delete = """
from kvstudy.measure import fill
restored = fill.Fills.restore
def emptied(self, configuration, store):
    store.mkdir(parents=True)
fill.Fills.restore = emptied
"""
    _, _, err = project.finished(project.kvstudy("compare", path, code=delete))
    run = sealed_runs(project.raw)[0]
    assert run.facts["outcome"].startswith("failed: unexpected answers: get: 404: "), err
    assert project.processes() == []


def test_the_side_that_alone_answers_another_status_is_named(project):
    foreign = [sys.executable, str(FOREIGN), "{port}", "{dir}"]
    paths = {"PUT": "/{key}", "GET": "/{key}"}
    path = experiment(
        project,
        subject=[
            {"name": "keeps", "command": foreign, "paths": paths},
            {"name": "loses", "command": [*foreign, "forgets"], "paths": paths},
        ],
        workload={"script": "get", "key_count": 50},
        fill=50,
        compare={"launches": 1},
    )
    code, _, err = project.finished(project.kvstudy("compare", path))
    assert code == 1 and "failed: unexpected answers: get: 404: " in err, err
    assert "; in measured slices subject=loses alone" in err, err
    assert project.processes() == []


@pytest.mark.parametrize(
    ("change", "arguments", "code", "told"),
    [
        ({}, [], 2, "one side only: trial varies no option"),
        (
            {"service": {"handler": ["selector", "workers", "virtual"]}},
            [],
            2,
            "two sides are compared, and the file has 3: handler=selector, ",
        ),
        (
            {"service": {"handler": ["selector", "workers", "virtual"]}},
            ["--baseline", "workers"],
            2,
            "--baseline takes KEY=VALUE: workers",
        ),
        ({}, ["--builds", "main", "."], 1, "revision cannot be built: main: not a git repository: "),
        (EMPTY_SIDES, ["--within", "3s"], 2, "--within 3s is shorter than one launch of both sides, about "),
        (EMPTY_SIDES, ["--primary", ""], 2, "no such measure: ''\n  measures: p50, p90, "),
        (
            EMPTY_SIDES,
            ["--primary", "p99_slice"],
            2,
            "no such measure: 'p99_slice'\n  did you mean p99-slice?",
        ),
        (EMPTY_SIDES, ["--primary", "worst"], 2, "no such measure: 'worst'\n  measures: p50, p90, "),
        (
            EMPTY_SIDES,
            ["--generators", "2"],
            2,
            "--generators needs --hosts",
        ),
        (
            {"subject": ["kv-service", "empty"], "workload": "missing_get"},
            [],
            2,
            "both sides of a duet get the same requests, and theirs differ: missing_get statuses: 404; 200",
        ),
        (EMPTY_SIDES, ["--same", "none"], 2, "not a percentage: 'none'; as 5%"),
        (EMPTY_SIDES, ["--workload", "put"], 2, "no run has this value: workload=put"),
        (
            EMPTY_SIDES | {"jvm": {"heap": ["48m", "9000g"]}},
            [],
            1,
            "not enough memory for both sides together: needed=",
        ),
    ],
)
def test_what_cannot_be_compared_is_told_in_one_line_before_anything_starts(
    project, monkeypatch, capsys, change, arguments, code, told
):
    monkeypatch.setenv("KVSTUDY_ROOT", str(project.root))
    assert (
        exit_code_of(["compare", str(experiment(project, **{"workload": "put"} | change)), *arguments])
        == code
    )
    assert told in capsys.readouterr().err
    assert not project.raw.exists()


def server_with_a_free_port_below():
    """A server on 127.0.0.1 whose port and the one below it nobody is given by chance: both lie under those
    that the kernel hands out, to servers at port 0 and to connections."""
    handed_out = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in range(handed_out - 1, 1024, -2):
        with suppress(OSError):
            socket.create_server(("127.0.0.1", port - 1)).close()
            return socket.create_server(("127.0.0.1", port))
    raise OSError(f"no two free ports under {handed_out}")


def test_a_port_that_one_side_needs_and_another_program_has_is_told(project, monkeypatch, capsys):
    monkeypatch.setenv("KVSTUDY_ROOT", str(project.root))
    with server_with_a_free_port_below() as taken:
        port = taken.getsockname()[1]
        for asked in (port, port - 1):
            assert exit_code_of(["compare", str(experiment(project, **EMPTY_SIDES, port=asked))]) == 2
            assert (
                f"port {port} is in use: two sides need ports {asked} and {asked + 1}\n"
            ) in capsys.readouterr().err


def test_a_disk_without_space_for_both_stores_is_told_of_the_folder_where_they_lie(
    project, monkeypatch, capsys
):
    monkeypatch.setenv("KVSTUDY_ROOT", str(project.root))
    usage = shutil.disk_usage
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(folder)._replace(free=0))
    path = experiment(project, workload="put", jvm={"heap": ["48m", "64m"]}, subject="kv-service")
    assert exit_code_of(["compare", str(path)]) == 1
    told = capsys.readouterr().err
    assert "not enough disk for both sides: needed=" in told
    assert f" free=0 B at {project.root / 'data' / 'work'}\n" in told and not project.raw.exists()


def test_two_builds_of_a_repository_are_compared_by_their_names(project):
    """The checkout beside a copy of it: what is built is built from git, the jar itself comes from this
    tree."""
    git = ["git", "-C", str(project.root), "-c", "user.name=t", "-c", "user.email=t@t"]
    (project.root / ".gitignore").write_text("data\n")
    for words in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "--all"],
        ["commit", "--quiet", "-m", "all"],
    ):
        subprocess.run([*git, *words], check=True)
    path = experiment(
        project, workload="put", jvm={"heap": "64m"}, compare={"launches": 1, "closed_pairs": 0}
    )
    code, _, err = project.finished(project.kvstudy("compare", path, "--builds", ".", ".", code=UNDISTURBED))
    assert code == 0, err
    (run,) = sealed_runs(project.raw)
    assert [run.facts["sides"][side]["name"] for side in SIDES] == [".", ". again"]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    assert {run.facts["sides"][side]["revision"] for side in SIDES} == {commit}
    jars = {run.text(f"service-{side}.cmd").split("-jar\n")[1].splitlines()[0] for side in SIDES}
    assert len(jars) == 1 and "/data/work/builds/checkout-" in jars.pop()
    code, _, err = project.finished(project.kvstudy("compare", path, "--builds", "mian", "."))
    assert code == 2 and "no such revision: mian" in err
