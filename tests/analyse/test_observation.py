"""From the files of one run to its rows."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from run_maker import RunMaker, encoded

from kvstudy.analyse import conditions, evidence, schema
from kvstudy.analyse.observation import observe, variant
from kvstudy.record import hdr

TEXTS = Path(__file__).parents[1] / "record" / "wrk2_texts"


def verdicts(rows):
    return {row["check"]: row["verdict"] for row in rows["validity"]}


def percentiles(rows, kind="response"):
    return {
        row["percentile"]: row["latency_us"] for row in rows["percentiles"] if row["latency_kind"] == kind
    }


def test_a_good_run_has_rows_in_every_table_with_the_schemas_columns(make_run):
    event = {
        "kind": "flush",
        "start_utc": "2026-11-20T20:42:26.500Z",
        "duration_ms": 40,
        "attributes": {"bytes": 7},
    }
    rows = observe(
        make_run(events=[event], stacks={"cpu": "a;b 3\na 1\n"}, variant={"wal": "os", "handler": "workers"})
    )
    assert set(rows) == set(schema.TABLES)
    slowest = rows.pop("slowest")
    assert {name: len(column) for name, column in slowest.items()} == dict.fromkeys(
        schema.names("slowest"), 10
    )
    for table, found in rows.items():
        assert found and all(list(sorted(row)) == sorted(schema.names(table)) for row in found), table
    (run,) = rows["runs"]
    assert run["verdict"] == "PASS", verdicts(rows)
    assert (run["variant"], run["requests_measured"], run["achieved_rate_rps"]) == (
        "handler=workers wal=os",
        12_000,
        2000.0,
    )
    assert (run["service_cpu_share"], run["service_rss_max_bytes"], run["service_cpu_us_per_answer"]) == (
        0.5,
        150_000_000,
        250.0,
    )


def test_cpu_of_an_answer_leaves_the_compilers_out_or_else_the_half_in_which_they_work():
    hundred = hdr.decode(encoded([7] * 100))
    process = {
        "second": np.array([-1, 0, 1, 2, 3, 4]),
        "service_cpu_s": np.array([9.0, 0.9, 0.5, 0.1, 0.1, 0.1]),
    }
    seconds = [(second, hundred) for second in range(5)]
    assert evidence.cpu_us_per_answer(process, seconds, 5.0) == pytest.approx(1000.0)
    assert math.isnan(evidence.cpu_us_per_answer(process, [], 5.0))
    assert math.isnan(evidence.cpu_us_per_answer(process, seconds, 1.0))
    apart = process | {"service_jit_cpu_s": np.array([5.0, 0.8, 0.4, 0.0, 0.0, 0.0])}
    assert evidence.cpu_us_per_answer(apart, seconds, 5.0) == pytest.approx(1000.0)
    missing = {name: values[:-1] for name, values in process.items()}
    assert math.isnan(evidence.cpu_us_per_answer(missing, seconds, 5.0))


def test_a_run_of_the_empty_server_says_so(make_run):
    assert observe(make_run("a", server="empty"))["runs"][0]["server"] == "empty"
    assert observe(make_run("b"))["runs"][0]["server"] == "kv-service"


def answer_of_a_trial(make_run, run_id, result=None, **changes):
    """The cell ``answer`` of a run that a search made, whose generator's own result says ``result`` beside
    the usual."""
    search = {"purpose": "confirm", "confirmations": 3, "objective": {"mean": 0.001, "achieved_share": 0.99}}
    run = make_run(run_id, search=search, **changes)
    if result is not None:
        usual = json.loads(run.text("generator.json"))
        usual |= {
            "offered_rate_rps": 2000,
            "response_time": usual["response_time"] | {"mean_us": 200, "percentiles": {}},
            **result,
        }
        run = make_run(run_id + "-told", search=search, more={"generator.json": json.dumps(usual)}, **changes)
    return observe(run)["runs"][0]["answer"]


def test_a_trial_says_what_it_said_to_its_search(make_run):
    assert answer_of_a_trial(make_run, "a", {}) == "held"
    assert answer_of_a_trial(make_run, "b", {"achieved_rate_rps": 1900}) == "missed"
    assert (
        answer_of_a_trial(make_run, "c", {"verdict": {"generator_saturated": True, "reason": "late"}})
        == "unknown"
    )
    assert answer_of_a_trial(make_run, "d", {}, outcome="failed: data check") == "unknown"
    assert answer_of_a_trial(make_run, "e", more={"generator.json": "{"}) == "unknown"
    assert observe(make_run("f"))["runs"][0]["answer"] == ""


def test_percentiles_are_those_of_the_merged_seconds(make_run):
    run = make_run()
    rows = observe(run)
    merged = hdr.merge(
        hdr.decode(row["histogram"]) for row in rows["intervals"] if row["latency_kind"] == "response"
    )
    found = percentiles(rows)
    for percentile in (50.0, 99.0, 99.9, 100.0):
        assert found[percentile] == merged.percentile_us(percentile)
    assert [row["percentile"] for row in rows["percentiles"] if row["latency_kind"] == "response"] == sorted(
        found
    )


def test_a_log_of_quarters_of_a_second_gives_the_run_that_whole_seconds_give(make_run):
    """What is worked out by the second, checks, costs, stops and medians, is as of seconds."""
    seconds = RunMaker.usual_seconds("a")
    seconds[3] = np.concatenate([seconds[3], np.full(16, 900_000)])  # all connections stood still
    usual = observe(make_run("a", seconds=seconds))
    finer = observe(make_run("b", seconds=seconds, parts=4))
    rows, quarters = usual["intervals"], finer["intervals"]
    assert (len(quarters), {row["length_s"] for row in quarters}) == (4 * len(rows), {0.25})
    assert [row["start_s"] for row in quarters[:15:3]] == [0, 0.25, 0.5, 0.75, 1]
    assert [row["second"] for row in quarters[::12]] == [0, 1, 2, 3, 4, 5]
    for kind in ("response", "service", "lateness"):
        whole, cut = (
            hdr.merge(hdr.decode(row["histogram"]) for row in of if row["latency_kind"] == kind)
            for of in (rows, quarters)
        )
        grid = (0, 50, 90, 99, 99.9, 99.99, 100)
        assert whole.percentiles_us(grid).tolist() == cut.percentiles_us(grid).tolist()
    for table in ("percentiles", "events", "validity", "runs"):
        assert told(usual[table]) == told(finer[table]), table
    assert any(event["kind"] == "service_stopped" for event in finer["events"])


def told(rows: list[dict]) -> list[str]:
    return [str({name: value for name, value in row.items() if name != "run_id"}) for row in rows]


def test_a_log_of_no_known_length_is_told_in_one_line_and_spares_the_rest(make_run):
    log = RunMaker.hlog(RunMaker.usual_seconds("a"), 4).replace(",0.250,", ",0.240,")
    rows = observe(make_run(more={"latency.hlog": log}, without=("latency.hlog",)))
    (readable,) = [row for row in rows["validity"] if row["check"] == "readable"]
    assert readable["verdict"] == "FAIL" and "\n" not in readable["observed"]
    assert readable["observed"].startswith("latency.hlog:4: an interval of 0.240 s, which does not fit")
    assert not rows["intervals"] and rows["percentiles"] and rows["runs"][0]["achieved_rate_rps"] == 2000


def test_a_percentile_with_fewer_than_ten_samples_beyond_is_not_printed(make_run):
    rows = observe(make_run())
    found = percentiles(rows)
    assert not np.isnan(found[99.9])  # 12 of 12 000 lie beyond
    assert np.isnan(found[99.95]) and np.isnan(found[99.999])
    assert not np.isnan(found[100.0])
    beyond = {
        row["percentile"]: row["samples_beyond"]
        for row in rows["percentiles"]
        if row["latency_kind"] == "response"
    }
    assert (beyond[99.9], beyond[99.95], beyond[100.0]) == (12, 6, 0)


def test_the_generators_own_lateness_is_a_kind_of_its_own_where_it_is_told_apart(make_run):
    """Send lateness has the wait for a busy connection in it, which is the service's."""
    waited = {"count": 12_000, "histogram_v2_base64": encoded([900] * 12_000)}
    rows = observe(make_run("a", counted={"send_lateness": waited}))
    assert (percentiles(rows, "own_lateness")[99.0], percentiles(rows, "lateness")[99.0]) == (3.0, 900.0)
    assert rows["runs"][0]["lateness_p99_us"] == 900.0
    assert not percentiles(
        observe(make_run("b", counted={"own_lateness": {"count": 0, "histogram_v2_base64": encoded([])}})),
        "own_lateness",
    )  # a closed loop
    older = json.loads(make_run("c").text("generator.json"))
    del older["own_lateness"]
    rows = observe(make_run("d", more={"generator.json": json.dumps(older)}, without=("generator.json",)))
    assert percentiles(rows, "lateness") and not percentiles(rows, "own_lateness")


