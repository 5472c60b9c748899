"""Counters of a subject that tells them over HTTP, in Prometheus' text format: read once a second from its
start to its end, for store.csv.

    scraper = Scraper("http://127.0.0.1:8080/metrics"); scraper.begin(); …; scraper.end()
    scraper.counters                     UTC → value by name, empty where nothing could be read

A column is a series: its name, and behind it its labels, ``http_requests_total{code=200;method=get}``.
Buckets of histograms are left out, and so is what comes after SERIES_MAX series: more than a page can show.
One that does not answer, or in another format, is *not recorded*: what is measured of it goes on."""

import http.client
import math
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

STEP_S = 1.0
TIMEOUT_S = 2.0
BYTES_MAX = 4 << 20
SERIES_MAX = 200
LOWEST_PRIORITY = 19
_NOT_IN_A_HEADING = re.compile(r'[,;"\r\n]')  # of store.csv, whose cells are parted by commas


class Scraper:
    """A thread of its own, of the lowest priority: it shares the cores with what is measured."""

    def __init__(self, url: str):
        parts = urlsplit(url)
        self._host, self._port, self._path = parts.hostname, parts.port or 80, parts.path or "/"
        self._read: dict[str, dict[str, float]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="metrics")

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Safe to call again."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def counters(self) -> Mapping[str, Mapping[str, float | None]]:
        """After ``end``: of each reading the same names, None where one was not there yet."""
        names = dict.fromkeys(name for values in self._read.values() for name in values)
        return {utc: {name: values.get(name) for name in names} for utc, values in self._read.items()}

    def _run(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        try:
            while True:
                self._scrape(connection)
                if self._over.wait(STEP_S):
                    self._scrape(connection)
                    return
        finally:
            connection.close()

    def _scrape(self, connection: http.client.HTTPConnection) -> None:
        try:
            at = datetime.now(UTC)
            connection.request("GET", self._path)
            answer = connection.getresponse()
            body = answer.read(BYTES_MAX)
            counters = dict(series(body.decode("utf-8", errors="replace"))) if answer.status == 200 else {}
            if counters:
                self._read[at.isoformat().replace("+00:00", "Z")] = counters
            if not answer.isclosed():
                connection.close()
        except (OSError, http.client.HTTPException, ValueError):
            connection.close()  # the next reading opens it anew


def series(text: str) -> Iterator[tuple[str, float]]:
    """Name and value of each series; ValueError where the text is in another format."""
    lines = 0
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.endswith("_bucket") or not math.isfinite(sample.value):
                continue
            lines += 1
            if lines > SERIES_MAX:
                return
            labels = ";".join(
                f"{name}={_NOT_IN_A_HEADING.sub('_', value)}" for name, value in sorted(sample.labels.items())
            )
            yield (f"{sample.name}{{{labels}}}" if labels else sample.name), sample.value
