"""What each page's card says: ``index(tables)`` has one per question of the study, in the order of the pages.

    headlines.index(tables, notebook.beside(tables))

Of what the reader's own runs decide less than the reference's, a card says the reference's answer and, beside
it, what his own runs say.

A card is a sentence of at most 20 words with the one number that matters, to two digits; the interval is on
the page. Where nothing was measured, or nothing is decided, the card says that. No card tests anything: its
words are those that its page says, of the same family.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import nbformat
import pandas as pd

from kvstudy.analyse import growth as analysed_growth
from kvstudy.analyse import peers as analysed_peers
from kvstudy.analyse.answers import RULER, Answer, options, profiles, ruler, service, service_tables, tail
from kvstudy.analyse.claim import Claim, Place
from kvstudy.analyse.comparison.words import CANNOT_TELL, FASTER, MIN_RUNS, SAME, SLOWER
from kvstudy.analyse.configuration import CPU, INVALID
from kvstudy.analyse.duets import Duet
from kvstudy.analyse.intervention import CAUSED
from kvstudy.analyse.intervention import EXPERIMENT as CAUSES
from kvstudy.analyse.linked import LINKED
from kvstudy.analyse.options import OF_WORKLOAD
from kvstudy.analyse.replication import verdicts
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.tail import NO_EVENT
from kvstudy.present import claim_text, claims, growth, peers, words
from kvstudy.present.cards import BAD, BARS_MAX, GOOD, NOT_MEASURED, OPEN, PLAIN, Bar, Card, Shown, valid
from kvstudy.present.findings import describe_unanswered
from kvstudy.present.notebook import published_reports
from kvstudy.project import project_root

WORDS_MAX = 20
_BETTER = ("faster", "cheaper", "better")
_DIGITS = 2
_PREFERRED = ("p50", CPU, "p99")  # of the measures of a change: which one its card tells
_AT = {"p50": " at the median", CPU: " in CPU per request"}
_SHORT = {CPU: "CPU"}
_CHANGES_MAX = 4  # bars: the sentence above them is long
_SENTENCES = {"wal=always": "Syncing the log before every answer (wal=always)"}
_WORKLOADS = {"mixed": "half reads, half writes"}
_STORE = ("store", "flush", "compaction", "WAL")
_PARTS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 10: "a tenth"}
_PART_WITHIN = 0.1


@dataclass(frozen=True)
class _CardContent:
    """``of``: what the bars show; ``runs``: those that the answer rests on, None for all of the rule;
    ``decides``: how much, to be held against the same of other runs; ``valid``: the first badge, None for
    how many of the runs are valid, "" for none."""

    answer: str
    of: str = ""
    bars: tuple[Bar, ...] | list[Bar] = ()
    doubts: tuple[str, ...] | list[str] = ()
    runs: Tables | None = None
    decides: int = 0
    valid: str | None = None


def index(tables: Tables, reference: Tables | None = None, duets: Sequence[Duet] = ()) -> Shown:
    """A card for every notebook but the first; one without a rule here says what its notebook begins with.
    ``reference``: the committed runs, where ``tables`` has the reader's own in the place of some; ``duets``:
    ``options.measured_duets()``."""
    cards = {card.page: card for card in (rule(tables, reference, duets) for rule in CARDS)}
    pages = sorted((project_root() / "notebooks").glob("[0-9][0-9]-*.ipynb"))[1:]
    return Shown([cards.get(page.stem) or _beginning(page) for page in pages])


def _beginning(page: Path) -> Card:
    """The title and the first sentence of a notebook."""
    first = next(
        cell.source for cell in nbformat.read(page, as_version=4).cells if cell.cell_type == "markdown"
    )
    title, _, rest = first.partition("\n")
    words_of = re.split(r"(?<=[.;:?])\s", re.sub(r"[*`\[\]]", "", rest).strip(), maxsplit=1)[0].split()
    sentence = " ".join(words_of[:WORDS_MAX]).rstrip(",.;: ")
    return Card(
        page.stem,
        title.removeprefix("# ").strip(),
        sentence + ("…" if len(words_of) > WORDS_MAX else "."),
    )


def _card(
    page: str,
    question: str,
    experiments: Callable[[Tables], Tables] | None = None,
    unmeasured: str = NOT_MEASURED,
    beside: bool = False,
):
    """A rule for one page: the function returns what is told, or None where nothing was measured. ``beside``:
    it takes the reference and the duets itself, and chooses by parts."""

    def rule(tell):
        def said(tables: Tables, reference: Tables | None, duets: Sequence[Duet] = ()) -> _CardContent | None:
            mine = experiments(tables) if experiments else tables
            if mine.runs.empty and not duets:
                return None
            # Whole tables keep what was asked of them, and the sentences of the page ask the same.
            content = tell(tables, reference, duets) if beside else tell(mine)
            return content and replace(content, runs=content.runs or mine)

        def card(tables: Tables, reference: Tables | None = None, duets: Sequence[Duet] = ()) -> Card:
            content, own = said(tables, reference, duets if beside else ()), ""
            if reference is not None and not beside and (content is None or content.runs.own_runs):
                theirs = said(reference, None)
                # Of two that decide nothing the one that has something to show.
                if theirs and _says(theirs) > (_says(content) if content else (0, False)):
                    content, own = theirs, _own(content, theirs) if content else ""
            if content is None:
                return Card(page, question, unmeasured)
            left = len(content.bars) > BARS_MAX
            of = f"{content.of} ({BARS_MAX} of {len(content.bars)})" if left else content.of
            counted = valid(content.runs.runs) if content.valid is None else content.valid
            whose = f"{_whose(content.runs)}: " if reference is not None else ""
            badges = (f"{whose}{counted}",) if counted else ()
            return Card(
                page,
                question,
                content.answer,
                of,
                tuple(content.bars)[:BARS_MAX],
                (*badges, *content.doubts),
                own,
            )

        return card

    return rule


def _says(content: _CardContent) -> tuple[int, bool]:
    return content.decides, bool(content.bars)


def _own(content: _CardContent, theirs: _CardContent) -> str:
    """What the reader's own runs say beside the reference's answer, which decides more."""
    begun = claim_text.less(content.runs.own_runs, content.decides, theirs.decides)
    return f"{begun}: {content.answer.removeprefix(CANNOT_TELL.capitalize()).lstrip(': ')}"


def _whose(tables: Tables) -> str:
    own = tables.own_runs
    return (
        claim_text.BOTH if 0 < own < len(tables.runs) else claim_text.YOURS if own else claim_text.REFERENCE
    )


def _who_decides(
    ask: Callable[[Tables], Answer | None], experiment: str, tables: Tables, reference: Tables | None
) -> tuple[Answer | None, Tables]:
    """The answer of ``tables``, or of ``reference`` where the reader's own runs of the experiment decide
    less; and of which of the two it is."""
    answer = ask(tables)
    if reference is not None and tables.select(experiment=experiment).own_runs:
        theirs = ask(reference)
        if theirs is not None and theirs.decides > (answer.decides if answer else 0):
            return theirs, reference
    return answer, tables


def _left_open(experiments: Sequence[str]) -> list[str]:
    """The badge of a card that chooses by experiments: of which the reader's own runs decide less."""
    return [f"your own cannot tell yet of {words.several(sorted(experiments))}"] if experiments else []