def test_events_and_seconds_count_from_the_first_measured_second(make_run):
    events = [
        {"kind": "gc_pause", "start_utc": f"2026-11-20T20:42:{stamp}Z", "duration_ms": 3, "attributes": {}}
        for stamp in ("24.250", "27.500")
    ]
    rows = observe(make_run(events=events))
    assert [row["start_s"] for row in rows["events"]] == [-0.75, 2.5]
    assert sorted({row["second"] for row in rows["intervals"]}) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        (None, "one machine"),
        ({"service": "a", "generators": ["b", "c"]}, "service on a, loaded by b and c"),
        ({"service": "a", "generators": ["a"]}, "service and generator on a"),
        ({"service": "", "generators": ["b"]}, "service at its address, loaded by b"),
    ],
)
def test_a_run_says_where_it_ran(make_run, hosts, told):
    rows = observe(make_run(**({"hosts": hosts} if hosts else {})))
    assert conditions.hosts_in_words(rows["runs"][0]["hosts"]) == told


def test_what_others_took_on_a_generators_host_disturbs_a_run_as_on_the_services(make_run):
    """process.csv is of the service's host."""
    load = {"steal_share_mean": 0.3, "foreign_cpu_share_mean": 0.0}
    more = {"machine.json": json.dumps({"load_during": load})}
    hosts = {"service": "a", "generators": ["b"]}
    verdicts = {
        name: {row["check"]: row["verdict"] for row in observe(run)["validity"]}["no_steal"]
        for name, run in (
            ("over", make_run("one", hosts=hosts, more=more)),
            ("here", make_run("two", more=more)),
        )
    }
    assert verdicts == {"over": "FAIL", "here": "PASS"}


