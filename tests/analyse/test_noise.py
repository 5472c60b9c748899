import numpy as np

from kvstudy.analyse import noise, tables


def test_what_can_be_told_is_said_from_the_runs_own_noise(make_run, tmp_path):
    """Ten repeats of one thing, about 3 % apart: five runs a side find 5 % seldom, and A against A hardly ever."""
    generator = np.random.default_rng(2)
    for repeat in range(10):
        values = (generator.lognormal(6, 0.3, 2000) * (1 + 0.03 * generator.standard_normal())).astype(int)
        make_run(f"a{repeat}", repeat=repeat + 1, seconds=[values] * 6)
    make_run("other", label="alone")
    make_run("bad", offered_rate_rps=9000)
    tables.rebuild([make_run.root], tmp_path / "tidy", progress=False)
    found = noise.certainty(tables.load(tmp_path / "tidy"), percentiles=(50.0, 99.0), trials=200).set_index("measure")
    assert found.index.tolist() == ["p50", "p99", "CPU per request"]
    assert (found["runs"] == 10).all() and (found["configurations"] == 1).all()
    assert 1 < found["spread_percent"]["p50"] < 10
    assert (found["false_positive_share"] <= 0.05).all()
    assert found["spread_percent"]["CPU per request"] == 0 and found["power_share"]["CPU per request"] == 1
    assert found["power_share"]["p50"] < 0.9 and found["repeats_needed"]["p50"] > 5


def test_without_repeats_nothing_is_said(make_run, tmp_path):
    make_run("alone")
    tables.rebuild([make_run.root], tmp_path / "tidy", progress=False)
    assert noise.certainty(tables.load(tmp_path / "tidy")).empty
