"""One launch of a duet: which rounds count, whose doing it is when they do not, and what the rest says of the
ratio."""

import numpy as np
import pandas as pd
import pytest
from duet_maker import SLICE_NS, histograms
from duet_maker import slices as made

from kvstudy.analyse.comparison import launches
from kvstudy.record import hdr


def values(slices, found=None) -> pd.Series:
    return launches.launch_values(launches.counted_slices(slices, 2), found or {}).set_index("measure")[
        "log_ratio"
    ]


def test_every_measure_of_a_launch_is_the_ratio_of_b_to_a():
    slices = made(ratio=1.1)
    found = values(slices, histograms(slices, {"a": 100_000, "b": 200_000}))
    assert np.exp(found[["p50", "p90", "mean", "bytes written per request"]]).to_numpy() == pytest.approx(1.1)
    assert np.exp(found["p99"]) == pytest.approx(2, rel=0.01)
    assert np.exp(found["CPU per request"]) == pytest.approx((1.1 * 20 + 1) / (20 + 1)), (
        "what a side used in the other's turns is its cost too"
    )
    assert np.exp(values(made(ratio=1.1, loop="closed"))["rate"]) == pytest.approx(1 / 1.1)


def test_p99_9_is_measured_where_it_is_asked_for_and_from_samples_enough():
    slices = made()
    counted = launches.counted_slices(slices, 2)
    found = histograms(slices, {"a": 100_000, "b": 200_000})  # 440 of 11 000 in the tail of each side
    usual = launches.launch_values(counted, found)
    asked = launches.launch_values(counted, found, primary=launches.P999)
    assert launches.P999 not in set(usual["measure"]) and launches.P999 not in launches.measures("closed", "")
    tail = asked.set_index("measure").loc[launches.P999]
    assert np.exp(tail["log_ratio"]) == pytest.approx(2, rel=0.01) and tail["log_most"] == tail["log_ratio"]
    others = asked[asked["measure"] != launches.P999].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, usual)
    few = launches.counted_slices(made(rounds=9), 2)  # 8 000 a side: 8 beyond
    assert launches.P999 not in set(launches.launch_values(few, found, primary=launches.P999)["measure"])


def test_the_p99_of_a_slice_is_measured_where_it_is_asked_for_and_one_long_pause_does_not_move_it():
    slices = made(ratio=1.1)
    slices.loc[(slices["round"] == 5) & (slices["side"] == "b"), "p99_ns"] = 60e6
    counted = launches.counted_slices(slices, 2)

    def found(answered: int) -> pd.DataFrame:
        asked = launches.launch_values(counted.assign(answered=answered), {}, primary=launches.P99_SLICE)
        return asked.set_index("measure")

    assert np.exp(found(1000).loc[launches.P99_SLICE, "log_ratio"]) == pytest.approx(1.1)
    assert launches.P99_SLICE not in found(999).index, "nine answers beyond it"
    assert launches.P99_SLICE not in set(launches.launch_values(counted, {})["measure"])


def test_the_first_round_of_each_part_does_not_count():
    slices = pd.concat([made(), made(loop="closed")], ignore_index=True)
    slices.loc[slices["round"] == 1, "p50_ns"] *= 50.0
    slices.loc[(slices["round"] == 1) & (slices["side"] == "b"), ["p50_ns", "cpu_ns"]] *= 3.0
    counted = launches.counted_slices(slices, 2)
    assert counted.groupby("loop")["left_out"].apply(
        lambda left: (left == launches.FIRST).sum()
    ).tolist() == [2, 2]
    assert values(slices)[["p50", "CPU per request"]].abs().max() == 0


def test_a_round_in_which_the_idle_side_was_busy_is_left_out_on_both_sides_and_laid_to_that_side():
    slices = made()
    at = slices.index[(slices["round"] == 5) & (slices["side"] == "a")]
    slices.loc[at, ["idle_cpu_ns", "p50_ns"]] = [0.2 * SLICE_NS, 90_000.0]
    counted = launches.counted_slices(slices, 2)
    gone = counted[counted["left_out"] == launches.BUSY]
    assert gone["round"].tolist() == [5, 5] and gone["lost_by"].tolist() == ["b", "b"], (
        "b was idle in a's slice, and busy"
    )
    lost = launches.lost_rounds(counted).iloc[0]
    assert (lost["rounds"], lost["busy_a"], lost["busy_b"]) == (11, 0, 1)


