"""The read-back of acknowledged keys, against a real HTTP server that keeps, loses or garbles them."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from urllib.parse import parse_qs, urlparse

import pytest

from kvstudy.errors import RunFailed
from kvstudy.measure import data_check
from kvstudy.measure.data_check import DataCheck, check_data, expected_keys
from kvstudy.measure.keys import key_of, requests, value_of, walk
from kvstudy.measure.outcome import Answers
from kvstudy.plan.experiment import Experiment
from kvstudy.plan.run_plan import configurations_of


def configuration(workload, **change):
    values = {"name": "trial", "question": "?", "expectation": "1 ms", "workload": workload, "connections": 2, "threads": 2, "rate": 100,
              "duration": "10s", "warm_up": "1s", "repeats": 1}
    return configurations_of(Experiment.from_parameters(values | change))[0]


@pytest.fixture
def server():
    """GET /v0/entity and /v0/entities over the dictionary ``server.records``."""
    class Handler(BaseHTTPRequestHandler):
        protocol_version, wbufsize = "HTTP/1.1", -1  # one packet per answer, so that no delayed acknowledgement is waited for

        def do_GET(self):
            asked = urlparse(self.path)
            records = self.server.records
            value = b"".join(key.encode() + b"\n" + records[key] for key in sorted(records)) if asked.path == "/v0/entities" else records.get(
                parse_qs(asked.query)["id"][0])
            self.send_response(200 if value is not None else 404)
            self.send_header("Content-Length", str(len(value or b"")))
            self.end_headers()
            self.wfile.write(value or b"")

        def log_message(self, *_arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.records = {}
        running.daemon_threads = True
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def url_of(server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def records(numbers, key_bytes=16, value_bytes=100):
    return {key_of(number, key_bytes): value_of(key_of(number, key_bytes), value_bytes) for number in numbers}


def test_key_and_value_are_those_of_the_workloads():
    assert key_of(42, 16) == "k000000000000042"
    assert value_of(key_of(42, 16), 24) == b"k000000000000042 abcdefg"
    assert len(value_of(key_of(42, 16), 100)) == 100


def answers(acknowledged, lost=0, threads=None, before=0):
    return Answers(acknowledged, lost, sent_by_thread=threads, before=before)


def check(server, asked, *arguments, **named):
    return check_data(url_of(server), asked, answers(*arguments, **named), seed=1)


def written(asked, *sent):
    """Records of a workload whose threads sent so many requests."""
    done = [request for thread, count in enumerate(sent) for request in islice(requests(asked, thread, seed=1), count)]
    return records({number for method, number in done if method == "PUT"})


@pytest.mark.parametrize("threads", [None, (450, 450), (890, 10)])
def test_all_acknowledged_keys_of_unique_put_are_found(server, threads):
    asked = configuration("unique_put")
    server.records = written(asked, *(threads or (450, 450)))
    assert check(server, asked, 900, threads=threads) == DataCheck(200, 0, 0)


def test_lost_half_of_the_acknowledged_keys_is_noticed(server):
    asked = configuration("unique_put")
    server.records = records(walk(asked, position) for position in range(0, 900, 2))
    assert 60 < check(server, asked, 900).missing < 140
    assert 40 < check(server, asked, 900, threads=(450, 450)).missing < 140


def test_loss_of_the_last_acknowledged_keys_is_noticed_where_each_thread_is_known(server):
    asked = configuration("unique_put")
    server.records = written(asked, 430, 450)
    assert check(server, asked, 900, threads=(450, 450)).missing > 0


def test_as_many_missing_keys_are_forgiven_as_answers_were_lost(server):
    asked = configuration("unique_put")
    all_missing = check(server, asked, 900).missing
    assert all_missing > 100 and check(server, asked, 900, lost=100).missing == all_missing - 100


@pytest.mark.parametrize(("stored", "missing", "wrong"), [(900, 0, 0), (880, 20, 0), (905, 0, 0), (950, 0, 36)])
def test_closed_loop_of_unique_keys_is_counted_where_threads_do_not_say_what_they_sent(server, stored, missing, wrong):
    server.records = records(range(stored))
    assert check(server, configuration("unique_put", rate="closed"), 900, lost=10) == DataCheck(900, missing, wrong)


def test_keys_of_a_warm_up_process_are_not_taken_for_keys_that_nobody_wrote(server):
    server.records = records(range(1200))
    asked = configuration("unique_put", rate="closed", generator="wrk")
    assert check(server, asked, 900, before=600) == DataCheck(900, 0, 0)
    assert check(server, asked, 900, before=100) == DataCheck(900, 0, 1200 - 900 - 100 - 4)
    assert check(server, asked, 1300) == DataCheck(1300, 100, 0)


def test_closed_loop_of_unique_keys_is_counted_and_read_back_where_threads_are_known(server):
    asked = configuration("unique_put", rate="closed")
    server.records = written(asked, 800, 100)
    assert check(server, asked, 900, threads=(800, 100)) == DataCheck(900 + 200, 0, 0)
    server.records = dict(list(server.records.items())[:-20]) | records(range(10**6, 10**6 + 20))
    assert check(server, asked, 900, threads=(800, 100)).missing > 0


@pytest.mark.parametrize("workload", ["put", {"script": "put", "distribution": "zipfian"}, {"script": "put", "distribution": "latest"},
                                      {"script": "mixed", "read_share": 0.5}])
@pytest.mark.parametrize("rate", [100, "closed"])
def test_drawn_keys_are_known_and_their_loss_is_noticed(server, workload, rate):
    asked = configuration(workload, rate=rate)
    server.records = written(asked, 700, 200)
    assert check(server, asked, 900, threads=(700, 200)) == DataCheck(200, 0, 0)
    server.records = dict(list(server.records.items())[::2])
    assert check(server, asked, 900, threads=(700, 200)).missing > 20


def test_of_a_long_run_the_first_draws_are_asked_for(server, monkeypatch):
    monkeypatch.setattr(data_check, "DRAWS_MAX", 300)
    asked = configuration("put")
    server.records = written(asked, 233, 66)
    assert check(server, asked, 900, threads=(700, 200)) == DataCheck(200, 0, 0)


def test_garbled_value_is_wrong_also_where_the_key_may_be_absent(server):
    asked = configuration("put", rate="closed", generator="wrk")
    server.records = {key: value[:-1] + b"?" for key, value in records(range(0, 100_000, 2)).items()}
    found = check(server, asked, 900)
    assert found.missing == 0 and 60 < found.wrong < 140


def test_filled_keys_must_all_be_there_after_reading(server):
    server.records = records(range(500))
    assert check(server, configuration("get", fill=500), 900) == DataCheck(200, 0, 0)
    server.records = records(range(250))
    assert check(server, configuration("get", fill=500), 900).missing > 50


def test_deleted_keys_must_be_gone_and_the_others_there(server):
    asked = configuration("delete", fill=500)
    deleted = {number for thread in (0, 1) for _, number in islice(requests(asked, thread, seed=1), 200)}
    server.records = records(set(range(500)) - deleted)
    assert check(server, asked, 400, threads=(200, 200)) == DataCheck(400, 0, 0)
    server.records = records(range(500))
    assert check(server, asked, 400, threads=(200, 200)).wrong > 50, "none of them is gone"
    server.records = {}
    assert check(server, asked, 400, threads=(200, 200)).missing > 50, "the spared ones are gone too"


def test_deletes_of_a_generator_that_keeps_step_are_asked_for_too(server):
    asked = configuration("delete", fill=500, generator="wrk2")
    server.records = records(range(500))
    assert check(server, asked, 400).wrong > 50


def test_server_that_is_gone_is_an_error_not_a_pass():
    with pytest.raises(RunFailed, match="data check could not read back"):
        check_data("http://127.0.0.1:1", configuration("get", fill=500), answers(900), seed=1)


def test_repeated_put_is_asked_for_the_keys_of_its_cycle():
    asked = configuration({"script": "repeated_put", "key_count": 50})
    assert set(expected_keys(asked, answers(900), seed=1).there) <= set(range(50))


def test_walk_reaches_every_key_exactly_once_before_any_comes_again():
    asked = configuration("unique_put")
    count = asked.workload_args["key_count"]
    assert sorted(walk(asked, position) for position in range(count)) == list(range(count))
