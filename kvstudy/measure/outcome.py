"""What a generator says it got: how many requests were answered, and how many were sent without an answer
coming."""

import json
from dataclasses import dataclass
from pathlib import Path

from kvstudy.errors import RunFailed
from kvstudy.measure.generator import expected_statuses
from kvstudy.plan.run_plan import Configuration
from kvstudy.record.wrk2_text import parse_one


@dataclass(frozen=True)
class Answers:
    """Of the whole process, warm-up included. ``acknowledged``: answered as the workload expects; ``lost``:
    sent, but no answer or an unexpected one came: done or not done, nobody knows. ``window_start_utc``: when
    the measured window began, None where the generator does not say; ``before``: acknowledged in a warm-up
    that was a process of its own. ``sample``: some of the answered requests, as loadgen writes them."""

    acknowledged: int
    lost: int
    window_start_utc: str | None = None
    before: int = 0
    sample: tuple[dict, ...] = ()


def answers_of(configuration: Configuration, json_file: Path, text_file: Path) -> Answers:
    """From loadgen's JSON, else from the text. RunFailed when there was not one answer."""
    if configuration.generator == "loadgen":
        try:
            result = json.loads(json_file.read_text(encoding="utf-8"))
            expected = expected_statuses(configuration).split(",")
            answered = result["counts"]["completed"]
            acknowledged = sum(count for status, count in result["answers"].items() if status in expected)
            sample = tuple(result.get("sample", ()))  # only where it was asked for
            answers = Answers(
                acknowledged,
                result["counts"]["sent"] - acknowledged,
                result["measure_start_utc"],
                sample=sample,
            )
        except (OSError, ValueError, KeyError) as error:
            raise RunFailed(f"generator wrote no result: {json_file.name}: {error!r}") from error
    else:
        text = parse_one(text_file.read_text(encoding="utf-8", errors="replace"), str(text_file))
        answered = text.requests
        answers = Answers(answered - text.non_2xx_3xx, sum(text.socket_errors.values()) + text.non_2xx_3xx)
    if answered == 0:
        raise RunFailed("generator got no answer at all")
    return answers