def test_rounds_that_are_lost_are_counted_launch_by_launch():
    one, other = made(), made()
    one.loc[(one["round"] == 5) & (one["side"] == "a"), "idle_cpu_ns"] = 0.2 * SLICE_NS
    counted = [launches.counted_slices(part, 2) for part in (one, other)]
    together = pd.concat([part.assign(run_id=run_id) for part, run_id in zip(counted, "xy", strict=True)])
    expected = pd.concat([launches.lost_rounds(part) for part in counted], ignore_index=True)
    found = launches.lost_rounds(together)
    assert found["run_id"].tolist() == ["x", "y"]
    pd.testing.assert_frame_equal(found.drop(columns="run_id"), expected)


def test_how_far_lost_rounds_can_matter_is_bounded_by_counting_them_as_bad_as_can_be_for_their_side():
    print("seed=7")
    generator = np.random.default_rng(7)
    slices = made()
    of_b = slices["side"] == "b"
    slices.loc[of_b, ["p50_ns", "rate_rps"]] *= generator.uniform(1.1, 1.5, (of_b.sum(), 1))
    for number in (5, 6, 7):  # b works in the turns of a
        slices.loc[(slices["round"] == number) & (slices["side"] == "a"), "idle_cpu_ns"] = 0.2 * SLICE_NS
    counted = launches.counted_slices(slices, 2)
    found = launches.launch_values(counted, {}).set_index("measure")
    p50 = found.loc["p50"]
    assert p50["log_least"] == p50["log_ratio"] < p50["log_most"] < np.log(1.5), "b may have been worse"
    closed = launches.launch_values(launches.counted_slices(slices.assign(loop="closed"), 2), {})
    rate = closed.set_index("measure").loc["rate"]
    assert rate["log_least"] < rate["log_ratio"] == rate["log_most"], "a worse rate is a lower one"
    assert found.loc["CPU per request", ["log_least", "log_most"]].isna().all(), "known of medians alone"


def test_a_side_that_lost_half_of_the_rounds_may_have_been_as_bad_as_can_be():
    slices = made()
    slices.loc[(slices["round"] > 6) & (slices["side"] == "a"), "idle_cpu_ns"] = 0.2 * SLICE_NS
    found = launches.launch_values(launches.counted_slices(slices, 2), {}).set_index("measure")
    assert found.loc["p50", "log_most"] == np.inf and found.loc["p50", "log_least"] == 0


def test_a_tail_of_a_launch_in_which_a_side_lost_a_round_may_have_been_any_worse_one():
    slices = made()
    answers = histograms(slices, {"a": 100_000, "b": 200_000})
    found = launches.launch_values(launches.counted_slices(slices, 2), answers).set_index("measure")
    assert (found.loc["p99", ["log_least", "log_most"]] == found.loc["p99", "log_ratio"]).all()
    slices.loc[(slices["round"] == 5) & (slices["side"] == "a"), "idle_cpu_ns"] = 0.2 * SLICE_NS
    found = launches.launch_values(launches.counted_slices(slices, 2), answers).set_index("measure")
    p99 = found.loc["p99"]
    assert (p99["log_least"], p99["log_most"]) == (p99["log_ratio"], np.inf), "b was busy in a's turn"


def test_work_that_is_put_off_until_the_others_turn_is_paid():
    slices = made()
    slices.loc[slices["side"] == "a", "idle_cpu_ns"] = (
        0.3 * SLICE_NS
    )  # b works in every turn of a: no round is left for latency
    found = values(slices)
    assert "p50" not in found and np.exp(found["CPU per request"]) == pytest.approx((20 + 150) / (20 + 1))


