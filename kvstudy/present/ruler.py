"""What the instrument page says about certainty and about scripts, for people; each is one call.

notebook.show(ruler.certainty(tables))
ruler.script_limit(tables.select(experiment="workloads"), tables)
"""

import pandas as pd
from IPython.display import Markdown

from kvstudy.analyse import noise
from kvstudy.analyse.configuration import each_configuration
from kvstudy.analyse.tables import Tables
from kvstudy.present import words

SCRIPT_NEAR = 0.8  # a script that is asked for more of what it can send may be what limits a run


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
    """A sentence: is a workload's script what limits any run against the store? Requests per second and
    thread that ``scripts``, closed loops on an empty server, could send, against what the latency runs of
    ``every`` asked of a thread."""
    sent = scripts.believed().runs
    # Only repeats share a median; of several configurations the one that sends least is what a script can be
    # relied on for.
    rates = {
        (told, part["workload"].iloc[0]): (part["achieved_rate_rps"] / part["threads"]).median()
        for told, part in each_configuration(sent)
    }
    sent = pd.Series(
        rates,
        dtype=float,
        index=pd.MultiIndex.from_tuples(rates, names=["told", "workload"]) if rates else None,
    )
    sent = sent.groupby("workload").min() if rates else sent
    if sent.empty:
        return Markdown("**Found:** nothing: no valid run says what a script can send.")
    runs = every.runs[
        (every.runs["server"] == "kv-service")
        & (every.runs["generator"] == "loadgen")
        & ~every.runs["profiled"]
        & (every.runs["outcome"] == "completed")
    ]
    parts = [
        _asked(
            sent,
            runs[~runs["closed_loop"]],
            "offered_rate_rps",
            "At constant rates a thread is asked for at most",
            "the script may be what limits these runs",
        ),
        _asked(
            sent,
            runs[runs["closed_loop"]],
            "achieved_rate_rps",
            "In closed loops against the store a thread sends at most",
            "what both servers have in common, the script among it, may be what limits these runs, and "
            "not the store",
        ),
    ]
    verdict = (
        "none is"
        if not any(near for near, _ in parts)
        else f"{words.several(sorted({name for near, _ in parts for name in near}))} may be"
    )
    told = " ".join(text for _, text in parts if text) or "No run against the store has one of these scripts."
    others = sorted(set(runs["workload"]) - set(sent.index))
    rest = f" Without a valid run here: {words.several(others)}." if others else ""
    return Markdown(
        f"**Found:** {verdict if any(text for _, text in parts) else 'nothing to compare with'}. "
        f"Alone, on the server that does nothing, a thread sends {_of_each(sent)}. {told}{rest}"
    )


def _asked(
    sent: pd.Series, runs: pd.DataFrame, column: str, begin: str, otherwise: str
) -> tuple[list[str], str]:
    """The workloads of which over SCRIPT_NEAR of what is ``sent`` was asked by ``runs``, and a sentence with
    the largest shares; "" without runs."""
    asked = (runs[column] / runs["threads"]).groupby(runs["workload"]).max()
    both = (
        pd.DataFrame({"sent": sent, "asked": asked})
        .dropna()
        .assign(share=lambda row: row["asked"] / row["sent"])
        .sort_values("share", ascending=False)
    )
    if both.empty:
        return [], ""
    near = both[both["share"] > SCRIPT_NEAR]
    shares = words.several(
        [
            f"{words.share(row.share)} of that ({row.Index}, {words.rate(row.asked)})"
            for row in both.head(max(1, len(near))).itertuples()
        ]
    )
    return list(near.index), f"{begin} {shares}{f': {otherwise}' if len(near) else ''}."


def _of_each(sent: pd.Series) -> str:
    return words.several(
        [f"{words.rate(rate)} with {workload}" for workload, rate in sent.sort_values().items()]
    )
