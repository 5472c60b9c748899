"""After a run: are the acknowledged writes there, with the values that were sent? A sample is read back over
HTTP.

loadgen puts a sample of its answered requests into its result: target, status, and the SHA-256 of what was
sent. So:

    PUT       of the acknowledged ones: GET of the same target answers 200, with the same SHA-256
    DELETE    of the acknowledged ones: GET of the same target answers 404
    a fill    a sample of its keys, where nothing was deleted: there, with their values
    counted   unique_put in a closed loop or by wrk or wrk2: every acknowledged key is there, and none that
              nobody wrote;
              after DELETE: no more records are gone than DELETEs were sent

wrk and wrk2 do not say what they sent: of their writes nothing is read back, and where nothing is counted
either, nothing is recorded.

A sample is read back for READ_BACK_S at most: of a slow service fewer keys are, and first what the run itself
wrote.

A target may have been written again after the sampled request. The workloads make one value per key, so that
changes nothing; where the sample itself holds several bodies for one target, each of them is right. Where one
run both writes and deletes, a key may be there or not, and what is there must be what was sent.
"""

import hashlib
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Protocol

from kvstudy.errors import RunFailed, reason_unanswered
from kvstudy.measure.keys import key_of, value_of
from kvstudy.measure.outcome import Answers
from kvstudy.plan.run_plan import Configuration
from kvstudy.plan.subject import SubjectSpec
from kvstudy.plan.unique_keys import keys_skipped

FILLED_SAMPLE = 200
READ_BACK_S = 30.0
_ACKNOWLEDGED = range(200, 300)
_READ_BACK = {"PUT", "DELETE"}


@dataclass(frozen=True)
class DataCheck:
    """``sampled`` keys were asked for, or counted; of them ``missing`` were not found though they must be
    there; ``wrong`` had another value, or are there though nobody wrote them or they were deleted.
    ``written``: those that the run itself wrote or deleted, and not its fill."""

    sampled: int
    missing: int
    wrong: int
    written: int

    def __add__(self, other: "DataCheck") -> "DataCheck":
        return DataCheck(
            self.sampled + other.sampled,
            self.missing + other.missing,
            self.wrong + other.wrong,
            self.written + other.written,
        )


class ReadableSubject(Protocol):
    """A live subject, as far as this asks it."""

    url: str

    def count_records(self) -> int | None: ...


@dataclass(frozen=True)
class Expected:
    """Of one target: SHA-256 of the bodies that are right; whether it may be there, and whether it may be
    absent."""

    bodies: frozenset[str]
    present: bool
    absent: bool


def check_data(
    subject: ReadableSubject, configuration: Configuration, answers: Answers, seed: int
) -> DataCheck | None:
    """None where nothing can be asked for. ``seed``: of the run, from which the sample of its fill is drawn.
    RunFailed where an experiment asks for what cannot be read back."""
    written = _written((configuration,), answers.sample)
    parts = [
        part
        for part in (
            _read_back(subject.url, configuration.spec, written, _filled(configuration, seed)),
            _counted(subject, configuration, answers),
        )
        if part
    ]
    return sum(parts[1:], parts[0]) if parts else None


def check_sample(
    url: str, configurations: Iterable[Configuration], sample: Iterable[Mapping], seed: int
) -> DataCheck | None:
    """``check_data`` after several loads of one store: of all their sampled writes, and of its fill where
    none of them deletes."""
    loads = list(configurations)
    filled = (
        {}
        if any(one.method == "DELETE" for one in loads)
        else {target: right for one in loads for target, right in _filled(one, seed).items()}
    )
    return _read_back(url, loads[0].spec, _written(loads, sample), filled)


def _written(loads: Sequence[Configuration], sample: Iterable[Mapping]) -> dict[str, Expected]:
    """By what GET is asked for."""
    sample = list(sample)
    sent = {one["method"] for one in sample}
    if sent and not sent & _READ_BACK and any(one.read_back for one in loads):
        raise RunFailed(
            "nothing can be read back, as verify asks: of "
            f"{', '.join(sorted(sent))} nobody knows what GET gives",
            "leave verify out, or write verify: false",
        )
    return {_target_of_get(loads[0].spec, target): right for target, right in sampled_writes(sample).items()}


