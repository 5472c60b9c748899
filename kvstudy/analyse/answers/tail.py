"""What makes slow answers slow? Claims of what was held off, and of what the slowest percent of unique PUTs
is linked to."""

import math

from kvstudy.analyse import intervention, tail
from kvstudy.analyse.answers import Answer, unanswered
from kvstudy.analyse.claim import INTERVENTION, LINK, Claim, Place
from kvstudy.analyse.tables import Tables
from kvstudy.analyse.tail import NO_EVENT, WorkloadCauses

P99, SLOW_SHARE, SLOW_LIMIT = "p99", "slow answers that waited with it", "slow answers take over"
EXPERIMENT, WORKLOAD = "reproduce", "unique_put"


def caused(tables: Tables) -> Answer | None:
    """p99 without each kind of event over p99 as usual, from the experiment that holds things off."""
    mine = tables.select(experiment=intervention.EXPERIMENT, profiled=False)
    found = intervention.interventions(mine)
    if found.empty:
        return unanswered(mine)
    claims = tuple(
        Claim(
            Place(row.workload, int(row.connections), float(row.offered_rate_rps), intervention.EXPERIMENT),
            P99,
            "ratio",
            row.ratio,
            None if math.isnan(row.low) else (row.low, row.high),
            row.word,
            runs=2 * row.pairs,
            rule=INTERVENTION,
            baseline="as usual",
            variant=row.cause,
            why=row.why,
            also=row.also,
            sides=(row.pairs, row.pairs),
            ends=(row.usual_us, row.without_us),
        )
        for row in found.itertuples()
    )
    return Answer(claims, len(mine.believed().runs))


def linked(tables: Tables) -> Answer | None:
    """Of the slowest percent of unique PUTs at the highest rate held: the limit; each kind of event, with the
    share by chance and the share observed in ``ends``; last NO_EVENT, what no telling event touches. With the
    words that 07-tail has for them."""
    mine = tables.select(experiment=EXPERIMENT, profiled=False, workload=WORKLOAD)
    measured = tables.select(experiment=EXPERIMENT, profiled=False).believed()
    if not (measured.intervals["latency_kind"] == "response").any():
        return unanswered(mine)
    group = next((group for group in tail.page_causes(measured).groups if group.workload == WORKLOAD), None)
    return unanswered(mine) if group is None else Answer(claims_of(group), group.runs)


def links(tables: Tables, percentile: float = 99.0) -> Answer | None:
    """``linked`` of every workload of one experiment that 07-tail shows."""
    measured = tables.believed()
    if not (measured.intervals["latency_kind"] == "response").any():
        return unanswered(tables)
    groups = tail.page_causes(measured, percentile).groups
    return Answer(
        tuple(claim for group in groups for claim in claims_of(group)), sum(group.runs for group in groups)
    )


def claims_of(group: WorkloadCauses) -> tuple[Claim, ...]:
    """The claims about one workload's slow answers, in the order of ``analyse.tail.causes``."""
    place = Place(group.workload, offered_rate_rps=group.offered_rate_rps, experiment=EXPERIMENT)
    limit = Claim(place, SLOW_LIMIT, "us", group.limit_us, runs=group.runs, rule=LINK)
    kinds = (
        Claim(
            place,
            SLOW_SHARE,
            "share",
            row.share,
            word=row.word,
            runs=group.runs,
            rule=LINK,
            baseline="by chance",
            variant=row.cause,
            why=row.why,
            ends=None if row.cause == NO_EVENT else (row.chance, row.share),
        )
        for row in group.found.itertuples()
    )
    return (limit, *kinds)
