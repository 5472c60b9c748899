"""The read-back of acknowledged writes, against a real HTTP server that keeps, loses or garbles them."""

import hashlib
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

import pytest
import trial
from serving import serving

from kvstudy.errors import RunFailed
from kvstudy.measure import data_check
from kvstudy.measure.data_check import DataCheck, check_data
from kvstudy.measure.keys import key_of, value_of
from kvstudy.measure.outcome import Answers
from kvstudy.subject import kv_service
from kvstudy.subject.kv_service import count_records


def configuration(workload, **change):
    load = {"workload": workload, "connections": 2, "threads": 2, "rate": 100, "duration": "10s"}
    return trial.configuration(**load | change)


@pytest.fixture
def server():
    """GET /v0/entity and /v0/entities over the dictionary ``server.records``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version, wbufsize = (
            "HTTP/1.1",
            -1,
        )  # one packet per answer, so that no delayed acknowledgement is waited for

        def do_GET(self):
            asked = urlparse(self.path)
            records = self.server.records
            value = (
                b"".join(key.encode() + b"\n" + records[key] for key in sorted(records))
                if asked.path == "/v0/entities"
                else records.get(parse_qs(asked.query)["id"][0])
            )
            self.send_response(self.server.found if value is not None else 404)
            self.send_header("Content-Length", str(len(value or b"")))
            self.end_headers()
            self.wfile.write(value or b"")

        def log_message(self, *_arguments):
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as running:
        running.records, running.found = {}, 200
        yield running


def url_of(server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


@dataclass
class Live:
    """A live subject, as far as it is asked."""

    url: str

    def count_records(self) -> int:
        return count_records(self.url)


def records(numbers, key_bytes=16, value_bytes=100):
    return {key_of(number, key_bytes): value_of(key_of(number, key_bytes), value_bytes) for number in numbers}


def test_key_and_value_are_those_of_the_workloads():
    assert key_of(42, 16) == "k000000000000042"
    assert value_of(key_of(42, 16), 24) == b"k000000000000042 abcdefg"
    assert len(value_of(key_of(42, 16), 100)) == 100


def sampled(key, method="PUT", body=None, status=None):
    """One entry of loadgen's sample; of a PUT with the workloads' value, if no other is given."""
    body = value_of(key, 100) if body is None and method == "PUT" else body
    return {
        "thread": 0,
        "connection": 0,
        "method": method,
        "target": f"/v0/entity?id={key}",
        "status": status or {"PUT": 201, "DELETE": 202}.get(method, 200),
        "body_bytes": len(body or b""),
        "body_sha256": hashlib.sha256(body).hexdigest() if body else None,
    }


def writes(numbers, method="PUT", **named):
    return [sampled(key_of(number, 16), method, **named) for number in numbers]


def check(server, asked, sample=(), acknowledged=900, lost=0, before=0):
    return check_data(
        Live(url_of(server)), asked, Answers(acknowledged, lost, before=before, sample=tuple(sample)), seed=1
    )


@pytest.fixture(params=["to its end", "cut"])
def ranged(request):
    """Answers ranges from a start on, in chunks of an entry; cut: of 7 000 entries at most, and no end."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version, wbufsize = "HTTP/1.1", 1 << 20

        def do_GET(self):
            start = parse_qs(urlparse(self.path).query)["start"][0]
            self.server.starts.append(start)
            wanted = [key for key in sorted(self.server.records) if key >= start]
            is_cut = request.param == "cut" and len(wanted) > 7_000
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for key in wanted[:7_000] if is_cut else wanted:
                entry = key.encode() + b"\n" + self.server.records[key]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(entry), entry))
            self.wfile.write(b"" if is_cut else b"0\r\n\r\n")
            self.close_connection = is_cut

        def log_message(self, *_arguments):
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as running:
        running.records, running.starts = {}, []
        yield running


@pytest.mark.parametrize("count", [0, 1, 30_000])
def test_more_records_than_the_service_sends_in_one_answer_are_counted_in_parts(ranged, monkeypatch, count):
    monkeypatch.setattr(kv_service, "COUNT_PART_S", 0.0)
    ranged.records = records(range(count))
    assert count_records(url_of(ranged)) == count
    assert len(ranged.starts) >= (4 if count > 1 else 1)


def test_sampled_writes_that_are_there_pass(server):
    server.records = records(range(900))
    assert check(server, configuration("put"), writes(range(0, 900, 9))) == DataCheck(100, 0, 0, 100)