def test_runs_of_another_machine_that_has_the_name_of_a_host_now_are_no_repeats(make_run):
    hosts = {"service": "a", "generators": ["b"]}

    def of(name, **ids):
        facts = {host: {"cores": 2, "machine_id": known} for host, known in ids.items()}
        more = {"machine.json": json.dumps({"cores": 2, "hosts": facts})}
        return observe(make_run(name, hosts=hosts, more=more))["runs"][0]["hosts"]

    first = of("one", a="1", b="2")
    assert of("two", a="1", b="2") == first
    others = [of("three", a="9", b="2"), of("four", a="1", b="9"), of("five", a=None, b=None)]
    assert len({first, *others}) == 4
    assert {conditions.hosts_in_words(one) for one in (first, *others)} == {"service on a, loaded by b"}


def test_an_event_shorter_than_the_clocks_of_two_hosts_agree_is_no_cause(make_run):
    """Over a network the service's host notes events by a clock of its own."""
    events = [
        {"kind": kind, "start_utc": "2026-11-20T20:42:27.500Z", "duration_ms": length, "attributes": {}}
        for kind, length in (("flush", 3), ("compaction", 30))
    ]
    clocks = {
        when: {"a": {"offset_us": 250_000.0, "bound_us": bound, "round_trip_us": bound}}
        for when, bound in (("before", 40.0), ("after", 9_000.0))
    }
    hosts = {"service": "a", "generators": ["b"]}
    machine = json.dumps({"clocks": {"reference": "b", **clocks}})
    run = make_run(events=events, hosts=hosts, more={"machine.json": machine})
    assert [row["kind"] for row in observe(run)["events"]] == ["compaction"]


