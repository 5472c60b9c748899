"""What each page's card says: ``index(tables)`` has one per question of the study, in the order of the pages.

A card is a sentence of at most 20 words with the one number that matters; the interval is on the page. Where
nothing was measured, or nothing is decided, the card says that.
"""

import math
import re
from collections.abc import Callable
from pathlib import Path

import nbformat

from kvstudy.analyse.answers import RULER, Answer, options, ruler, service, tail
from kvstudy.analyse.claim import Claim
from kvstudy.analyse.comparison.words import CANNOT_TELL
from kvstudy.analyse.configuration import INVALID
from kvstudy.analyse.intervention import CAUSED
from kvstudy.analyse.linked import LINKED
from kvstudy.analyse.replication import verdicts
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.tail import NO_EVENT
from kvstudy.present import claims, flame, profiled_runs, words
from kvstudy.present.cards import BAD, BARS_MAX, GOOD, PLAIN, Bar, Card, Shown, valid
from kvstudy.present.flame import NETWORK
from kvstudy.present.notebook import published_reports
from kvstudy.project import project_root

WORDS_MAX = 20
_BETTER = ("faster", "cheaper", "better")
_OF_WORKLOAD = ("key_", "value_", "distribution")  # what is asked, no change of the service


def index(tables: Tables) -> Shown:
    """A card for every notebook but the first; one without a rule here says what its notebook begins with."""
    told = {card.page: card for card in (rule(tables) for rule in CARDS)}
    pages = sorted((project_root() / "notebooks").glob("[0-9][0-9]-*.ipynb"))[1:]
    return Shown([told.get(page.stem) or _beginning(page) for page in pages])


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


def _card(page: str, question: str, experiments: Callable[[Tables], Tables] | None = None):
    """A rule for one page: the function tells (answer, what the bars are, bars, doubts), or None where
    nothing was measured."""

    def rule(tell):
        def card(tables: Tables) -> Card:
            mine = experiments(tables) if experiments else tables
            if mine.runs.empty or (told := tell(mine)) is None:
                return Card(page, question)
            answer, of, bars, doubts = told
            return Card(page, question, answer, of, tuple(bars)[:BARS_MAX], (valid(mine.runs), *doubts))

        return card

    return rule


def _of(*names: str, profiled: bool | None = None) -> Callable[[Tables], Tables]:
    def chosen(tables: Tables) -> Tables:
        found = tables.select(experiment=list(names))
        return found if profiled is None else found.select(profiled=profiled)

    return chosen


def _of_reports(tables: Tables) -> Tables:
    return tables.only(tables.runs.loc[tables.runs["experiment"].str.startswith("report-"), "run_id"])


def _of_service(tables: Tables) -> Tables:
    return tables.only(
        tables.runs.loc[~tables.runs["experiment"].isin(RULER) & ~tables.runs["profiled"], "run_id"]
    )