@pytest.mark.parametrize("whole", [False, True])
def test_what_a_side_does_now_and_then_hardly_matters_where_the_first_rounds_end(whole):
    """The first compaction of a in the first round, which does not count, that of b in the second one."""
    slices = made(rounds=31)
    each = slices["cpu_ns"].iloc[0]
    at = {
        side: slices.index[(slices["side"] == side) & (slices["round"] == number)][0]
        for number, side in enumerate("ab", start=1)
    }
    for place in at.values():
        slices.loc[place, ["cpu_ns", "written_bytes"]] *= 7
    if whole:
        for side in "ab":
            of_side = slices["side"] == side
            slices[f"{side}_cpu_ns"] = slices["cpu_ns"].where(of_side, slices["idle_cpu_ns"])
            slices[f"{side}_written_bytes"] = slices["written_bytes"].where(of_side, 0)
            slices[f"{side}_compiler_ns"] = 0.0
    found = values(slices)[["CPU per request", "bytes written per request"]]
    unweighted = launches.launch_values(launches.counted_slices(slices, 2), {}, cold=True)
    unweighted = unweighted.set_index("measure")["log_ratio"][found.index]
    assert (found > 0).all() and (found < unweighted / 8).all(), f"{found}\n{unweighted}"
    assert unweighted["CPU per request"] == pytest.approx(np.log1p(6 * each / (30 * (each + 1e6))))


def test_costs_that_go_on_are_the_same_however_much_the_first_rounds_count():
    slices = made(rounds=9, ratio=1.2)
    counted = launches.counted_slices(slices, 2)
    rising, cold = (
        launches.launch_values(counted, {}, cold=cold).set_index("measure")[["a", "b", "log_ratio", "rounds"]]
        for cold in (False, True)
    )
    pd.testing.assert_frame_equal(rising, cold)


def test_what_was_recorded_over_slices_and_gaps_is_taken_before_the_counted_parts_without_compilers():
    slices = made().assign(a_cpu_ns=10e6, b_cpu_ns=14e6, a_compiler_ns=2e6, b_compiler_ns=2e6)
    assert np.exp(values(slices)["CPU per request"]) == pytest.approx(12 / 8)


def test_a_known_cost_per_request_is_found_whether_slices_and_gaps_or_counted_parts_were_recorded():
    """20 us each: 1000 requests in the counted 500 ms, and 300 in the 150 ms before."""
    sent = launches.sent_per_counted(
        [{"workload": "put", "loop": "rate", "not_counted_s": 0.15, "counted_s": 0.5}]
    )
    counted_only = made().assign(cpu_ns=1000 * 20e3, idle_cpu_ns=0.0, written_bytes=1000 * 64.0)
    whole = counted_only.copy()
    for side in "ab":
        whole[f"{side}_cpu_ns"], whole[f"{side}_written_bytes"] = (
            (whole["side"] == side) * 1300.0 * each for each in (20e3, 64.0)
        )
    for slices in (counted_only, whole):
        found = launches.launch_values(launches.counted_slices(slices, 2), {}, sent).set_index("measure")
        assert found.loc["CPU per request", ["a", "b"]].tolist() == pytest.approx([20e3, 20e3])
        assert found.loc["bytes written per request", ["a", "b"]].tolist() == pytest.approx([64, 64])


def test_in_a_closed_loop_the_answers_of_the_settle_parts_are_counted_where_loadgen_does():
    """20 us each: 1000 answers in the counted part, and of a 300, of b 100 before, while still slow."""
    sent = launches.sent_per_counted(
        [{"workload": "put", "loop": "closed", "not_counted_s": 0.15, "counted_s": 0.5}]
    )
    slices = made(loop="closed", idle_cpu_ns=0.0)
    settling = slices["side"].map({"a": 300.0, "b": 100.0})
    slices = slices.assign(answered_settling=settling, rate_rps=1000 / (SLICE_NS / 1e9))
    for side in "ab":
        slices[f"{side}_cpu_ns"] = (slices["side"] == side) * (1000 + settling) * 20e3
    costs = [
        launches.launch_values(launches.counted_slices(one, 2), {}, sent)
        .set_index("measure")
        .loc["CPU per request", ["a", "b"]]
        .tolist()
        for one in (slices, slices.assign(answered_settling=np.nan))
    ]
    assert costs[0] == pytest.approx([20e3, 20e3])
    assert costs[1] == pytest.approx([20e3, 20e3 * 1100 / 1300]), "as before loadgen counted them"


def test_requests_without_an_answer_leave_the_round_out_and_are_laid_to_their_side():
    for change in ({"errors": 3, "answered": 997}, {"answered": 990}, {"answered": 0}):
        slices = made()
        at = slices.index[(slices["round"] == 3) & (slices["side"] == "b")]
        slices.loc[at, list(change)] = list(change.values())
        lost = launches.lost_rounds(launches.counted_slices(slices, 2)).iloc[0]
        assert (lost["errors_a"], lost["errors_b"]) == (0, 1), change


