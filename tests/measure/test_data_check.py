"""The read-back of acknowledged keys, against a real HTTP server that keeps, loses or garbles them."""

import random
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

import pytest

from kvstudy.errors import RunFailed
from kvstudy.measure.data_check import check_data, key_of, required_keys, value_of, walk
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
            everything = b"".join(key.encode() + b"\n" + value for key, value in sorted(self.server.records.items()))
            value = everything if asked.path == "/v0/entities" else self.server.records.get(parse_qs(asked.query)["id"][0])
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


def test_all_acknowledged_keys_of_unique_put_are_found(server):
    asked = configuration("unique_put")
    server.records = records(walk(asked, position) for position in range(900))
    check = check_data(url_of(server), asked, acknowledged=900, lost=0, seed=1)
    assert (check.sampled, check.missing, check.wrong) == (200, 0, 0)


def test_lost_half_of_the_acknowledged_keys_is_noticed(server):
    asked = configuration("unique_put")
    server.records = records(walk(asked, position) for position in range(0, 900, 2))
    assert 60 < check_data(url_of(server), asked, acknowledged=900, lost=0, seed=1).missing < 140


def test_as_many_missing_keys_are_forgiven_as_answers_were_lost(server):
    asked = configuration("unique_put")
    check = check_data(url_of(server), asked, acknowledged=900, lost=150, seed=1)
    assert check.missing == 50


@pytest.mark.parametrize(("stored", "missing", "wrong"), [(900, 0, 0), (880, 20, 0), (905, 0, 0), (950, 0, 40)])
def test_closed_loop_of_unique_keys_is_counted_because_its_threads_keep_no_step(server, stored, missing, wrong):
    server.records = records(range(stored))
    check = check_data(url_of(server), configuration("unique_put", rate="closed"), acknowledged=900, lost=10, seed=1)
    assert (check.sampled, check.missing, check.wrong) == (900, missing, wrong)


def test_garbled_value_is_wrong_also_where_the_key_may_be_absent(server):
    asked = configuration("put")
    server.records = {key: value[:-1] + b"?" for key, value in records(range(0, 100_000, 2)).items()}
    check = check_data(url_of(server), asked, acknowledged=900, lost=0, seed=1)
    assert check.missing == 0 and 60 < check.wrong < 140


def test_filled_keys_must_all_be_there_after_reading(server):
    asked = configuration("get", fill=500)
    server.records = records(range(500))
    check = check_data(url_of(server), asked, acknowledged=900, lost=0, seed=1)
    assert (check.sampled, check.missing, check.wrong) == (200, 0, 0)


def test_nothing_is_asked_after_deletes(server):
    assert check_data(url_of(server), configuration("delete", fill=500), acknowledged=900, lost=0, seed=1) is None


def test_server_that_is_gone_is_an_error_not_a_pass():
    with pytest.raises(RunFailed, match="data check could not read back"):
        check_data("http://127.0.0.1:1", configuration("get", fill=500), acknowledged=900, lost=0, seed=1)


def test_repeated_put_is_asked_for_the_keys_of_its_cycle():
    asked = configuration({"script": "repeated_put", "key_count": 50})
    assert set(required_keys(asked, 900, random.Random(1))) <= set(range(50))


def test_walk_reaches_every_key_exactly_once_before_any_comes_again():
    asked = configuration("unique_put")
    count = asked.workload_args["key_count"]
    assert sorted(walk(asked, position) for position in range(count)) == list(range(count))
