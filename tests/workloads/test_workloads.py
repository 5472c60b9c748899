"""What each workload really sends, seen by a server that notes every request. The generator is the real
one."""

import hashlib
import json
import re
import subprocess
import tempfile
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from serving import serving

from kvstudy.measure.keys import value_of

ROOT = Path(__file__).resolve().parents[2]
LOADGEN = ROOT / "loadgen" / "target" / "release" / "loadgen"
WORKLOADS = ROOT / "experiments" / "workloads"
ALL = sorted(path.stem for path in WORKLOADS.glob("*.lua") if path.stem != "keyspace")


class NotingServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), NotingHandler)
        self.requests: list[tuple[str, str, bytes]] = []


class NotingHandler(BaseHTTPRequestHandler):
    """Answers as the service does and notes (method, key, body)."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urlsplit(self.path)
        if url.path == "/v0/entity":
            self.server.requests.append((self.command, parse_qs(url.query)["id"][0], body))
        self.send_response({"PUT": 201, "DELETE": 202}.get(self.command, 200))
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with serving(NotingServer()) as noting:
        yield noting


def send(
    server: NotingServer,
    workload: str,
    *arguments: str,
    threads: int = 2,
    rate: int = 500,
    duration: str = "1s",
    closed: bool = False,
    connections: int = 4,
) -> list[tuple[str, str, bytes]]:
    pace = ["--closed"] if closed else ["-R", str(rate)]
    outcome = subprocess.run(
        [
            LOADGEN,
            f"-c{connections}",
            f"-t{threads}",
            "-d",
            duration,
            *pace,
            "-s",
            WORKLOADS / f"{workload}.lua",
            f"http://127.0.0.1:{server.server_port}/",
            "--",
            f"threads={threads}",
            *arguments,
        ],
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert len(server.requests) > 100
    return server.requests


@pytest.mark.parametrize("workload", ALL)
def test_every_workload_sends_keys_of_the_length_asked_for(server, workload):
    for _, key, _ in send(server, workload, "key_count=1000", "key_bytes=20"):
        assert len(key) == 20
        assert re.fullmatch(r"k\d{19}|k\d{18}x", key)


@pytest.mark.parametrize("workload", ["put", "unique_put", "repeated_put", "fill"])
def test_a_value_has_the_length_asked_for_and_begins_with_its_key(server, workload):
    for method, key, body in send(server, workload, "key_count=1000", "value_bytes=257"):
        assert method == "PUT"
        assert len(body) == 257
        assert body.startswith(key.encode() + b" ")


@pytest.mark.parametrize("before", ["K", "K" * 40, "%25"])
@pytest.mark.parametrize("workload", ["put", "get"])
def test_a_key_stands_where_its_path_says_whatever_letters_stand_around_it(server, workload, before):
    path = f"/v0/entity?id={before}{{key}}K"
    for _, key, body in send(server, workload, "key_count=1000", f"put_path={path}", f"get_path={path}"):
        sent = re.fullmatch(rf"{before.replace('%25', '%')}(k\d{{15}})K", key)
        assert sent and (workload == "get" or body.startswith(f"{sent[1]} ".encode()))


@pytest.mark.parametrize("workload", ["unique_put", "unique_get"])
@pytest.mark.parametrize("key_count", [1000, 1001, 100_000])
def test_unique_means_unique_over_all_threads(server, workload, key_count):
    keys = [key for _, key, _ in send(server, workload, f"key_count={key_count}", rate=400)]
    assert Counter(keys).most_common(1)[0][1] == 1
    assert all(0 <= int(key[1:]) < key_count for key in keys)


@pytest.mark.parametrize("workload", ["unique_put", "unique_get"])
def test_who_goes_on_behind_what_another_was_sent_sends_none_of_its_keys_again(server, workload):
    """Thread by thread: the second begins where threads of the first would be after 1000 keys in all."""
    first = {key for _, key, _ in send(server, workload, "key_count=5003", rate=400)}
    server.requests.clear()
    behind = [key for _, key, _ in send(server, workload, "key_count=5003", "skip=1000", rate=400)]
    assert len(set(behind)) == len(behind) and not first & set(behind)
    server.requests.clear()
    whole = send(server, workload, "key_count=5003", f"skip={5003 * 10**9}", rate=400)
    assert first & {key for _, key, _ in whole}, "the walk begins anew behind its last key"


def test_a_repeated_workload_goes_round_all_its_keys(server):
    keys = Counter(key for _, key, _ in send(server, "repeated_get", "key_count=50"))
    assert {int(key[1:]) for key in keys} == set(range(50))


def test_missing_keys_are_never_those_of_a_fill_and_lie_among_them(server):
    keys = [key for _, key, _ in send(server, "missing_get", "key_count=1000")]
    assert all(key.endswith("x") for key in keys)
    assert all("k000000000000000" < key <= "k00000000000099x" for key in keys)


def test_mixed_keeps_its_read_share(server):
    methods = Counter(
        method
        for method, _, _ in send(server, "mixed", "key_count=1000", "read_share=0.8", "seed=3", rate=1000)
    )
    share = methods["GET"] / methods.total()
    assert 0.74 < share < 0.86, "seed=3"  # 1 000 draws: 0.8 ± 4.7 standard deviations


@pytest.mark.parametrize(("distribution", "favourite"), [("zipfian", 0), ("latest", 999)])
def test_skewed_distributions_have_their_favourite_key(server, distribution, favourite):
    keys = Counter(
        int(key[1:])
        for _, key, _ in send(server, "get", "key_count=1000", f"distribution={distribution}", rate=1000)
    )
    assert keys.most_common(1)[0][0] == favourite


def test_the_same_seed_gives_the_same_requests_and_another_seed_others(server):
    def first_keys(seed: int) -> list[str]:
        server.requests.clear()  # one connection: several would race to the server with theirs
        return [
            key
            for _, key, _ in send(
                server, "get", "key_count=1000000", f"seed={seed}", threads=1, rate=300, connections=1
            )[:100]
        ]

    once, again, other = first_keys(1), first_keys(1), first_keys(2)
    assert once == again
    assert len(set(once) & set(other)) < 10


@pytest.mark.parametrize("workload", ["put", "unique_put", "repeated_put", "mixed", "delete"])
def test_the_sample_of_what_was_written_is_of_requests_that_the_server_got(server, workload):
    """In a closed loop of two threads. What is read back after a run rests on this, and on every key having
    one value."""
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        outcome = subprocess.run(
            [
                LOADGEN,
                "-c2",
                "-t2",
                "-d400ms",
                "--closed",
                "--expect",
                "200,201,202",
                "--json",
                result.name,
                "--sample",
                "100",
                "-s",
                WORKLOADS / f"{workload}.lua",
                f"http://127.0.0.1:{server.server_port}/",
                "--",
                "threads=2",
                "key_count=20",
            ],
            text=True,
            capture_output=True,
            timeout=60,
        )
        sample = json.loads(Path(result.name).read_text())["sample"]
    assert outcome.returncode == 0 and len(sample) == 100, outcome.stderr
    bodies = {(method, key): body for method, key, body in server.requests}
    assert set(server.requests) == {(*asked, body) for asked, body in bodies.items()}, (
        "a key has one value, however often it is written"
    )
    for one in sample:
        body = bodies[one["method"], parse_qs(urlsplit(one["target"]).query)["id"][0]]
        assert one["body_sha256"] == (hashlib.sha256(body).hexdigest() if body else None)
        assert not body or body == value_of(body.split()[0].decode(), 100)


def test_a_fill_writes_every_key_once_and_stops_by_itself(server):
    requests = send(server, "fill", "key_count=777", threads=2, duration="30s", closed=True)
    assert sorted(int(key[1:]) for _, key, _ in requests) == list(range(777))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["keycount=5"], "unknown argument: keycount"),
        (["key_count=many"], "not a number: key_count=many"),
        (["value_bytes=10"], "value_bytes must exceed key_bytes"),
        (["distribution=normal"], "distribution must be uniform, zipfian or latest"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(server, arguments, complaint):
    outcome = subprocess.run(
        [
            LOADGEN,
            "-c1",
            "-t1",
            "-d1s",
            "-R10",
            "-s",
            WORKLOADS / "put.lua",
            f"http://127.0.0.1:{server.server_port}/",
            "--",
            *arguments,
        ],
        text=True,
        capture_output=True,
        timeout=30,
    )
    assert outcome.returncode == 1
    assert complaint in outcome.stderr
    assert not server.requests


def test_a_head_start_goes_round_its_own_keys_as_often_as_it_is_told(server):
    requests = send(
        server,
        "fill",
        "key_count=100",
        "first_key=5000",
        "writes=450",
        threads=2,
        duration="30s",
        closed=True,
    )
    counts = Counter(int(key[1:]) for _, key, _ in requests)
    assert (
        sum(counts.values()) == 450
        and set(counts) == set(range(5000, 5100))
        and set(counts.values()) == {4, 5}
    )