def test_a_run_that_read_nothing_back_warns_and_one_that_lost_data_fails(make_run):
    assert verdicts(observe(make_run("a", data_check=None)))["data_kept"] == "WARN"
    assert (
        verdicts(observe(make_run("b", data_check={"sampled": 9, "missing": 1, "wrong": 0})))["data_kept"]
        == "FAIL"
    )


def _profiler(start: str, stop: str) -> dict:
    """Of a run whose six measured seconds begin at 20:42:25."""
    return {
        "cpu_engine": "perf_events",
        "start_utc": f"2026-11-20T{start}Z",
        "stop_utc": f"2026-11-20T{stop}Z",
    }


@pytest.mark.parametrize(
    ("check", "verdict", "how"),
    [
        ("rate_held", "FAIL", {"offered_rate_rps": 2030}),
        ("no_errors", "FAIL", {"counted": {"errors": {"read": 2}}}),
        ("answers_expected", "FAIL", {"counted": {"counts": {"unexpected": 5}}}),
        (
            "generator_not_saturated",
            "WARN",
            {
                "counted": {
                    "verdict": {"generator_saturated": None, "reason": None, "distorted_percentiles": []}
                }
            },
        ),
        (
            "generator_not_saturated",
            "WARN",
            {"counted": {"verdict": {"generator_saturated": False, "reason": "connections: 1 was busy"}}},
        ),
        (
            "generator_not_saturated",
            "WARN",
            {
                "counted": {
                    "verdict": {
                        "generator_saturated": False,
                        "reason": None,
                        "distorted_percentiles": ["99.9"],
                    }
                }
            },
        ),
        (
            "generator_not_saturated",
            "FAIL",
            {"counted": {"verdict": {"generator_saturated": True, "reason": "late without cause"}}},
        ),
        ("no_foreign_load", "FAIL", {"process": {"foreign_cpu_share": 0.4}}),
        ("no_steal", "WARN", {"process": {"steal_share": 0.02}}),
        ("no_throttling", "FAIL", {"process": {"throttled_s": 0.2}}),
        ("service_healthy", "FAIL", {"log": "java.lang.IllegalStateException: no\n"}),
        (
            "warm_up_long_enough",
            "WARN",
            {"seconds": [[400] * 2000] * 2 + [[200] * 2000] * 2 + [[100] * 2000] * 2},
        ),
        ("samples", "FAIL", {"seconds": [[100] * 100] * 6, "offered_rate_rps": 100}),
        (
            "events_recorded",
            "WARN",
            {"subject": {"command": ["java"], "jvm": True}, "without": ["events.json"]},
        ),
        ("events_recorded", "PASS", {"subject": {"command": ["java"], "jvm": True}}),
        (
            "events_recorded",
            "WARN",
            {"subject": {"url": "http://h:1", "jvm": True}, "without": ["events.json"]},
        ),
        (
            "profile_whole",
            "FAIL",
            {"profile": ["cpu"], "profiler": _profiler("20:42:27.000", "20:42:31.010")},
        ),
        (
            "profile_whole",
            "FAIL",
            {"profile": ["cpu"], "profiler": _profiler("20:42:24.600", "20:42:30.500")},
        ),
        (
            "profile_whole",
            "PASS",
            {"profile": ["cpu"], "profiler": _profiler("20:42:25.100", "20:42:31.010")},
        ),
        ("profile_whole", "WARN", {"profile": ["cpu"], "profiler": {"cpu_engine": "perf_events"}}),
    ],
)
def test_what_is_wrong_with_a_run_is_found_in_its_files(make_run, check, verdict, how):
    found = verdicts(observe(make_run(**how)))
    assert found.pop(check) == verdict
    assert set(found.values()) == {"PASS"}


def test_a_failed_run_is_kept_and_says_why(make_run):
    missing = ("generator.json", "latency.hlog", "process.csv", "events.json")
    rows = observe(make_run(outcome="failed: the service died", without=missing, phases={}))
    (run,) = rows["runs"]
    assert (run["verdict"], run["outcome"]) == ("FAIL", "failed: the service died")
    assert np.isnan(run["achieved_rate_rps"]) and run["requests_measured"] is None
    assert verdicts(rows)["completed"] == "FAIL" and verdicts(rows)["readable"] == "PASS"