def _findable(found: list[Claim]) -> list[str]:
    """Which difference the undecided comparisons could have found, in the middle."""
    limits = sorted(
        math.inf if claim.findable_percent is None else claim.findable_percent
        for claim in found
        if claim.word == CANNOT_TELL and claim.sides is not None
    )
    if not limits:
        return []
    middle = limits[len(limits) // 2]
    return [f"undecided ones could find {'nothing' if math.isinf(middle) else f'over {middle:.0f} %'}"]


@_card("01-instrument", "Can the ruler be trusted?", _of(*RULER))
def _ruler(tables: Tables):
    noise, stall = ruler.noise(tables), ruler.stall(tables)
    if noise is None and stall is None:
        return None
    alarms = [claim for claim in noise.claims if claim.differs] if noise else []
    if noise is None or not noise.claims:
        answer = "Cannot tell: the same thing was not measured twice with enough valid runs."
    elif alarms:
        of = f"{len(alarms)} of {len(noise.claims)} comparisons"
        answer = f"Mostly: {of} of a thing with itself are false alarms."
    else:
        of = words.counted(len(noise.claims), "comparison")
        answer = f"Yes: {of} of a thing with itself gave no false alarm."
    names = {
        ruler.RESPONSE: "from the due time",
        ruler.SERVICE: "from the send",
        ruler.CLOSED: "closed loop",
    }
    bars = [
        Bar(
            names[claim.variant],
            claim.estimate,
            words.latency(claim.estimate),
            GOOD if claim.variant == ruler.RESPONSE else BAD,
        )
        for claim in (stall.claims if stall else ())
    ]
    return (
        answer,
        "p99 seen of a service that stands still for 1 s",
        bars,
        _findable(list(noise.claims if noise else ())),
    )


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
    return (
        "A fresh service each time: launched, filled, warmed up, measured, checked and sealed.",
        "what its checks said of each run",
        bars,
        (f"{words.counted(tables.runs['experiment'].nunique(), 'experiment')}",),
    )


@_card("03-percentiles", "How is latency distributed?", _of_service)
def _percentiles(tables: Tables):
    found = service.p99_of_workloads(tables)
    if not _has_claims(found):
        return _silent(found)
    fast, slow = found.claims[0], found.claims[-1]
    rate = words.rate(fast.subject.offered_rate_rps)
    place = f"{rate} on {words.value('connections', fast.subject.connections)}"
    answer = f"At {rate}, one request in a hundred takes over {words.latency(fast.estimate)}"
    answer += (
        f" ({fast.subject.workload}) to {words.latency(slow.estimate)} ({slow.subject.workload})."
        if slow is not fast
        else "."
    )
    bars = [
        Bar(claim.subject.workload, claim.estimate, words.latency(claim.estimate)) for claim in found.claims
    ]
    return answer, f"p99 at {place}", bars, (f"p99 from {words.counted(found.runs, 'run')}",)


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
        answer = f"{words.rate(first.ends[1])} of {first.subject.workload} was not held"
        answer += f"; the highest rate held is {words.rate(max(held))}." if held else "; no rate was held."
    elif held:
        answer = f"More than we offered: every rate up to {words.rate(max(held))} was held."
    else:
        answer = "Cannot tell: too few runs at each rate."
    best: dict[str, float] = {}
    for claim in combinations:
        if not math.isnan(claim.estimate):
            best[claim.subject.workload] = max(claim.estimate, best.get(claim.subject.workload, 0.0))
    ordered = sorted(best.items(), key=lambda item: -item[1])
    bars = [Bar(workload, rate, words.rate(rate)) for workload, rate in ordered]
    unsure = sum(not claim.decided for claim in combinations)
    return (
        answer,
        "highest rate held, by workload",
        bars,
        [f"{unsure} of {words.counted(len(combinations), 'combination')} undecided"] if unsure else [],
    )


@_card("05-flame-graphs", "Where does the time go?", _of("reproduce", profiled=True))
def _time(tables: Tables):
    shares = flame.shares(tables)
    cpu = shares[shares["event"] == "cpu"] if len(shares) else shares
    if cpu.empty:
        return None
    known = profiled_runs.typical(cpu, "event").set_index("subsystem")["share"].sort_values(ascending=False)
    network = known.reindex(NETWORK, fill_value=0.0).sum()
    answer = f"{words.share(network)} of the CPU goes to the network and waiting for it"
    answer += f", {words.share(known.get('store', 0.0))} to the store."
    bars = [Bar(name, share, words.share(share)) for name, share in known.items()]
    return answer, "share of CPU samples, by subsystem", bars, ()


@_card("06-before-after", "Did a change help?", _of_service)
def _change(tables: Tables):
    found = options.decided(tables)
    undecided, of = options.undecided(tables)
    decided = [claim for answer in found.values() for claim in answer.claims]
    total = sum(of.values())
    if not total:
        return None
    differing = [
        claim
        for claim in decided
        if claim.differs and claim.measure != INVALID and not claim.variant.startswith(_OF_WORKLOAD)
    ]
    if not differing:
        answer = f"Of {total} comparisons of an option with its default none shows a difference."
        return answer, "", (), _findable(list(undecided.claims))
    largest = sorted(differing, key=lambda claim: -abs(math.log(claim.estimate)))
    first, named = largest[0], {}
    for claim in largest:  # of each option its largest difference
        named.setdefault((claim.variant, claim.subject.workload), claim)
    how = f"{words.times(_away(first.estimate))} {first.word} at {first.measure}"
    answer = f"{first.variant} makes {first.subject.workload} {how}."
    answer += f" {len(decided)} of {words.counted(total, 'comparison')} decided."
    bars = [
        Bar(
            f"{claim.variant}, {claim.subject.workload} {claim.measure}",
            abs(math.log(claim.estimate)),
            f"{words.times(_away(claim.estimate))} {claim.word}",
            GOOD if claim.word in _BETTER else BAD,
        )
        for claim in named.values()
    ]
    return answer, "largest differences from the default", bars, _findable(list(undecided.claims))


def _away(ratio: float) -> float:
    return ratio if ratio >= 1 else 1 / ratio


@_card("07-tail", "Why is the slow one percent slow?", _of("reproduce", "tail-intervention", profiled=False))
def _tail(tables: Tables):
    caused, linked = tail.caused(tables), tail.linked(tables)
    if not _has_claims(linked):
        return _silent(linked)
    _limit, *kinds = linked.claims
    causes = [claim for claim in (caused.claims if caused else ()) if claim.word == CAUSED]
    ties = [claim for claim in kinds if claim.word == LINKED]
    who = words.factor(kinds[0].subject.workload)
    if causes:
        cause = words.factor(causes[0].variant)
        answer = f"{cause} causes it: without it p99 is {words.times(causes[0].estimate)}."
    elif ties:
        kinds_of = words.several([words.factor(claim.variant) for claim in ties[:2]])
        answer = f"Slow answers of {who} are linked to {kinds_of}."
    else:
        answer = f"Cannot tell: no kind of event is shown to be linked to slow {who} answers."
    bars = [
        Bar(
            words.factor(claim.variant),
            claim.estimate,
            words.share(claim.estimate),
            BAD if claim.word == LINKED else PLAIN,
        )
        for claim in sorted(kinds, key=lambda claim: (claim.variant == NO_EVENT, -claim.estimate))
    ]
    doubts = [] if causes else ["nothing was held off: no cause is proven"]
    return answer, f"share of slow {who} answers that waited with it", bars, doubts


@_card("08-published-reports", "Do five published reports hold?", _of_reports)
def _published(tables: Tables):
    judged = claims.judge(published_reports(), tables)
    if judged.empty or not (judged["runs"] > 0).any():
        return None
    counts = judged["verdict"].value_counts()
    told = {verdict: int(counts.get(verdict, 0)) for verdict in verdicts.VERDICTS}
    answer = f"Of {len(judged)} claims {told[verdicts.REPRODUCED]} reproduce; "
    answer += f"{told[verdicts.NOT_REPRODUCED]} do not"
    answer += (
        f", and {told[verdicts.MISTAKEN]} contradict their own data." if told[verdicts.MISTAKEN] else "."
    )
    tones = {verdicts.REPRODUCED: GOOD, verdicts.NOT_REPRODUCED: BAD, verdicts.MISTAKEN: BAD}
    bars = [
        Bar(verdict, float(number), words.counted(number, "claim"), tones.get(verdict, PLAIN))
        for verdict, number in told.items()
        if number
    ]
    return answer, "what our runs say of each claim", bars, ()


def _has_claims(answer: Answer | None) -> bool:
    return answer is not None and bool(answer.claims)


def _silent(answer: Answer | None):
    """Of a question that was measured, and none of whose runs counts."""
    if answer is None:
        return None
    failed = words.several([f"{check} ({count})" for check, count in answer.failed])
    return f"{CANNOT_TELL.capitalize()}: {answer.why or failed or 'too few runs count'}.", "", (), ()


CARDS = (_ruler, _sweep, _percentiles, _capacity, _time, _change, _tail, _published)
