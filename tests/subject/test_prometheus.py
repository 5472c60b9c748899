"""Counters that a subject tells over HTTP: what is read of them, and that one that does not tell is *not
recorded* and nothing worse."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from serving import serving

from kvstudy.errors import ExperimentError
from kvstudy.plan.subject import SubjectSpec
from kvstudy.subject.evidence import prometheus
from kvstudy.subject.evidence.prometheus import Scraper, series


class MetricsServer(ThreadingHTTPServer):
    """``metrics_server.answers["/path"] = (status, body)``: what it answers."""

    def __init__(self):
        self.answers = answers = {}

        class Answers(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                status, body = answers[self.path]
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments):
                pass

        super().__init__(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def metrics_server():
    with serving(MetricsServer()) as server:
        yield server


def scraped(url: str) -> dict:
    """At its start and at its end."""
    scraper = Scraper(url)
    scraper.begin()
    scraper.end()
    scraper.end()
    return dict(scraper.counters)


def test_it_is_read_at_the_start_and_at_the_end(metrics_server):
    metrics_server.answers["/metrics"] = (200, b'up 1\nrequests_total{code="200"} 7\n')
    found = scraped(f"{metrics_server.url}/metrics")
    assert list(found.values()) == [{"up": 1.0, "requests_total{code=200}": 7.0}] * 2
    assert all(utc.endswith("Z") for utc in found)


@pytest.mark.parametrize("answer", [(404, b"up 1\n"), (200, b"<html>no metrics</html>"), (200, b"")])
def test_what_is_no_metrics_is_not_recorded(metrics_server, answer):
    metrics_server.answers["/metrics"] = answer
    assert scraped(f"{metrics_server.url}/metrics") == {}


def test_nobody_who_answers_is_not_recorded():
    assert scraped("http://127.0.0.1:1/metrics") == {}


def test_buckets_and_what_is_no_number_are_left_out_and_so_is_what_is_too_much():
    text = 'a_bucket{le="1"} 2\na_sum 4\nb NaN\nc{x="1,2",y="a;b"} 3\n'
    assert dict(series(text)) == {"a_sum": 4.0, "c{x=1_2;y=a_b}": 3.0}
    many = "".join(f'many{{number="{number}"}} 1\n' for number in range(500))
    assert len(dict(series(many))) == prometheus.SERIES_MAX


def test_only_what_is_not_ours_names_its_metrics():
    command = {"command": ["serve", "{port}"], "metrics": "/metrics"}
    assert SubjectSpec.model_validate(command).metrics == "/metrics"
    assert SubjectSpec.model_validate({"url": "http://127.0.0.1:1", "metrics": "/m"}).metrics == "/m"
    for wrong in ({"build": "main", "metrics": "/metrics"}, command | {"metrics": "metrics"}):
        with pytest.raises((ExperimentError, ValueError)):
            SubjectSpec.model_validate(wrong)
