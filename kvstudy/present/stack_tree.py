"""The frames of a profile as a tree: what each holds with its callees and without."""

from collections import defaultdict
from dataclasses import dataclass

import pandas as pd

from kvstudy.analyse.frames import subsystem
from kvstudy.present import words

IDLE = "idle"
SWITCHING = "finish_task_switch"
SWITCHING_TOLD = (
    f"{SWITCHING} is the kernel handing a core from one thread to another: switching and waiting, no work "
    "of the service."
)


@dataclass(frozen=True)
class StackTree:
    """``sums`` and ``own``: samples by path from the root, with and without callees; ``frames``: the paths
    that are drawn, a caller before its callees; ``share_min``: the share of all samples under which a frame
    is not drawn."""

    total: int
    sums: dict[tuple, int]
    own: dict[tuple, int]
    frames: list[tuple]
    share_min: float

    @classmethod
    def of(cls, stacks: pd.DataFrame, share_min: float, frames_max: int | None = None) -> "StackTree":
        """``stacks`` has a row per stack, its frames joined by ``;`` from the root, and its ``samples``."""
        sums, own = defaultdict(int), defaultdict(int)
        for stack, samples in zip(stacks["stack"], stacks["samples"], strict=True):
            frames = tuple(stack.split(";"))
            own[frames] += int(samples)
            for depth in range(1, len(frames) + 1):
                sums[frames[:depth]] += int(samples)
        total = int(stacks["samples"].sum())
        kept = [path for path, samples in sums.items() if samples >= share_min * total]
        # Raised until the browser can take it.
        while frames_max is not None and len(kept) > frames_max:
            share_min = max(share_min * 1.25, 1e-5)
            kept = [path for path in kept if sums[path] >= share_min * total]
        return cls(total, dict(sums), dict(own), sorted(kept), share_min)

    def share(self, path: tuple) -> float:
        """Of all samples, callees included; 0 for a path that is not there."""
        return self.sums.get(path, 0) / self.total

    def own_shares(self) -> dict[str, float]:
        """Of all samples, by the short name of the frame that was on top."""
        shares = defaultdict(float)
        for path, samples in self.own.items():
            shares[short_name(path[-1])] += samples / self.total
        return dict(shares)

    def hottest(self, waiting: bool = False) -> str:
        """The three frames with the largest own share; of time the waiting for events is no work, so it is
        left out and told beside them, unless ``waiting`` counts like all else."""
        shares, idle = defaultdict(float), 0.0
        for path, samples in self.own.items():
            if not waiting and subsystem(";".join(path)) == IDLE:
                idle += samples / self.total
            else:
                shares[short_name(path[-1])] += samples / self.total
        top = sorted(shares.items(), key=lambda item: -item[1])[:3]
        return words.several([f"{name} {words.share(share)}" for name, share in top]) + (
            f", beside waiting for events (idle) {words.share(idle)}" if idle else ""
        )


def short_name(frame: str) -> str:
    """``kv/lsm/LsmStore.get_[j]`` → "LsmStore.get"."""
    return frame.rsplit("/", 1)[-1].split("_[")[0]