def test_of_a_slow_service_as_much_is_read_back_as_there_is_time_for_and_its_own_writes_first(
    server, monkeypatch
):
    monkeypatch.setattr(data_check, "READ_BACK_S", 0.0)
    server.records = records(range(10))
    found = check(server, configuration("mixed"), writes(range(10)))
    assert (found.sampled, found.written, found.missing, found.wrong) == (1, 1, 0, 0)


def test_every_sampled_write_that_is_not_there_is_missing_however_many_answers_were_lost(server):
    server.records = records(range(0, 900, 2))
    assert check(server, configuration("put"), writes(range(100)), lost=1000) == DataCheck(100, 50, 0, 100)


def test_a_subject_may_say_that_it_answers_get_with_another_status_and_then_200_is_wrong(server):
    subject = {"url": "http://127.0.0.1:1", "statuses": {"GET": 203}}
    server.records = records(range(100))
    for status, wrong in ((203, 0), (200, 100)):
        server.found = status
        found = check(server, configuration("put", subject=subject), writes(range(100)))
        assert found == DataCheck(100, 0, wrong, 100)


@pytest.mark.parametrize("body", [b"", b"k000000000000007 other letters"])
def test_another_value_than_the_one_sent_is_wrong(server, body):
    server.records = records(range(100)) | {key_of(7, 16): body}
    assert check(server, configuration("put"), writes(range(100))) == DataCheck(100, 0, 1, 100)


def test_an_empty_value_is_read_back_as_any_other(server):
    server.records = {key_of(1, 16): b""}
    assert check(server, configuration("put"), writes([1], body=b"")) == DataCheck(1, 0, 0, 1)
    server.records = {key_of(1, 16): b"?"}
    assert check(server, configuration("put"), writes([1], body=b"")) == DataCheck(1, 0, 1, 1)


def test_of_a_key_written_with_two_values_either_is_right_and_a_third_is_wrong(server):
    both = writes([1], body=b"first") + writes([1], body=b"second")
    for value, wrong in ((b"first", 0), (b"second", 0), (b"third", 1)):
        server.records = {key_of(1, 16): value}
        assert check(server, configuration("put"), both) == DataCheck(1, 0, wrong, 1)


def test_where_verify_asks_for_what_nobody_can_read_back_the_run_fails_and_says_so(server):
    asked = configuration("put", verify={"sample": 50})
    with pytest.raises(RunFailed, match="nothing can be read back, as verify asks: of POST nobody knows"):
        check(server, asked, writes(range(50), "POST"))
    server.records = records(range(50))
    assert check(server, asked, writes(range(50), "POST") + writes([1])) == DataCheck(1, 0, 0, 1)
    assert check(server, configuration("put"), writes(range(50), "POST")) is None


def test_refused_writes_and_reads_are_not_asked_for(server):
    refused = (
        writes(range(50), status=503) + writes(range(50), "GET") + writes(range(50), "DELETE", status=500)
    )
    assert check(server, configuration("put"), refused) is None


def test_what_cannot_be_asked_for_is_not_recorded_as_good(server):
    assert check(server, configuration("put")) is None, "a result without a sample"
    assert check(server, configuration("put", generator="wrk2")) is None
    assert check(server, configuration("delete", fill=500, generator="wrk2"), acknowledged=600) is None, (
        "as many were deleted as there were"
    )


def test_where_a_run_writes_and_deletes_a_key_may_be_absent_but_not_garbled(server):
    sample = writes(range(50)) + writes(range(50, 60), "DELETE")
    server.records = records(range(0, 60, 2))
    assert check(server, configuration("put"), sample) == DataCheck(50, 0, 0, 50)
    server.records = {key_of(3, 16): b"garbled"}
    assert check(server, configuration("put"), sample) == DataCheck(50, 0, 1, 50)


def test_mixed_load_on_a_filled_store_is_asked_for_the_fill_and_for_what_it_wrote(server):
    asked = configuration({"script": "mixed", "read_share": 0.5}, fill=500)
    server.records = records(range(1000))
    found = check(server, asked, writes(range(500, 600)) + writes(range(20), "GET"))
    assert 200 < found.sampled <= 300 and (found.missing, found.wrong, found.written) == (0, 0, 100)
    server.records = records(range(500))
    assert check(server, asked, writes(range(500, 600))).missing == 100, "what was written"
    server.records = records(range(500, 1000))
    assert check(server, asked, writes(range(500, 600))).missing > 100, "the fill"


