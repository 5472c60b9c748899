"""When the slices of a part will be. loadgen draws the gaps between them, and says beforehand what it has
drawn."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from kvstudy.errors import RunFailed

ASKING_MAX_S = 30.0


@dataclass(frozen=True)
class SliceTimes:
    """Nanoseconds. ``measured_from``: the start of the first measured slice; ``counted``: begin and end of
    the counted part of each, in order."""

    measured_from: int
    counted: tuple[tuple[int, int], ...]

    def after(self, start_ns: int) -> "SliceTimes":
        """Of a part that starts then, if these are of one that starts at 0."""
        return SliceTimes(
            start_ns + self.measured_from,
            tuple((start_ns + begin, start_ns + end) for begin, end in self.counted),
        )

    @property
    def borders(self) -> list[int]:
        return [self.measured_from, *(border for both in self.counted for border in both)]


def planned_times(command: list[str], environment: Mapping[str, str], slices: int) -> SliceTimes:
    """Asks loadgen with the options of the part, ``command``, how they will be in one that starts at 0.
    RunFailed when these are not so many measured slices."""
    program, *options = command
    try:
        asked = subprocess.run(
            [program, "--print-slices", *options],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASKING_MAX_S,
        )
    except subprocess.TimeoutExpired:
        raise RunFailed(f"generator did not say its slices within {ASKING_MAX_S:g} s") from None
    except OSError as error:
        raise RunFailed(f"generator failed: {program}: {(error.strerror or str(error)).lower()}") from error
    if asked.returncode:
        said = asked.stderr.strip().splitlines() or ["it said nothing"]
        raise RunFailed(f"generator failed: exit {asked.returncode}: {said[0]}")
    try:
        planned = json.loads(asked.stdout)
        measured = [one for one in planned["slices"] if one["measured"]]
        times = SliceTimes(
            planned["warm_up_ns"], tuple((one["counted_from_ns"], one["end_ns"]) for one in measured)
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RunFailed(f"generator's slices cannot be read: {type(error).__name__}: {error}") from error
    if len(times.counted) != slices:
        raise RunFailed(
            f"generator plans other slices than were asked for: asked={slices} planned={len(times.counted)}"
        )
    return times
