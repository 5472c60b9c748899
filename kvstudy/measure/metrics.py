"""The service's /metrics as flat names and numbers, and whether its store has come to rest.

A sample with labels is named as Prometheus writes it without the quotes: ``kv_store_stalls_total{cause=memtable}``.
"""

import http.client
import time

import psutil
from prometheus_client.parser import text_string_to_metric_families

from kvstudy.errors import RunFailed
from kvstudy.measure.service import Service

REST_STEP_S = 0.1
REST_CPU_MAX_SHARE = 0.2
FROZEN_MEMTABLES = "kv_store_frozen_memtables"


def kv_metrics(service: Service) -> dict[str, float]:
    """Every kv_* sample; empty where the service has no /metrics (the empty server)."""
    status, body = service.get("/metrics?prefix=kv_")
    return parse(body.decode("utf-8", errors="replace")) if status == 200 else {}


def parse(text: str) -> dict[str, float]:
    """Samples of the text exposition format whose names begin with ``kv_``, but for creation times."""
    samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith("kv_") and not sample.name.endswith("_created"):
                labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
                samples[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return samples


def wait_for_rest(service: Service, timeout_s: float = 60.0) -> bool:
    """True once nothing waits for its flush and the service has used hardly any CPU for two steps; False at the end of the time.

    CPU says more than counters do: a compaction counts when it has ended, and the JVM's own compilers are at work after a start too.
    """
    end = time.monotonic() + timeout_s
    process = psutil.Process(service.pid)
    still = 0
    while time.monotonic() < end:
        service.check_alive("waiting for rest")
        share = process.cpu_percent(interval=REST_STEP_S) / 100
        still = still + 1 if share <= REST_CPU_MAX_SHARE else 0
        if still >= 2:
            if kv_metrics(service).get(FROZEN_MEMTABLES, 0) == 0:
                return True
            still = 0
    return False


def count_records(url: str) -> int:
    """How many records the store holds, by reading all of them: one line per key, since values of the workloads hold no newline."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    try:
        connection.request("GET", "/v0/entities?start=k")
        answer = connection.getresponse()
        if answer.status != 200:
            raise RunFailed(f"records cannot be counted: GET /v0/entities?start=k answered {answer.status}")
        newlines = 0
        while block := answer.read(1 << 20):
            newlines += block.count(b"\n")
        return newlines
    except (OSError, http.client.HTTPException) as error:
        raise RunFailed(f"records cannot be counted: GET /v0/entities?start=k: {error!r}") from error
    finally:
        connection.close()