@pytest.mark.parametrize(
    ("stored", "missing", "wrong"), [(900, 0, 0), (880, 20, 0), (905, 0, 0), (950, 0, 40)]
)
def test_closed_loop_of_unique_keys_is_counted(server, stored, missing, wrong):
    server.records = records(range(stored))
    assert check(server, configuration("unique_put", rate="closed"), lost=10) == DataCheck(
        900, missing, wrong, 900
    )


def test_closed_loop_of_unique_keys_is_counted_and_read_back(server):
    server.records = records(range(10, 900)) | records(range(10**6, 10**6 + 10))
    assert check(server, configuration("unique_put", rate="closed"), writes(range(100))) == DataCheck(
        900 + 100, 10, 0, 900 + 100
    )


def test_unique_keys_of_wrk2_are_counted_at_a_constant_rate_too(server):
    server.records = records(range(850))
    assert check(server, configuration("unique_put", generator="wrk2")) == DataCheck(900, 50, 0, 900)


def test_keys_of_a_warm_up_process_are_not_taken_for_keys_that_nobody_wrote(server):
    server.records = records(range(1200))
    asked = configuration("unique_put", rate="closed", generator="wrk")
    assert check(server, asked, before=300) == DataCheck(1200, 0, 0, 1200)
    assert check(server, asked, before=100) == DataCheck(1000, 0, 1200 - 900 - 100 - 4, 1000)
    assert check(server, asked, acknowledged=1300) == DataCheck(1300, 100, 0, 1300)


@pytest.mark.parametrize(
    ("change", "acknowledged"),
    [
        ({"rate": "closed", "generator": "wrk"}, 900 + 600),
        ({"rate": 100, "generator": "wrk2", "warm_up": "6s", "duration": "16s"}, 900 + 600),
        ({"rate": 100, "generator": "wrk2", "warm_up": "6s", "duration": "15s", "keys": 1500}, 900 + 600),
        ({"rate": "closed", "generator": "wrk", "keys": 550_000}, 900 + 600),
        # The warm-up wrote some of those that were measured, or one thread may have come round.
        ({"rate": 100, "generator": "wrk2", "warm_up": "5s", "duration": "14s", "keys": 1400}, 900),
        ({"rate": "closed", "generator": "wrk", "keys": 1600}, 900),
    ],
)
def test_a_lost_write_of_the_warm_up_process_is_missing_too(server, change, acknowledged):
    keys = {"key_count": change.pop("keys")} if "keys" in change else {}
    asked = configuration("unique_put", **change)
    asked = replace(asked, workload_args=asked.workload_args | keys)
    server.records = records(range(acknowledged - 7))
    assert check(server, asked, before=600) == DataCheck(acknowledged, 7, 0, acknowledged)


def test_keys_of_a_head_start_are_not_taken_for_keys_that_nobody_wrote(server):
    server.records = records(range(1200))
    assert check(server, configuration("unique_put", rate="closed", head_start="1m")) == DataCheck(
        900, 0, 0, 900
    )


def test_filled_keys_must_all_be_there_after_reading(server):
    server.records = records(range(500))
    found = check(server, configuration("get", fill=500))
    assert 100 < found.sampled <= 200 and (found.missing, found.wrong, found.written) == (0, 0, 0)
    server.records = records(range(250))
    assert check(server, configuration("get", fill=500)).missing > 50


def test_of_writes_that_wrk2_does_not_tell_the_fill_alone_is_read_back_and_that_is_said(server):
    server.records = records(range(500))
    fill = {"records": 500, "methods": ["PUT"]}
    found = check(server, configuration("put", fill=fill, generator="wrk2"))
    assert found.sampled > 100 and found.written == 0


def test_deleted_keys_must_be_gone_and_no_more_than_were_deleted(server):
    asked, sample = configuration("delete", fill=500), writes(range(100), "DELETE")
    server.records = records(range(200, 500))
    assert check(server, asked, sample, acknowledged=200) == DataCheck(100 + 300, 0, 0, 100)
    server.records = records(range(500))
    assert check(server, asked, sample, acknowledged=200) == DataCheck(100 + 300, 0, 100, 100), (
        "none of them is gone"
    )
    server.records = {}
    assert check(server, asked, sample, acknowledged=200, lost=40) == DataCheck(100 + 260, 260, 0, 100), (
        "the spared ones are gone too"
    )


def test_server_that_is_gone_is_an_error_not_a_pass():
    with pytest.raises(RunFailed, match="could not read back: GET /v0/entity.*: connection refused$"):
        check_data(
            Live("http://127.0.0.1:1"),
            configuration("put"),
            Answers(900, 0, sample=tuple(writes([1]))),
            seed=1,
        )
