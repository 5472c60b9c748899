"""How far a sweep is, in a notebook: a table that is drawn anew once a second, and a stop button.

    with SweepView() as view:
        execute(…, progress_of=view.progress)

The button sets a flag, and the thread that measures ends its run when it next looks up, 50 times a second
under load; a store that is being filled is filled first. No signal is needed, which only a main thread gets.
"""

import time
from html import escape
from typing import Self

from IPython.display import HTML, display

from kvstudy.measure.progress import Progress, Second
from kvstudy.plan.run_plan import PlannedRun
from kvstudy.units import format_duration

DRAWN_EVERY_S = 1.0
SHOWN_DONE = 6  # runs that ended last
ENDING = ("stop", "seal")  # phases of a run that end it, which nothing interrupts
_ROW = "<tr><td style='text-align:left'>{}</td><td style='text-align:left'>{}</td></tr>"


class WatchedProgress(Progress):
    """A ``Progress`` that is drawn as HTML."""

    wants_seconds = True

    def __init__(self, runs: list[PlannedRun], fill_s: float, view: "SweepView"):
        super().__init__(runs, fill_s, bar=False)
        self._view = view
        self._phase = ""
        self._second: Second | None = None
        self._ended: list[tuple[str, str]] = []
        self._drawn = 0.0
        self._interrupted = self._is_over = False
        view.planned = len(runs)

    def doing(self, phase: str) -> None:
        self._phase = phase
        if phase not in ENDING:
            self._end_if_stopped()
        if phase not in ("warm-up", "warm_up", "measure"):
            self._second = None
        self._draw()

    def tick(self) -> None:
        self._end_if_stopped()
        if time.monotonic() - self._drawn >= DRAWN_EVERY_S:
            self._draw()

    def second(self, second: Second) -> None:
        self._second = second  # drawn by the thread that measures, when it looks up next

    def end(self, run: PlannedRun, outcome: str) -> None:
        self._done += 1
        self._done_s += run.estimated_s
        self._view.completed += outcome.startswith("completed")
        self._ended.append((f"{run.configuration.summary()}, repeat {run.repeat}", outcome))
        self._draw()

    def over(self) -> None:
        """Nothing more is measured: what is left stays so."""
        self._run = None
        self._is_over = True
        self._draw()

    def _end_if_stopped(self) -> None:
        """As Ctrl-C does. Once: what follows is the sealing."""
        if self._view.was_stopped and not self._interrupted:
            self._interrupted = True
            raise KeyboardInterrupt

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        self._view.draw(self._html())

    def _html(self) -> str:
        run = self._run
        rows = [(f"{self._done} of {self._runs} runs", self._bar_html())]
        if run is not None and self._done < self._runs:
            rows.append(
                (
                    f"run {self._done + 1}",
                    f"{run.configuration.summary()}, repeat {run.repeat}: {self._phase}",
                )
            )
            rows.append(("this second", _describe_second(self._second)))
        rows += self._ended[-SHOWN_DONE:][::-1]
        return (
            "<table style='line-height:1.4'>"  # a widget's lines are as far apart as its buttons are high
            + "".join(
                _ROW.format(escape(name), text if text.startswith("<progress") else escape(text))
                for name, text in rows
            )
            + "</table>"
        )

    def _bar_html(self) -> str:
        if self._is_over:
            return "all measured" if self._done >= self._runs else "ended before the others"
        of_run = min(time.monotonic() - self._run_start, self._run.estimated_s) if self._run else 0.0
        done_s = min(self._done_s + of_run * (self._done < self._runs), self._total_s)
        left = format_duration(round(self._total_s - done_s))
        return (
            f"<progress value='{done_s:.0f}' max='{max(self._total_s, 1):.0f}'></progress> about {left} left"
        )


class SweepView:
    """``was_stopped``: somebody wants it to end. ``planned``, ``completed``: runs.

    Table and button are widgets: a page that is loaded again gets them from the kernel, as they are then."""

    def __init__(self):
        self.was_stopped = False
        self.planned = self.completed = 0
        self._progress: WatchedProgress | None = None

    def progress(self, runs: list[PlannedRun], fill_s: float) -> WatchedProgress:
        self._progress = WatchedProgress(runs, fill_s, self)
        return self._progress

    def draw(self, html: str) -> None:
        self._table.value = html

    def stop(self, _button: object = None) -> None:
        """Ends the measurement, from any thread; nothing when it is over. That may take as long as a launch
        or a fill: the button says at once that it was heard."""
        self.was_stopped = True
        self._button.description, self._button.disabled = "Stopping", True

    def __enter__(self) -> Self:
        from ipywidgets import HTML as Table
        from ipywidgets import Button, VBox

        self._table = Table()
        self._button = Button(
            description="Stop",
            icon="stop",
            tooltip="seal the run under way as failed and keep those before it",
        )
        self._button.on_click(self.stop)
        self._both = VBox([self._button, self._table])
        self._place = display(self._both, display_id=True)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._progress is not None:
            self._progress.over()
        self._both.children = [self._table]  # also where the page was loaded again
        if self._place is not None:
            self._place.update(HTML(self._table.value))  # a saved notebook shows it without its kernel


def _describe_second(second: Second | None) -> str:
    return "" if second is None else f"{second.rate_rps} answers/s, p50 {second.p50}, p99 {second.p99}"