def _of(*names: str, profiled: bool | None = None) -> Callable[[Tables], Tables]:
    def chosen(tables: Tables) -> Tables:
        found = tables.select(experiment=list(names))
        return found if profiled is None else found.select(profiled=profiled)

    return chosen


def _of_reports(tables: Tables) -> Tables:
    return tables.only(tables.runs.loc[tables.runs["experiment"].str.startswith("report-"), "run_id"])


def _of_service(tables: Tables) -> Tables:
    return service_tables(tables).select(profiled=False)


def _findable(found: list[Claim]) -> list[str]:
    """Which difference the undecided comparisons could have found, in the middle."""
    undecided = [claim for claim in found if claim.word == CANNOT_TELL and claim.sides is not None]
    if not undecided:
        return []
    limits = sorted(
        math.inf if claim.findable_percent is None else claim.findable_percent for claim in undecided
    )
    middle = limits[len(limits) // 2]
    if math.isinf(middle):
        without = [claim for claim in undecided if claim.findable_percent is None]
        few = all(min(claim.sides) < MIN_RUNS for claim in without)
        return ["too few runs to find any difference" if few else "may miss even large differences"]
    limit = words.share(middle / 100, _DIGITS)
    some = len(undecided) < len(found)
    return [f"undecided: could find only over {limit}" if some else f"finds only differences over {limit}"]


def _name(workload: str) -> str:
    return _WORKLOADS.get(workload, words.factor(workload))


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


@_card("01-instrument", "Can the ruler be trusted?", _of(*RULER))
def _ruler(tables: Tables):
    noise, stall = ruler.noise(tables), ruler.stall(tables)
    if noise is None and stall is None:
        return None
    enough = [
        claim for claim in (noise.claims if noise else ()) if min(claim.sides or (0,)) >= MIN_RUNS
    ]  # of fewer runs no word could be false
    alarms = [claim for claim in enough if claim.differs]
    if not enough:
        answer = "Cannot tell: the same thing was not measured twice with enough valid runs."
    elif alarms:
        of = f"{len(alarms)} of {len(enough)} comparisons"
        answer = f"Mostly: {of} of a thing with itself are false alarms."
    else:
        of = words.counted(len(enough), "comparison")
        answer = f"No false alarm in {of} of one thing with itself{_agreed(enough)}."
    names = {
        ruler.RESPONSE: "from the due time",
        ruler.SERVICE: "from the send",
        ruler.CLOSED: "closed loop",
    }
    bars = [
        Bar(
            names[claim.variant],
            claim.estimate,
            words.latency(claim.estimate, _DIGITS),
            GOOD if claim.variant == ruler.RESPONSE else BAD,
        )
        for claim in (stall.claims if stall else ())
    ]
    return _CardContent(
        answer,
        "p99 seen of a service that stands still for 1 s",
        bars,
        _findable(list(noise.claims if noise else ())),
        tables.select(experiment=["noise", "stall"], profiled=False),
        len(enough) + len(bars),
    )


def _agreed(found: Sequence[Claim]) -> str:
    """How many medians of one thing with itself the page calls the same."""
    medians = [claim for claim in found if claim.measure == "p50"]
    same = [claim for claim in medians if claim.word == SAME]
    return f"; {len(same)} of {len(medians)} medians {claim_text.word(same[0])}" if same else ""


@_card("02-sweep", "How are runs measured?")
def _sweep(tables: Tables):
    counts = tables.runs["verdict"].value_counts()
    bars = [
        Bar(name, float(counts.get(verdict, 0)), words.counted(int(counts.get(verdict, 0)), "run"), tone)
        for verdict, name, tone in (
            ("PASS", "all checks passed", GOOD),
            ("WARN", "with a warning", PLAIN),
            ("FAIL", "left out", BAD),
        )
    ]
    return _CardContent(
        "A fresh service each time: launched, filled, warmed up, measured, checked and sealed.",
        f"what the checks said of {words.counted(len(tables.runs), 'run')} of "
        f"{words.counted(tables.runs['experiment'].nunique(), 'experiment')}",
        bars,
    )


@_card("03-percentiles", "How is latency distributed?", _of_service)
def _percentiles(tables: Tables):
    found = service.p99_of_workloads(tables)
    if not _has_claims(found):
        return _silent(found)
    fast, slow = found.claims[0], found.claims[-1]
    place = slow.subject
    where = f"{words.rate(place.offered_rate_rps)} on {words.value('connections', place.connections)}"
    like_us = slow.estimate if slow.estimate < 100 * fast.estimate else None  # no line of zeros

    def text(claim: Claim) -> str:
        return words.latency(claim.estimate, _DIGITS, like_us)

    answer = f"p99 at {where}: {text(fast)} ({_whose_of_two(fast, slow)})"
    answer += f" to {text(slow)} ({_whose_of_two(slow, fast)})." if slow is not fast else "."
    bars = [
        Bar(_name(claim.subject.workload), claim.estimate, text(claim), hover=claim.variant)
        for claim in found.claims
    ]
    asked = tables.select(
        experiment=place.experiment,
        connections=place.connections,
        offered_rate_rps=place.offered_rate_rps,
        profiled=False,
    )
    decides = sum(claim.interval is not None for claim in {fast, slow})
    return _CardContent(answer, f"p99 at {where}", bars, (), asked, decides)


def _whose_of_two(claim: Claim, other: Claim) -> str:
    """Its workload; of the same one the first thing that tells it from the other, too."""
    workload = _name(claim.subject.workload)
    if claim.subject.workload != other.subject.workload:
        return workload
    differs = [part for part in claim.variant.split(", ") if part not in other.variant.split(", ")]
    return ", ".join((workload, *(part.removeprefix("variant ") for part in differs[:1])))


def place_of_percentiles(tables: Tables) -> tuple[str, ...]:
    """What the panels of 03 open at: workload, connections and rate of the slowest in the page's answer."""
    found = service.p99_of_workloads(tables)
    if not _has_claims(found):
        return ()
    place = found.claims[-1].subject
    return (
        place.workload,
        words.value("connections", place.connections),
        words.rate(place.offered_rate_rps),
    )


@_card("04-capacity", "How much load is too much?", _of_service)
def _capacity(tables: Tables):
    found = service.rates_held(tables)
    if not _has_claims(found):
        return _silent(found)
    combinations = found.claims[1:]
    lost = [claim for claim in combinations if claim.word == service.MET_ITS_LIMIT]
    held = [claim.estimate for claim in combinations if claim.decided and not math.isnan(claim.estimate)]
    if lost:
        first = min(lost, key=lambda claim: claim.ends[1])
        place, missed = first.subject, first.ends[1]
        on = f"on {words.value('connections', place.connections)}"
        who = f"{_begun(_name(place.workload))}{f' ({first.variant})' if first.variant else ''}"
        answer = (
            f"{who}: not even {words.rate(missed)}, the lowest offered, are held {on}."
            if math.isnan(first.estimate)
            else f"{who}: {words.rate(first.estimate)} are held {on}, {words.count(missed)} are not."
        )
    elif held:
        answer = f"More than we offered: every rate up to {words.rate(max(held))} was held."
    else:
        answer = "Cannot tell: too few runs at each rate."
    unsure = sum(not claim.decided for claim in combinations)
    return _CardContent(
        answer,
        "highest rate held (≥: no higher one was offered)",
        _rates([claim for claim in combinations if claim.decided]),
        [f"{unsure} of {words.counted(len(combinations), 'combination')} undecided"] if unsure else [],
        tables.select(search="", closed_loop=False, profiled=False),
        2 if lost else 1 if held else 0,
    )


def _rates(combinations: Sequence[Claim]) -> list[Bar]:
    """Of each workload the highest rate that it held, and whether a higher one was offered. Where there are
    too many bars, those that most workloads share are one."""
    best: dict[str, tuple[float, bool]] = {}
    for claim in combinations:
        if not math.isnan(claim.estimate):
            mine = (claim.estimate, math.isinf(claim.ends[1]))
            best[claim.subject.workload] = max(mine, best.get(claim.subject.workload, (0.0, False)))
    by_rate: dict[tuple[float, bool], list[str]] = {}
    for workload, rate in best.items():
        by_rate.setdefault(rate, []).append(_name(workload))
    most = max(by_rate.values(), key=len, default=[])
    together = len(best) > BARS_MAX and len(most) > 1
    others = "others" if len(by_rate) > 1 else "workloads"
    return [
        Bar(label, rate, f"{'≥ ' if no_higher else ''}{words.rate(rate)}", hover=", ".join(names))
        for (rate, no_higher), names in sorted(by_rate.items(), reverse=True)
        for label in ([f"each of {len(names)} {others}"] if together and names is most else names)
    ]


@_card("05-flame-graphs", "Where does the time go?", _of("reproduce", profiled=True))
def _time(tables: Tables):
    shares = profiles.shares(tables)
    found = profiles.network_and_store(shares)
    if found is None:
        return None
    top = profiles.at_highest_rate(claim for claim in found.claims if claim.measure == profiles.OF_NETWORK)
    if not any(claim.runs for claim in top):
        return _CardContent(f"{CANNOT_TELL.capitalize()}: no profiled run passed its checks.")
    names = [claim.subject.workload for claim in top]
    if len(set(names)) < len(names):
        of = words.counted(len(names), "configuration")
        return _CardContent(
            f"{CANNOT_TELL.capitalize()}: profiled runs of {of} at the highest rate share no median."
        )
    top = sorted(top, key=lambda claim: -claim.estimate)
    texts = [
        f"{_name(claim.subject.workload)} {words.share(claim.estimate, _DIGITS)}"
        for claim in (top if len(top) <= 2 else (top[0], top[-1]))
    ]
    shown = top[-1].subject  # where most goes elsewhere
    if all(claim.decided for claim in top):
        most = all(claim.word == profiles.MORE for claim in top)
        whole = "Most CPU goes" if most else "CPU that goes"
        answer = f"{whole} to the network and waiting for it: {', '.join(texts)}."
    else:
        fewest = words.counted(min(claim.runs for claim in top), "run")
        answer = (
            f"{CANNOT_TELL.capitalize()} from {fewest} each: network and waiting took {', '.join(texts)}."
        )
    decides = int(all(claim.decided for claim in top))
    of = f"share of CPU samples, {_name(shown.workload)}{_at_rate(shown.offered_rate_rps)}"
    return _CardContent(answer, of, _parts(shares, shown), decides=decides)


def _at_rate(rate_rps: float) -> str:
    return "" if math.isinf(rate_rps) else f" at {words.rate(rate_rps)}"


def _parts(shares: pd.DataFrame, of: Place) -> list[Bar]:
    """Where the CPU of one workload goes at this rate, the store's parts as one."""
    rate = shares["offered_rate_rps"].fillna(math.inf)
    here = shares[(shares["event"] == "cpu") & (shares["workload"] == of.workload) & shares["valid"]]
    here = here[rate[here.index] == of.offered_rate_rps]
    one = profiles.typical(here, "workload").set_index("subsystem")["share"]
    parts = one.drop(list(_STORE), errors="ignore").to_dict()
    parts["store, with flush and compaction"] = one.reindex(_STORE, fill_value=0.0).sum()
    return [
        Bar(name, share, words.share(share, _DIGITS))
        for name, share in sorted(parts.items(), key=lambda part: -part[1])
        if share > 0
    ]


def _counted_launches(launches: int, own: int, is_beside: bool) -> str:
    """``is_beside``: the reader has measured, so whose they are is said."""
    counted = f"{words.counted(launches, 'launch')} of duets"
    if 0 < own < launches:
        return f"{counted}, {own} yours"
    return f"{claim_text.YOURS if own else claim_text.REFERENCE}: {counted}" if is_beside else counted


@_card("06-before-after", "Did a change help?", _of_service, beside=True)
def _change(tables: Tables, reference: Tables | None, duets: Sequence[Duet] = ()):
    standing = options.standing(tables, reference)
    found = options.decided(standing, duets)
    undecided, _ = options.undecided(standing, duets)
    less = [name for name in standing.less if options.whose(standing, duets, name) != {True}]
    every = [claim for answer in (*found.values(), undecided) for claim in answer.claims]
    every = [claim for claim in every if not claim.variant.startswith(OF_WORKLOAD)]
    if not every:
        return None
    decided = [claim for claim in every if claim.word != CANNOT_TELL]
    differing = [claim for claim in decided if claim.differs and claim.measure != INVALID]
    asked = standing.tables.select(
        experiment=sorted({claim.subject.experiment for claim in every}), profiled=False
    )
    launches, of_own = options.count_launches(standing, duets)
    doubts = [
        f"{len(decided)} of {len(every)} decided",
        *([_counted_launches(launches, of_own, reference is not None)] if launches else []),
        *_findable(every),
        *_left_open(less),
    ]
    counted = "" if asked.runs.empty else None
    if not differing:
        answer = f"Of {len(every)} comparisons of an option with its default none shows a difference."
        return _CardContent(answer, doubts=doubts[1:], runs=asked, valid=counted)
    named: dict[tuple, Claim] = {}
    for claim in sorted(differing, key=_by_typical_and_size):  # of each option at its place one measure
        place = claim.subject
        named.setdefault((place.experiment, claim.variant, place.workload, place.connections), claim)
    first = min(differing, key=_by_measure_and_size)
    shown = sorted(named.values(), key=_by_typical_and_size)[:_CHANGES_MAX]
    answer = f"{_SENTENCES.get(first.variant, first.variant)} makes {_name(first.subject.workload)} "
    answer += f"{_how(first)}{_AT.get(first.measure, f' at {first.measure}')}."
    bars = [
        Bar(
            label,
            abs(math.log(claim.estimate)),
            f"{_SHORT.get(claim.measure, claim.measure)} {_times(claim.estimate)}",
            GOOD if claim.word in _BETTER else BAD,
            f"{claim.subject.experiment}: {claim.subject.workload}, "
            f"{words.value('connections', claim.subject.connections)}",
        )
        for claim, label in zip(shown, _apart(shown), strict=True)
    ]
    of = f"largest by median or CPU, {len(shown)} of {len(named)}"
    return _CardContent(answer, of, bars, doubts, asked, valid=counted)


def _apart(of_changes: Sequence[Claim]) -> list[str]:
    """A name for each: its variant, and of two of one variant also the workload, then the connections, where
    these differ. Two lines have no room for the name of an option beside them, where its value is a word."""
    places = [claim.subject for claim in of_changes]
    labels = [claim.variant for claim in of_changes]
    for more in (
        [_name(place.workload) for place in places],
        [words.value("connections", place.connections) for place in places],
    ):
        named = set(zip(labels, more, strict=True))
        differs = {label for label in labels if sum(label == name for name, _ in named) > 1}
        labels = [
            f"{label}, {also}" if label in differs else label
            for label, also in zip(labels, more, strict=True)
        ]
    return [re.sub(r"^[a-z_]+=(?=[a-z]+, )", "", label) for label in labels]


def _by_measure_and_size(claim: Claim) -> tuple[int, float]:
    """Sorts the preferred measure first, and of one measure the largest difference."""
    measure = _PREFERRED.index(claim.measure) if claim.measure in _PREFERRED else len(_PREFERRED)
    return measure, -abs(math.log(claim.estimate))


def _by_typical_and_size(claim: Claim) -> tuple[bool, float]:
    """Sorts what is said of a typical request before its tail, and of these the largest difference first."""
    return claim.measure not in (_PREFERRED[0], CPU), -abs(math.log(claim.estimate))


def _how(claim: Claim) -> str:
    """ "5.9 × slower"."""
    return f"{_times(_away(claim.estimate))} {claim.word}"


def _times(ratio: float) -> str:
    """Near 1 with one digit more: 1.04 is not 1.0."""
    return words.times(ratio, _DIGITS + (_away(ratio) < 1.095))


def _away(ratio: float) -> float:
    return ratio if ratio >= 1 else 1 / ratio


@_card(
    "07-tail",
    "Why is the slow one percent slow?",
    _of("reproduce", "tail-intervention", profiled=False),
    beside=True,
)
def _tail(tables: Tables, reference: Tables | None, _duets: Sequence[Duet] = ()):
    caused, of_cause = _who_decides(tail.caused, CAUSES, tables, reference)
    linked, of_links = _who_decides(tail.linked, tail.EXPERIMENT, tables, reference)
    if not _has_claims(linked):
        return _silent(linked)
    _limit, *kinds = linked.claims
    causes = [claim for claim in (caused.claims if caused else ()) if claim.word == CAUSED]
    ties = [claim for claim in kinds if claim.word == LINKED]
    who = words.factor(kinds[0].subject.workload)
    if causes:
        first = causes[0]
        answer = f"{_begun(_cause(first))}, p99 is {_part(first.estimate)}."
    elif ties:
        kinds_of = words.several([words.factor(claim.variant) for claim in ties[:2]])
        answer = f"Slow answers of {who} are linked to {kinds_of}."
    else:
        answer = f"Cannot tell: no kind of event is shown to be linked to slow {who} answers."
    if causes:
        of = "p99 without it, beside p99 as usual"
        bars = [_felt(claim, words.times, CAUSED) for claim in caused.claims]
    else:
        of = f"share of slow {who} answers that felt it"
        ordered = sorted(kinds, key=lambda claim: (claim.variant == NO_EVENT, -claim.estimate))
        bars = [_felt(claim, words.share, LINKED) for claim in ordered]
    held_off = caused is not None and bool(caused.claims)
    doubts = (
        [] if causes else ["no cause is proven" if held_off else "nothing was held off: no cause is proven"]
    )
    less = [name for name, of in ((CAUSES, of_cause), (tail.EXPERIMENT, of_links)) if of is reference]
    asked = (
        of_cause.select(experiment=first.subject.experiment, profiled=False)
        if causes
        else of_links.select(
            experiment=tail.EXPERIMENT,
            workload=tail.WORKLOAD,
            offered_rate_rps=kinds[0].subject.offered_rate_rps,
            profiled=False,
        )
    )
    return _CardContent(answer, of, bars, [*doubts, *_left_open(less)], asked)


def _felt(claim: Claim, told: Callable[[float, int], str], bad: str) -> Bar:
    tone = {bad: BAD, CANNOT_TELL: OPEN}.get(claim.word, PLAIN)
    return Bar(words.factor(claim.variant), claim.estimate, told(claim.estimate, _DIGITS), tone)


def _cause(claim: Claim) -> str:
    """What was shown to make the tail, and what went away with it, which cannot be told apart from it."""
    cause = words.factor(claim.variant)
    if not claim.also:
        return f"{cause} causes it: without it"
    with_it = words.several([words.factor(kind) for kind in claim.also])
    if (claim.variant, claim.also) == ("flush", ("compaction",)):
        return f"{cause} or the {with_it} after it: without both"
    return f"{cause}, or {with_it} that went away with it: without them"


def _part(ratio: float) -> str:
    """ "about a fifth" where it is one, else "0.40 ×"."""
    near = [name for number, name in _PARTS.items() if abs(ratio * number - 1) <= _PART_WITHIN]
    return f"about {near[0]}" if near else words.times(ratio, _DIGITS)


@_card("08-published-reports", "Do five published reports hold?", _of_reports, beside=True)
def _published(tables: Tables, reference: Tables | None, duets: Sequence[Duet] = ()):
    if _of_reports(tables).runs.empty:
        return None
    judged = claims.judge(published_reports(), tables, reference, duets)
    if judged.empty or not (judged["runs"] > 0).any():
        return None
    counts = judged["verdict"].value_counts()
    numbers = {verdict: int(counts.get(verdict, 0)) for verdict in verdicts.VERDICTS}
    answer = f"Of {len(judged)} claims {numbers[verdicts.REPRODUCED]} reproduce; "
    answer += f"{numbers[verdicts.NOT_REPRODUCED]} do not"
    answer += (
        f", and {numbers[verdicts.MISTAKEN]} contradict their own data."
        if numbers[verdicts.MISTAKEN]
        else "."
    )
    tones = {verdicts.REPRODUCED: GOOD, verdicts.NOT_REPRODUCED: BAD, verdicts.MISTAKEN: BAD}
    bars = [
        Bar(verdict, float(number), words.counted(number, "claim"), tones.get(verdict, PLAIN))
        for verdict, number in numbers.items()
        if number
    ]
    counting = words.of_which_count(len(claims.counting(tables)), len(_of_reports(tables).runs), "run")
    return _CardContent(answer, "what our runs say of each claim", bars, valid=counting)


@_card("09-explore", "What do you want to know?")
def _explore(tables: Tables):
    runs, counts = words.counted(len(tables.runs), "run"), tables.runs["experiment"].value_counts()
    return _CardContent(
        f"In JupyterLab (make lab), choose any of {runs}, a percentile and some seconds; every view follows.",
        "experiments with most runs",
        [Bar(name, float(count), words.counted(count, "run")) for name, count in counts.items()],
    )


@_card(
    "10-peers",
    "How does the service compare with other programs?",
    _of(analysed_peers.EXPERIMENT),
    "Not measured yet: make peers, about five minutes.",
)
def _peers(tables: Tables):
    names = analysed_peers.peers(tables)
    if len(names) < 2:
        return None
    of, bars = _beside_peers(tables, names[0])
    return _CardContent(f"{peers.headline(tables)}.", of, bars, decides=len(peers.decided(tables)))


def _beside_peers(tables: Tables, ours: str) -> tuple[str, list[Bar]]:
    """p50 of ours and of each peer at the one place where most were measured; of several the one where most
    is decided, then the smallest values at the lowest rate."""
    rows = tables.cached(analysed_peers.compared)
    rows = rows[(rows["measure"] == peers.P50) & (rows["differs"] == "")]
    places = ["value_bytes", "offered_rate_rps", "connections", "workload"]
    if rows.empty:
        return "", []
    shared = (
        rows.assign(decided=rows["word"] != CANNOT_TELL)
        .groupby(places)
        .agg({"server": "nunique", "decided": "sum"})
        .sort_values(["server", "decided"], ascending=False, kind="stable")
    )
    size, rate, connections, workload = shared.index[0]
    here = rows[(rows[places] == [size, rate, connections, workload]).all(axis=1)]
    tones = {SLOWER: BAD, FASTER: GOOD, CANNOT_TELL: OPEN}
    bars = [Bar(ours, here["before"].iloc[0], words.latency(here["before"].iloc[0], _DIGITS))] + [
        Bar(
            row.server,
            row.after,
            words.latency(row.after, _DIGITS),
            tones.get(row.word, PLAIN),
            f"{row.server}: {words.word(row)}",
        )
        for row in here.itertuples()
    ]
    return f"p50 of {_name(workload)}, {words.chosen_size(size)}, {words.rate(rate)}", bars


_of_growths = _of(*(one.experiment for one in analysed_growth.growths()), profiled=False)


@_card(
    "11-growth",
    "How does the cost grow with the work?",
    _of_growths,
    "Not measured yet: kvstudy run experiments/connections.yaml, about 3 minutes.",
    beside=True,
)
def _growth(tables: Tables, reference: Tables | None, _duets: Sequence[Duet] = ()):
    if _of_growths(tables).runs.empty:
        return None
    grown, less, asked = [], [], _of_growths(tables)
    for one in analysed_growth.growths():
        _, of = _who_decides(partial(_p99_of, one), one.experiment, tables, reference)
        grown += growth.p99_of_each(of, one)
        if of is reference:
            less.append(one.experiment)
            mine = asked.runs["experiment"] != one.experiment
            asked = asked.only(asked.runs.loc[mine, "run_id"]).joined(
                of.select(experiment=one.experiment, profiled=False)
            )
    if not grown:
        return _CardContent(f"{CANNOT_TELL.capitalize()}: no valid runs differ in the amount of work alone.")
    label, claim = growth.answered(grown)
    work = label.partition(" (")[0].replace("× ", "× the ")
    told = claim_text.word(claim) if claim.decided else "not decided"
    decided = " as long" if claim.decided and claim.differs else f": {told}"
    bars = [
        Bar(
            label,
            one.estimate,
            words.times(one.estimate, _DIGITS),
            OPEN if one.word == CANNOT_TELL else PLAIN,
            f"{label}: {claim_text.word(one)}",
        )
        for label, one in grown
    ]
    return _CardContent(
        f"With {work} p99 is {words.times(claim.estimate, _DIGITS)}{decided}.",
        "p99 at the most work, to that at the least",
        bars,
        _left_open(less),
        asked,
    )


def _p99_of(one: analysed_growth.Growth, tables: Tables) -> Answer:
    return Answer(tuple(claim for _, claim in growth.p99_of_each(tables, one)), 0)


def _has_claims(answer: Answer | None) -> bool:
    return answer is not None and bool(answer.claims)


def _silent(answer: Answer | None):
    """Of a question that was measured, and none of whose runs counts."""
    if answer is None:
        return None
    return _CardContent(f"{_begun(describe_unanswered(answer))}.")


CARDS = (
    _ruler,
    _sweep,
    _percentiles,
    _capacity,
    _time,
    _change,
    _tail,
    _published,
    _explore,
    _peers,
    _growth,
)

OF_ANY_EXPERIMENT = (_percentiles, _capacity, _time)


def of_experiment(tables: Tables) -> dict[str, Card]:
    """By page the answers to what can be asked of any experiment, here of the one of ``tables``; none where
    nothing was measured."""
    every = (rule(tables) for rule in OF_ANY_EXPERIMENT)
    return {card.page: card for card in every if card.answer != NOT_MEASURED}