def sampled_writes(sample: Iterable[Mapping]) -> dict[str, Expected]:
    """What each target of the acknowledged writes of loadgen's sample must answer."""
    put, deleted = defaultdict(set), set()
    for one in sample:
        # http.client sends ASCII only; no workload of ours has another target.
        if one["status"] not in _ACKNOWLEDGED or not one["target"].isascii():
            continue
        if one["method"] == "PUT":
            put[one["target"]].add(one["body_sha256"] or _digest(b""))
        elif one["method"] == "DELETE":
            deleted.add(one["target"])
    both = bool(put and deleted)
    expected = {
        target: Expected(frozenset(bodies), present=True, absent=both) for target, bodies in put.items()
    }
    # Of a key that was deleted alone in the sample, nothing is known of a body that was written besides.
    return expected | (
        {} if both else {target: Expected(frozenset(), present=False, absent=True) for target in deleted}
    )


def _filled(configuration: Configuration, seed: int) -> dict[str, Expected]:
    if (
        not configuration.fill
        or configuration.method == "DELETE"
        or configuration.read_back == 0
        or configuration.script
    ):
        return {}
    arguments, draw = configuration.workload_args, random.Random(seed)
    keys = {
        key_of(draw.randrange(configuration.fill["records"]), arguments["key_bytes"])
        for _ in range(FILLED_SAMPLE)
    }
    path = configuration.spec.path_of("GET")
    return {
        path.replace("{key}", key): Expected(
            frozenset({_digest(value_of(key, arguments["value_bytes"]))}), present=True, absent=False
        )
        for key in sorted(keys)
    }


def _read_back(
    url: str, spec: SubjectSpec, written: Mapping[str, Expected], filled: Mapping[str, Expected]
) -> DataCheck | None:
    """What was written first, and as it was written. None where there is nothing."""
    expected = {**written, **{target: right for target, right in filled.items() if target not in written}}
    if not expected:
        return None
    missing, wrong, read, found = 0, 0, 0, spec.statuses_of("GET")
    connection = HTTPConnection(url.removeprefix("http://"), timeout=10)
    end = time.monotonic() + READ_BACK_S
    try:
        for target, right in expected.items():
            if read and time.monotonic() > end:
                break
            read += 1
            connection.request("GET", target)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == 404:
                missing += not right.absent
            elif answer.status not in found or not right.present or _digest(body) not in right.bodies:
                wrong += 1
    except (OSError, HTTPException) as error:
        raise RunFailed(
            f"data check could not read back: GET {target}: {reason_unanswered(error)}"
        ) from error
    finally:
        connection.close()
    return DataCheck(read, missing, wrong, min(read, len(written)))


def _target_of_get(spec: SubjectSpec, target: str) -> str:
    """Of a subject that keeps what was written at one path behind another one."""
    written_at, _, behind = spec.path_of("PUT").partition("{key}")
    if not spec.paths or not target.startswith(written_at) or not target.endswith(behind):
        return target
    return spec.path_of("GET").replace("{key}", target[len(written_at) : len(target) - len(behind)])


def _counted(subject: ReadableSubject, configuration: Configuration, answers: Answers) -> DataCheck | None:
    """Of what nothing can be concluded is not counted."""
    if configuration.method == "DELETE" and configuration.fill:
        least = configuration.fill["records"] - _perhaps_done(configuration, answers)
        found = subject.count_records() if least > 0 else None
        return None if found is None else DataCheck(least, max(0, least - found), 0, 0)
    if (
        configuration.workload != "unique_put"
        or configuration.fill
        or (configuration.generator == "loadgen" and not configuration.closed_loop)
    ):
        return None
    found, key_count = subject.count_records(), configuration.workload_args["key_count"]
    if found is None:
        return None
    least, most = (
        _keys_acknowledged(configuration, answers),
        min(key_count, _perhaps_done(configuration, answers)),
    )
    unknown = (
        0 if configuration.head_start_bytes else max(0, found - most)
    )  # a head start has keys of its own
    return DataCheck(least, max(0, least - found), unknown, least)


def _keys_acknowledged(configuration: Configuration, answers: Answers) -> int:
    """So many keys at least. The warm-up's are others where neither process comes to the end of its own; in a
    closed loop one thread alone may do all of that."""
    rate_rps, key_count = configuration.offered_rate_rps, configuration.workload_args["key_count"]
    skipped = keys_skipped(
        key_count, [(rate_rps, configuration.warm_up_s), (rate_rps, configuration.measured_s)]
    )
    threads = configuration.threads if rate_rps is None else 1
    if answers.before * threads <= skipped and answers.acknowledged * threads <= key_count - skipped:
        return answers.before + answers.acknowledged
    return min(key_count, answers.acknowledged)


def _perhaps_done(configuration: Configuration, answers: Answers) -> int:
    """A request without its answer may have been done; with wrk and wrk2 so may those in flight at the end,
    of the warm-up too."""
    in_flight = 0 if configuration.generator == "loadgen" else 2 * configuration.connections
    return answers.acknowledged + answers.lost + answers.before + in_flight


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
