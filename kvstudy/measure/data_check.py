"""After a run: are the acknowledged keys there, with the values that were written? A sample is read back over HTTP.

What each thread asked for, in which order, is known (kvstudy/measure/keys.py), and loadgen says how many requests each thread sent. So:

    unique_put, repeated_put, put, mixed   a sample of all that was written: there, with its value
    delete                                 a sample of all that was deleted: not there; of the filled keys that nobody deleted: there
    reading workloads                      a sample of the filled keys: there
    unique_put in a closed loop            besides, all records are counted: every acknowledged key, and none that nobody wrote

wrk and wrk2 do not say what each thread sent. At a constant rate threads keep step, but for the last tenth, which is not asked for, and the
first request of a thread, which wrk makes to look at it and throws away. In a closed loop only one thread's share is known; unique_put is
counted. What is left, several threads of wrk that draw keys, cannot be known: a key that is there must have its own value.

A request that was not acknowledged (timeout, read error, refused) may or may not have been done: as many missing keys are forgiven.
"""

import random
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from itertools import islice

from kvstudy.errors import RunFailed
from kvstudy.measure.keys import key_of, requests, value_of, walk
from kvstudy.measure.metrics import count_records
from kvstudy.measure.outcome import Answers
from kvstudy.plan.run_plan import Configuration

SAMPLE_SIZE = 200
# Drawn keys have to be drawn once more, a few microseconds each: of longer runs the first so many.
DRAWS_MAX = 100_000
_WALKS = ("unique_put", "repeated_put")
_DRAWS = ("put", "mixed", "delete")


@dataclass(frozen=True)
class DataCheck:
    """``sampled`` keys were asked for, or counted; of them ``missing`` were not found though they must be there; ``wrong`` had another
    value, or are there though nobody wrote them or they were deleted."""

    sampled: int
    missing: int
    wrong: int


@dataclass
class Expected:
    """Key numbers: must be there, must not, and may be."""

    there: list[int]
    gone: list[int]
    maybe: list[int]


def check_data(url: str, configuration: Configuration, answers: Answers, seed: int) -> DataCheck | None:
    """None where no key can be asked for. ``seed``: of the run, from which its workload drew."""
    counted = _counted(url, configuration, answers)
    expected = expected_keys(configuration, answers, seed)
    if counted is None and not (expected.there or expected.gone or expected.maybe):
        return None
    missing, kept, wrong = _asked(url, configuration, expected)
    read_back = DataCheck(len(expected.there) + len(expected.gone) + len(expected.maybe), max(0, missing - answers.lost),
                          wrong + max(0, kept - answers.lost))
    if counted is None:
        return read_back
    return DataCheck(read_back.sampled + counted.sampled, read_back.missing + counted.missing, read_back.wrong + counted.wrong)


def expected_keys(configuration: Configuration, answers: Answers, seed: int) -> Expected:
    """Samples, drawn from the seed too."""
    draw = random.Random(seed)
    sent, first = _certainly_sent(configuration, answers)
    filled = configuration.fill["records"] if configuration.fill else 0
    if configuration.workload in _WALKS:
        return Expected(_walked(configuration, sent, first, draw), [], [])
    there = [draw.randrange(filled) for _ in range(SAMPLE_SIZE)] if filled and configuration.method != "DELETE" else []
    if configuration.workload not in _DRAWS:
        return Expected(there, [], [])
    touched, whole = _touched(configuration, sent, first, seed)
    sample = draw.choices(touched, k=SAMPLE_SIZE) if touched else []
    if configuration.method == "DELETE":
        spared = sorted(set(range(filled)) - set(touched)) if whole and answers.sent_by_thread else []
        return Expected(draw.choices(spared, k=SAMPLE_SIZE) if spared else [], sample, [])
    maybe = [] if sample else draw.choices(range(configuration.workload_args["key_count"]), k=SAMPLE_SIZE)
    return Expected(there + sample, [], maybe)


def _certainly_sent(configuration: Configuration, answers: Answers) -> tuple[list[int], int]:
    """How many requests of each thread were sent, at least, and how many of its first ones do not count."""
    if answers.sent_by_thread:
        return list(answers.sent_by_thread), 0
    threads = configuration.threads
    if configuration.closed_loop:
        return ([answers.acknowledged] if threads == 1 else [0] * threads), 1
    # Behind the others by what its late connections owe.
    return [max(0, int(answers.acknowledged * 0.9) // threads - configuration.connections)] * threads, 1


def _walked(configuration: Configuration, sent: list[int], first: int, draw: random.Random) -> list[int]:
    shares = [max(0, count - first) for count in sent]
    if not sum(shares):
        return []
    threads = draw.choices(range(len(sent)), weights=shares, k=SAMPLE_SIZE)
    return [walk(configuration, thread + len(sent) * (first + draw.randrange(shares[thread]))) for thread in threads]


def _touched(configuration: Configuration, sent: list[int], first: int, seed: int) -> tuple[list[int], bool]:
    """Keys that were written or deleted, each as often as it was, and whether these are all: not of a longer run, nor where one is unsure."""
    touched, whole = [], sum(sent) <= DRAWS_MAX
    share = 1.0 if whole else DRAWS_MAX / sum(sent)
    for thread, count in enumerate(sent):
        for method, number in islice(requests(configuration, thread, seed), first, max(first, int(count * share))):
            whole = whole and number is not None
            if method != "GET" and number is not None:
                touched.append(number)
    return touched, whole


def _counted(url: str, configuration: Configuration, answers: Answers) -> DataCheck | None:
    """Of unique_put in a closed loop. Requests in flight at the end may have been done, with wrk those of its warm-up too."""
    if configuration.workload != "unique_put" or not configuration.closed_loop:
        return None
    found = count_records(url)
    acknowledged = min(answers.acknowledged, configuration.workload_args["key_count"])
    in_flight = 0 if answers.sent_by_thread else 2 * configuration.connections
    return DataCheck(acknowledged, max(0, acknowledged - found), max(0, found - acknowledged - answers.lost - answers.before - in_flight))


def _asked(url: str, configuration: Configuration, expected: Expected) -> tuple[int, int, int]:
    """How many keys are missing, how many are there that should be gone, and how many have a wrong value. A key is often drawn twice."""
    arguments = configuration.workload_args
    missing, kept, wrong = set(), set(), set()
    connection = HTTPConnection(url.removeprefix("http://"), timeout=10)
    try:
        for number, rule in [(number, rule) for rule in ("there", "gone", "maybe") for number in getattr(expected, rule)]:
            key = key_of(number, arguments["key_bytes"])
            connection.request("GET", f"/v0/entity?id={key}")
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == 404:
                missing |= {number} if rule == "there" else set()
            elif answer.status != 200 or body != value_of(key, arguments["value_bytes"]):
                wrong.add(number)
            elif rule == "gone":
                kept.add(number)
    except (OSError, HTTPException) as error:
        raise RunFailed(f"data check could not read back: GET /v0/entity?id={key}: {error!r}") from error
    finally:
        connection.close()
    return len(missing), len(kept), len(wrong)
