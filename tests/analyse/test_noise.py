import numpy as np
import pytest

from kvstudy.analyse import noise, tables


def test_what_can_be_told_is_said_of_each_configuration_from_its_own_noise(make_run, tmp_path):
    """One configuration whose runs are 3 % apart and one whose are 20 %; the runs of an empty server count
    for neither."""
    generator = np.random.default_rng(2)
    for workload, spread in (("calm", 0.03), ("wild", 0.20)):
        for repeat in range(8):
            values = (
                generator.lognormal(6, 0.3, 2000) * np.exp(spread * generator.standard_normal())
            ).astype(int)
            make_run(f"{workload}{repeat}", workload=workload, repeat=repeat + 1, seconds=[values] * 6)
            make_run(
                f"empty-{workload}{repeat}",
                workload=workload,
                server="empty",
                repeat=repeat + 1,
                seconds=[values] * 6,
            )
    make_run("alone", label="alone")
    tables.rebuild([make_run.root], tmp_path / "tidy", progress=False)
    loaded = tables.load(tmp_path / "tidy")
    found = noise.by_configuration(loaded, percentiles=(50.0,)).set_index(["measure", "workload"])
    calm, wild = found.loc[("p50", "calm")], found.loc[("p50", "wild")]
    assert (calm["runs"], wild["runs"]) == (8, 8)
    assert calm["noise"] == pytest.approx(0.03, abs=0.02) and wild["noise"] == pytest.approx(0.20, abs=0.12)
    assert wild["share_found"] < 0.2 < calm["share_found"] and wild["found"] > calm["found"] > 1
    told = noise.certainty(loaded, percentiles=(50.0,)).set_index("measure").loc["p50"]
    assert (told["configurations"], told["runs"]) == (2, 16)
    assert told["noise_least_percent"] == pytest.approx(100 * calm["noise"]) and told[
        "share_found_most"
    ] == pytest.approx(calm["share_found"])


def test_without_repeats_nothing_is_said(make_run, tmp_path):
    make_run("alone")
    tables.rebuild([make_run.root], tmp_path / "tidy", progress=False)
    assert noise.certainty(tables.load(tmp_path / "tidy")).empty
