"""After a run: are the acknowledged keys there, with the values that were written? A sample is read back over HTTP.

Key k is "k" and k in decimal, zero-padded to key_bytes; a value is its key, a blank and letters of the alphabet: the rule of
experiments/workloads/keyspace.lua. Which keys must be there:

    unique_put, repeated_put   the keys that the threads' walks had reached by the number of acknowledged requests; in a closed loop
                               threads go at their own pace: there unique_put is counted instead, all records of the store
                               (not with wrk, whose warm-up writes keys of its own)
    put, mixed                 unknown (drawn at random): a key that is there must have its own value; filled ones must be there
    reading workloads          every filled key
    delete                     unknown: nothing is asked

A request whose answer was lost (timeout, read error) may or may not have been done: as many missing keys are forgiven.
"""

import math
import random
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from kvstudy.errors import RunFailed
from kvstudy.measure.metrics import count_records
from kvstudy.plan.run_plan import Configuration

SAMPLE_SIZE = 200
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class DataCheck:
    """``sampled`` keys were asked for, or counted; of them ``missing`` were not found though they must be there; ``wrong`` had another
    value, or are there without having been written."""

    sampled: int
    missing: int
    wrong: int


def key_of(number: int, key_bytes: int) -> str:
    return "k" + str(number).zfill(key_bytes - 1)


def value_of(key: str, value_bytes: int) -> bytes:
    length = value_bytes - len(key) - 1
    return f"{key} {(_LETTERS * (length // len(_LETTERS) + 1))[:length]}".encode()


def check_data(url: str, configuration: Configuration, acknowledged: int, lost: int, seed: int) -> DataCheck | None:
    """None where no key can be asked for. ``acknowledged``: answers of the whole run, warm-up included; ``lost``: requests without one."""
    draw = random.Random(seed)
    if configuration.workload == "unique_put" and not _threads_keep_step(configuration) and configuration.generator == "loadgen":
        found = count_records(url)
        return DataCheck(acknowledged, max(0, acknowledged - found), max(0, found - acknowledged - lost))
    required = required_keys(configuration, acknowledged, draw)
    optional = draw.choices(range(configuration.workload_args["key_count"]), k=SAMPLE_SIZE) if configuration.workload in ("put", "mixed") else []
    if not required and not optional:
        return None
    arguments = configuration.workload_args
    missing = wrong = 0
    connection = HTTPConnection(url.removeprefix("http://"), timeout=10)
    try:
        for number, must_be_there in [(number, True) for number in required] + [(number, False) for number in optional]:
            key = key_of(number, arguments["key_bytes"])
            connection.request("GET", f"/v0/entity?id={key}")
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == 404:
                missing += must_be_there
            elif answer.status != 200 or body != value_of(key, arguments["value_bytes"]):
                wrong += 1
    except (OSError, HTTPException) as error:
        raise RunFailed(f"data check could not read back: GET /v0/entity?id={key}: {error!r}") from error
    finally:
        connection.close()
    return DataCheck(len(required) + len(optional), max(0, missing - lost), wrong)


def required_keys(configuration: Configuration, acknowledged: int, draw: random.Random) -> list[int]:
    """A sample of the numbers of keys that must be in the store."""
    if configuration.workload in ("unique_put", "repeated_put"):
        if not _threads_keep_step(configuration):
            return []
        count = min(acknowledged, configuration.workload_args["key_count"])
        # At a constant rate a thread is behind the others by what its late connections owe: the last tenth is not asked for.
        certain = math.floor(count * 0.9) - configuration.connections
        positions = [draw.randrange(certain) for _ in range(SAMPLE_SIZE)] if certain > 0 else []
        return [walk(configuration, position) for position in positions]
    if configuration.fill is not None and configuration.method != "DELETE":
        return [draw.randrange(configuration.fill["records"]) for _ in range(SAMPLE_SIZE)]
    return []


def _threads_keep_step(configuration: Configuration) -> bool:
    return configuration.threads == 1 or not configuration.closed_loop


def walk(configuration: Configuration, position: int) -> int:
    """The key at a position of the walk that all threads share: thread t of T takes positions t, t + T, …"""
    key_count = configuration.workload_args["key_count"]
    if configuration.workload == "repeated_put":
        return position % key_count
    step = max(1, math.floor(key_count * 0.6180339887))
    while math.gcd(step, key_count) != 1:
        step += 1
    return position * step % key_count
