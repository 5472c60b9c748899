"""The widgets of an Explorer: each choice fills the choosers below it, then the views are drawn anew."""

import math
from collections.abc import Callable

import ipywidgets as widgets

from kvstudy.present.explore import PERCENTILES, Choices, Explorer

_WIDE = {"description_width": "90px"}


def choosers(explorer: Explorer, choices: Choices) -> tuple[widgets.VBox, Callable[[], None]]:
    """Drop-downs of experiment, variant, run and percentile, and a slider of seconds; and what sets them to
    the explorer's choice, whoever made it. Seconds in part are shown whole."""
    now = explorer.choice
    wide = {"style": _WIDE, "layout": widgets.Layout(width="100%", max_width="640px")}
    experiment = widgets.Dropdown(
        options=choices.experiments, value=now.experiment, description="experiment", **wide
    )
    variant = widgets.Dropdown(
        options=choices.variants(now.experiment), value=now.variant, description="variant", **wide
    )
    run = widgets.Dropdown(
        options=choices.runs(now.experiment, now.variant), value=now.run_id, description="run", **wide
    )
    percentile = widgets.SelectionSlider(
        options=sorted({*PERCENTILES, now.percentile}), value=now.percentile, description="percentile", **wide
    )
    low, high = choices.seconds(now.experiment, now.run_id)
    seconds = widgets.IntRangeSlider(
        value=(now.start_s, now.stop_s),
        min=low,
        max=high,
        description="seconds",
        continuous_update=False,
        **wide,
    )
    following = []  # not empty while a chooser is set by the program

    def set_from_choice() -> None:
        following.append(1)
        try:
            at = explorer.choice
            experiment.value = at.experiment
            variant.options, variant.value = choices.variants(at.experiment), at.variant
            run.options, run.value = choices.runs(at.experiment, at.variant), at.run_id
            percentile.options = sorted({*percentile.options, at.percentile})
            percentile.value = at.percentile
            seconds.max = choices.seconds(at.experiment, at.run_id)[1]
            seconds.value = (math.floor(at.start_s), math.ceil(at.stop_s))
        finally:
            following.pop()

    def chosen(name: str):
        def answer(change: dict) -> None:
            if following or change["new"] is None:
                return
            if name == "seconds":
                start_s, stop_s = change["new"]
                if start_s == stop_s:
                    # A time without length: chosen anew, the second from there on, or the last.
                    start_s = min(start_s, seconds.max - 1)
                    seconds.value = start_s, start_s + 1
                else:
                    explorer.choose(start_s=start_s, stop_s=stop_s)
                return
            explorer.choose(**{name: change["new"]})

        return answer

    for name, widget in (
        ("experiment", experiment),
        ("variant", variant),
        ("run_id", run),
        ("percentile", percentile),
        ("seconds", seconds),
    ):
        widget.observe(chosen(name), "value")
    return widgets.VBox([experiment, variant, run, percentile, seconds]), set_from_choice
