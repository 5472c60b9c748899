"""What the instrument page says about certainty and about scripts, for people; each is one call.

notebook.show(ruler.certainty(tables))
ruler.script_limit(tables.select(experiment="workloads"), tables)
"""

import pandas as pd

from kvstudy.analyse import noise
from kvstudy.analyse import script_limit as analyse_limit
from kvstudy.analyse.tables import Tables
from kvstudy.present import words
from kvstudy.present.markdown import Markdown


def certainty(tables: Tables, repeats: int = noise.REPEATS, ratio: float = 1.05) -> pd.DataFrame:
    """One row per measure: what ``repeats`` runs a side can tell at the noise of the service's own runs
    (``analyse.noise.certainty``)."""
    change = f"{100 * (ratio - 1):.3g} %"
    columns = [
        "measure",
        "configurations",
        "repeats differ by",
        f"{repeats} runs a side find {change} in",
        f"{repeats} runs a side find in 4 of 5",
        f"runs a side to find {change} in 4 of 5",
    ]
    rows = [
        [
            row.measure,
            f"{row.configurations}, {row.runs} runs",
            f"{row.noise_percent:.1f} % ({row.noise_least_percent:.1f} … {row.noise_most_percent:.1f})",
            (
                f"{words.share(row.share_found)} ({words.share(row.share_found_least)} … "
                f"{words.share(row.share_found_most)})"
            ),
            f"{row.found_percent:.0f} %",
            "over 100" if pd.isna(row.runs_needed) else str(row.runs_needed),
        ]
        for row in noise.certainty(tables, repeats=repeats, ratio=ratio).itertuples()
    ]
    frame = pd.DataFrame(rows, columns=columns)
    frame.attrs["caption"] = (
        "Of one comparison alone: on a page, whose words are corrected for their number, less is found."
    )
    return frame


def script_limit(scripts: Tables, every: Tables) -> Markdown:
    """A sentence: is a workload's script what limits any run against the store (``analyse.script_limit``)?"""
    found = analyse_limit.script_limit(scripts, every)
    if found.sent_rps.empty:
        return Markdown("**Found:** nothing: no valid run says what a script can send.")
    parts = [
        _asked(
            found.at_rates,
            "At constant rates a thread is asked for at most",
            "the script may be what limits these runs",
        ),
        _asked(
            found.in_loops,
            "In closed loops against the store a thread sends at most",
            "what both servers have in common, the script among it, may be what limits these runs, and "
            "not the store",
        ),
    ]
    verdict = f"{words.several(found.near)} may be" if found.near else "none is"
    asked = " ".join(filter(None, parts)) or "No run against the store has one of these scripts."
    rest = f" Without a valid run here: {words.several(list(found.without))}." if found.without else ""
    alone = words.several(
        [f"{words.rate(rate)} with {workload}" for workload, rate in found.sent_rps.items()]
    )
    return Markdown(
        f"**Found:** {verdict if found.is_compared else 'nothing to compare with'}. Alone, on the server "
        f"that does nothing, a thread sends {alone}. {asked}{rest}"
    )


def _asked(part: pd.DataFrame, begin: str, otherwise: str) -> str:
    """A sentence with the largest shares; "" without runs."""
    if part.empty:
        return ""
    near = len(analyse_limit.near(part))
    shares = words.several(
        [
            f"{words.share(row.share)} of that ({row.Index}, {words.rate(row.asked_rps)})"
            for row in part.head(max(1, near)).itertuples()
        ]
    )
    return f"{begin} {shares}{f': {otherwise}' if near else ''}."
