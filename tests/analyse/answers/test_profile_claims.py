"""Where the time goes, as data: one configuration apart from another, and no word from few profiles."""

import pandas as pd
import pytest
from sample import failed, keep, sample_tables

from kvstudy.analyse.answers import profiles
from kvstudy.analyse.answers.profiles import LESS, MORE, OF_NETWORK, OF_STORE, TOO_FEW
from kvstudy.analyse.comparison.words import CANNOT_TELL

READ = "one/nio/server/SelectorThread.run_[j];one/nio/net/NativeSocket.read_[j]"
STORE = "kv/http/KvServer.handle_[j];kv/lsm/LsmStore.get_[j]"


def profiled(network, run="run", **changes):
    """A profiled run for each share of ``network``, the rest of which goes to the store; all alike but for
    ``changes``."""
    one = keep(sample_tables(workloads=("put",)), lambda run: run.profiled)
    names = [f"{run}-{number}" for number in range(len(network))]
    runs = pd.concat([one.runs.assign(run_id=name, **changes) for name in names], ignore_index=True)
    stacks = [
        {"run_id": name, "event": "cpu", "stack": stack, "samples": round(10_000 * share)}
        for name, of in zip(names, network, strict=True)
        for stack, share in ((READ, of), (STORE, 1 - of))
        if share
    ]
    return one.but(runs=runs, stacks=pd.DataFrame(stacks))


def together(*parts):
    return parts[0].but(
        runs=pd.concat([one.runs for one in parts], ignore_index=True),
        stacks=pd.concat([one.stacks for one in parts], ignore_index=True),
    )


def claims(tables, measure=OF_NETWORK):
    found = profiles.network_and_store(profiles.shares(tables)).claims
    return [claim for claim in found if claim.measure == measure]


def test_repeats_are_pooled_by_their_median_and_make_a_whole():
    found = profiles.typical(profiles.shares(profiled([0.8, 0.6, 0.7])), "workload")
    assert found.set_index("subsystem")["share"].to_dict() == pytest.approx(
        {"socket read": 0.7, "store": 0.3}
    )
    assert found["runs"].tolist() == [3, 3] and found["valid"].all()


def test_a_run_without_a_sample_of_a_subsystem_has_none_of_it():
    (store,) = claims(profiled([1.0, 1.0, 0.7]), OF_STORE)
    assert store.estimate == 0.0 and store.extent == (0.0, pytest.approx(0.3))


def test_runs_of_two_rates_and_of_two_windows_share_no_median():
    tables = together(
        profiled([0.6] * 2, "low", offered_rate_rps=2000.0),
        profiled([0.8] * 2, "high", offered_rate_rps=20_000.0),
        profiled([0.7] * 2, "quick", offered_rate_rps=20_000.0, duration_s=5.0),
    )
    found = sorted(claims(tables), key=lambda claim: (claim.subject.offered_rate_rps, claim.variant))
    assert [(claim.subject.offered_rate_rps, claim.variant, claim.runs) for claim in found] == [
        (2000.0, "", 2),
        (20_000.0, "duration_s 5.0", 2),
        (20_000.0, "duration_s 8.0", 2),
    ]
    assert [claim.estimate for claim in found] == pytest.approx([0.6, 0.7, 0.8])
    assert [claim.estimate for claim in profiles.at_highest_rate(found)] == pytest.approx([0.7, 0.8])
    bars = profiles.typical(profiles.shares(tables), "workload")
    assert len(bars.drop_duplicates(["offered_rate_rps", "differs"])) == 3


@pytest.mark.parametrize(
    ("network", "word"),
    [
        ([0.6, 0.62, 0.61, 0.63, 0.64], MORE),
        ([0.3, 0.32, 0.31, 0.33, 0.34], LESS),
        ([0.3, 0.62, 0.61, 0.33, 0.64], CANNOT_TELL),
        ([0.6, 0.62, 0.61, 0.63], CANNOT_TELL),
    ],
)
def test_a_word_needs_five_profiles_and_the_whole_interval(network, word):
    (claim,) = claims(profiled(network))
    assert claim.word == word and claim.decided == (word != CANNOT_TELL)
    assert (claim.interval is None) == (len(network) < 5) == (claim.why == TOO_FEW)


def test_invalid_profiles_are_left_out_and_alone_they_have_no_estimate():
    tables = profiled([0.6, 0.8, 0.9])
    (claim,) = claims(failed(tables, ["run-2"]))
    assert (claim.estimate, claim.runs) == (pytest.approx(0.7), 2)
    (claim,) = claims(failed(tables, tables.runs["run_id"]))
    assert claim.estimate != claim.estimate and claim.runs == 0
    assert (claim.word, claim.why) == (CANNOT_TELL, "no_foreign_load: 30.00 %")


def test_the_highest_rate_is_that_of_valid_profiles():
    high = failed(profiled([0.8], "high", offered_rate_rps=20_000.0), ["high-0"])
    low = profiled([0.6], "low", offered_rate_rps=2000.0)
    (claim,) = profiles.at_highest_rate(claims(together(high, low)))
    assert claim.subject.offered_rate_rps == 2000.0