def test_a_round_in_which_the_host_took_the_cpu_is_left_out_and_is_nobodys_doing():
    slices = made()
    slices.loc[6, "steal_ns"] = 0.06 * 2 * SLICE_NS
    counted = launches.counted_slices(slices, 2)
    assert counted.loc[counted["left_out"] == launches.DISTURBED, "lost_by"].tolist() == ["", ""]


def test_a_slice_whose_counters_were_read_too_late_does_not_count():
    slices = made()
    slices.loc[6, "idle_cpu_ns"] = np.nan
    counted = launches.counted_slices(slices, 2)
    assert (counted["left_out"] == launches.DISTURBED).sum() == 2
    unknown = launches.counted_slices(made().assign(idle_cpu_ns=np.nan), 2)
    assert set(unknown["left_out"]) == {"", launches.FIRST}, "where they are never recorded that says nothing"


def test_slices_that_were_all_read_too_late_do_not_count_either():
    late = made().assign(idle_cpu_ns=np.nan, read_late_ns=0.03 * SLICE_NS)
    assert set(launches.counted_slices(late, 2)["left_out"]) == {launches.DISTURBED, launches.FIRST}
    in_time = late.assign(read_late_ns=0.01 * SLICE_NS)
    assert set(launches.counted_slices(in_time, 2)["left_out"]) == {"", launches.FIRST}, (
        "over a network it may be unknown whose slice it was, though nobody was late"
    )


def test_a_side_whose_processes_nobody_knows_makes_no_slice_of_the_other_late():
    one_known = made()
    one_known.loc[one_known["side"] == "a", "idle_cpu_ns"] = np.nan
    assert set(launches.counted_slices(one_known, 2)["left_out"]) == {"", launches.FIRST}


def test_a_launch_whose_rounds_a_side_lost_nearly_all_is_counted_as_emptied():
    slices = made()
    slices.loc[(slices["round"] > 4) & (slices["side"] == "a"), "idle_cpu_ns"] = 0.2 * SLICE_NS
    counted = launches.counted_slices(slices, 2)
    assert "p50" not in launches.launch_values(counted, {}).set_index("measure").index
    assert launches.lost_rounds(counted).iloc[0]["emptied"] == 1
    disturbed = made()
    disturbed.loc[disturbed["round"] > 4, "foreign_ns"] = 1e12
    assert launches.lost_rounds(launches.counted_slices(disturbed, 2)).iloc[0]["emptied"] == 0, (
        "nobody's doing"
    )
    disturbed.loc[(disturbed["round"] == 4) & (disturbed["side"] == "a"), "idle_cpu_ns"] = 0.2 * SLICE_NS
    assert launches.lost_rounds(launches.counted_slices(disturbed, 2)).iloc[0]["emptied"] == 0, (
        "with that round there would be too few too"
    )


def test_a_slice_without_its_other_does_not_count():
    counted = launches.counted_slices(made().drop(index=[23]).reset_index(drop=True), 2)
    assert counted["left_out"].iloc[-1] == launches.INCOMPLETE


def test_too_few_rounds_or_samples_give_no_value_and_a_store_that_writes_nothing_no_ratio():
    assert values(made(rounds=launches.ROUNDS_MIN)).empty
    assert "bytes written per request" not in values(made(written_bytes=0.0))
    by_the_jvm = np.where(made()["round"] % 2, 4096.0, 8192.0)
    few_rounds, many_rounds = made(rounds=8), made(rounds=24)
    assert "bytes written per request" not in values(few_rounds.assign(written_bytes=by_the_jvm[:16]))
    assert "bytes written per request" not in values(many_rounds.assign(written_bytes=4096.0))
    assert "bytes written per request" in values(many_rounds.assign(written_bytes=4 * 4096.0))
    slices = made()
    few = {
        key: hdr.Histogram(one.layout, one.indices[:1], np.array([2]))
        for key, one in histograms(slices, {"a": 1, "b": 1}).items()
    }
    assert "p99" not in values(slices, few)


def test_a_drift_befalls_both_sides_alike():
    slices = made()
    slices["p50_ns"] *= np.linspace(1, 1.5, len(slices))
    assert abs(values(slices)["p50"]) < 0.02
