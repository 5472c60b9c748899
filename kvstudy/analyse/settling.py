"""After how many seconds a fresh service has settled: how long its warm-up must be.

    settled_after_s(medians, negligible=2.0)      7: from the eighth second on they stay where they end

A second is taken with its two neighbours, so that one flush is no end of the warm-up. *Where they end* is the
median of the last third; what does not stay there before that third begins has not settled, and nothing
shorter than that can be recommended.
"""

from collections.abc import Sequence

import numpy as np

from kvstudy.analyse.validity import DRIFT_SHARE


def settled_after_s(values: Sequence[float], negligible: float) -> int | None:
    """``values``: one a second from the first request on, NaN where nothing was seen; ``negligible``: so
    close is equal. None: not settled."""
    known = np.asarray(values, dtype=float)
    third = len(known) // 3
    if third < 3 or np.isnan(known[-third:]).all():
        return None
    end = np.nanmedian(known[-third:])
    smooth = np.array(
        [
            np.nanmedian(window) if not np.isnan(window).all() else np.nan
            for window in (known[max(0, at - 1) : at + 2] for at in range(len(known)))
        ]
    )
    away = (np.abs(smooth - end) > negligible) & (
        np.maximum(smooth, end) > DRIFT_SHARE * np.minimum(smooth, end)
    )
    late = np.flatnonzero(away[: len(known) - third])
    # What was not seen yet has not settled.
    first = max(int(late[-1]) + 1 if len(late) else 0, int(np.flatnonzero(~np.isnan(known))[0]))
    return None if first >= len(known) - third else first