@pytest.mark.parametrize(
    ("how", "file"),
    [
        ({"counted": {"counts": {"sent": None}}}, "generator.json"),
        ({"stacks": {"cpu": "nonsense\n"}}, "cpu.collapsed"),
        ({"events": [{"kind": "flush"}]}, "events.json"),
        ({"process": {"steal_share": "much"}}, "process.csv"),
    ],
)
def test_a_file_that_cannot_be_read_fails_the_run_by_name_and_spares_the_rest(make_run, how, file):
    rows = observe(make_run(**how))
    (readable,) = [row for row in rows["validity"] if row["check"] == "readable"]
    assert readable["verdict"] == "FAIL" and readable["observed"].startswith(file)
    assert len(rows["intervals"]) == 18


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda path: (path / "service.log").write_text("nothing happened\n"),
            "service.log: changed after sealing",
        ),
        (lambda path: (path / "machine.json").unlink(), "machine.json: missing"),
        (lambda path: (path / "cpu.collapsed").write_text("a;b 1\n"), "cpu.collapsed: added after sealing"),
    ],
    ids=["changed", "missing", "added"],
)
def test_a_run_that_is_not_as_it_was_sealed_is_in_no_median(make_run, change, told):
    run = make_run()
    for path in (run.path, *run.path.iterdir()):
        path.chmod(0o755)
    change(run.path)
    rows = observe(run)
    (readable,) = [row for row in rows["validity"] if row["check"] == "readable"]
    assert readable["verdict"] == "FAIL" and readable["observed"].startswith(told)
    assert rows["runs"][0]["excluded"] == "outside"


def wrk2_run(make_run, text, **facts):
    return observe(
        make_run(
            without=("generator.json", "latency.hlog"),
            text=(TEXTS / text).read_text(),
            generator="wrk2",
            seconds=[[100] * 10] * 14,  # as long as the texts say
            **facts,
        )
    )


def test_a_wrk2_run_is_read_from_its_text(make_run):
    rows = wrk2_run(make_run, "uncorrected.txt", connections=10, threads=2, offered_rate_rps=3000)
    (run,) = rows["runs"]
    assert (run["achieved_rate_rps"], run["requests_measured"], run["errors_total"]) == (2998.06, 11_924, 0)
    assert percentiles(rows)[99.0] == 1490 and percentiles(rows, "service")[50.0] == 43
    assert np.isnan(percentiles(rows)[99.99])
    assert run["verdict"] == "WARN" and verdicts(rows)["generator_not_saturated"] == "WARN"


def test_connections_that_wrk2_drops_fail_the_run(make_run):
    found = verdicts(wrk2_run(make_run, "no-latency.txt", connections=5, threads=2, offered_rate_rps=1000))
    assert found["connections_opened"] == "FAIL" and found["rate_held"] == "PASS"


def test_variants_are_written_in_the_order_of_their_names():
    assert variant({"wal": "os", "handler": "workers"}) == "handler=workers wal=os"
    assert variant({}) == ""


def test_attributes_are_json(make_run):
    event = {
        "kind": "flush",
        "start_utc": "2026-11-20T20:42:26.500Z",
        "duration_ms": 40,
        "attributes": {"level": 0, "bytes": 7},
    }
    assert json.loads(observe(make_run(events=[event]))["events"][0]["attributes"]) == {
        "bytes": 7,
        "level": 0,
    }


def test_a_third_of_the_window_without_an_answer_has_no_cpu_per_answer():
    nothing, usual = (hdr.decode(encoded(values)) for values in ([], [300] * 500))
    process = {
        "second": np.arange(6.0),
        "service_cpu_s": np.full(6, 0.5),
        "service_jit_cpu_s": np.zeros(6),
    }
    seconds = [(second, nothing if second < 2 else usual) for second in range(6)]
    with np.errstate(all="raise"):
        first, last = evidence.thirds(seconds, process, 6.0)["third_cpus_us"]
    assert math.isnan(first) and last == 1000.0
