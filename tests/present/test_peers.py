"""Page 10: the service beside others, in the words of every page; what to type where nobody measured it."""

import re
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from kvstudy.present import expected, headlines, notebook, peers
from kvstudy.present.figures import peers as drawn

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.append(str(CHECKOUT / "tests" / "analyse"))

from run_maker import RunMaker
from test_own_beside_reference import mine

SLOWNESS = {"kv-service": 1.0, "nginx": 2.0, "empty": 0.5}


@pytest.fixture
def make(tmp_path, monkeypatch):
    monkeypatch.setenv("KVSTUDY_ROOT", str(tmp_path))
    for borrowed in ("notebooks", "experiments"):
        (tmp_path / borrowed).symlink_to(CHECKOUT / borrowed)
    made, random, numbers = RunMaker(tmp_path / "data" / "raw"), np.random.default_rng(7), count(1)

    def of(repeats=6, servers=SLOWNESS, sizes=(100, 10_000), **changes):
        for server in servers:
            for size in sizes:
                for repeat in range(1, repeats + 1):
                    typical_us = SLOWNESS[server] * (200 + size / 100) * random.normal(1, 0.02)
                    made(
                        f"20261120T2042{next(numbers):02d}Z-{server}-rep{repeat}",
                        **{
                            "experiment": "peers",
                            "server": server,
                            "subject": {"name": server, "command": [server, "{port}"]},
                            "variant": {"subject": server},
                            "workload_args": {"key_count": 1000, "value_bytes": size},
                            "repeat": repeat,
                            "seconds": [np.full(2000, int(typical_us))] * 6,
                        }
                        | changes,
                    )

    return of


def test_each_peer_has_its_word_beside_ours_by_size(make):
    make()
    found = peers.measured()
    text = peers.answer(found).data
    assert text.startswith("## kv-service answers faster than a peer in 2 of 2 decided comparisons")
    assert (
        "**nginx** is slower in 2 of 2 comparisons" in text
        and "the empty server, which keeps nothing, is faster in 2 of 2 comparisons" in text
    )
    table = peers.compared(found)
    p50 = table[(table["measure"] == "p50") & (table["peer"] == "nginx")]
    assert p50["word"].tolist() == ["slower", "slower"] and p50["ratio"].str.match(r"(2\.0|1\.9)").all()
    assert p50["values"].nunique() == 2 and set(p50["runs"]) == {"6 and 6"}


def test_the_card_has_a_bar_for_each_program_at_the_place_that_all_share(make):
    make()
    (card,) = [card for card in headlines.index(peers.measured()).cards if card.page == "10-peers"]
    assert [bar.label for bar in card.bars] == ["kv-service", "nginx", "empty"]
    assert [bar.tone for bar in card.bars] == ["plain", "bad", "good"]
    assert card.of.replace("\u202f", " ") == "p50 of PUT, 100 B, 2 000 r/s"


def test_of_places_that_all_share_the_card_shows_the_one_where_most_is_decided(make):
    make(repeats=3, sizes=(100,))
    make(sizes=(10_000,))
    (card,) = [card for card in headlines.index(peers.measured()).cards if card.page == "10-peers"]
    assert [bar.tone for bar in card.bars] == ["plain", "bad", "good"]
    assert card.of.startswith("p50 of PUT, 10 kB")


def test_a_bar_whose_comparison_decides_nothing_is_hollow(make):
    make(repeats=3)
    (card,) = [card for card in headlines.index(peers.measured()).cards if card.page == "10-peers"]
    assert [bar.tone for bar in card.bars] == ["plain", "open", "open"]
    assert "(hollow: cannot tell)</p>" in card.html() and 'class="open"' in card.html()


def test_under_five_runs_a_side_nothing_is_decided(make):
    make(repeats=2)
    found = peers.measured()
    assert "Cannot tell whether kv-service answers faster" in peers.answer(found).data
    assert set(peers.compared(found)["word"]) == {"cannot tell"}
    assert peers.held(found)["nginx"].str.endswith("(under 5 runs)").all()


def test_where_own_runs_are_too_few_card_and_page_keep_what_the_reference_decides(make, monkeypatch):
    make()
    reference = peers.measured()
    reference = reference.but(own=frozenset())
    own = mine(reference.select(repeat=[1, 2]))
    card, alone = (
        next(card for card in headlines.index(*tables).cards if card.page == "10-peers")
        for tables in ((own, reference), (reference,))
    )
    assert (card.answer, card.bars) == (alone.answer, alone.bars) and "2 of 2 decided" in card.answer
    assert card.sure[0].startswith("reference: ")
    assert card.own == "Your own 12 runs cannot tell yet: whether kv-service answers faster than its peers."
    monkeypatch.setattr(notebook, "reference_tables", lambda: reference)
    told = notebook.left_open(own, peers.claims).data.replace("\u202f", " ")
    place = "p50 of put at 2 000 r/s on 16 connections, nginx with 100 B to kv-service: "
    assert re.search(rf"{place}(1\.9|2\.0).*, slower", told), told
    assert told.endswith(" more.")
    assert notebook.left_open(mine(reference), peers.claims) is None


def test_own_runs_that_decide_as_much_are_what_the_card_says(make):
    make()
    reference = peers.measured().but(own=frozenset())
    cards = headlines.index(mine(reference), reference).cards
    card = next(card for card in cards if card.page == "10-peers")
    assert card.sure[0].startswith("yours: ") and not card.own


def test_which_rates_are_held_stands_by_size_and_program(make):
    make(sizes=(100,))
    make(sizes=(10_000,), servers=["nginx"], seconds=[np.full(700, 900)] * 6)
    rows = peers.held(peers.measured()).set_index("values")
    assert rows["nginx"].iloc[0].startswith("every rate") and rows["nginx"].iloc[1].startswith("not ")
    assert rows["kv-service"].iloc[1] == "–"


def test_every_run_is_a_point_and_each_program_a_line(make):
    make()
    figure = drawn.by_size(peers.measured())
    assert figure.layout.title.text == "p50 by the size of the values"
    assert figure.layout.meta["finding"] == "kv-service, nginx and empty on 16 connections"
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    assert [trace.name for trace in lines] == ["kv-service", "nginx", "empty"]
    assert sum(len(trace.x) for trace in figure.data if trace.mode == "markers") == 36
    nowhere = drawn.by_size(peers.measured(), connections=5).layout.title
    assert "no run on connections=5" in nowhere.text and "There are: 16." in nowhere.subtitle.text
    for connections in ("16", [16]):
        nowhere = drawn.by_size(peers.measured(), connections=connections).layout.meta["finding"]
        assert f"no run on connections={connections!r}" in nowhere


def test_without_a_measurement_the_page_says_what_to_type(make):
    make(experiment="reproduce", servers=["kv-service"])
    found = peers.measured()
    assert "make peers" in peers.answer(found).data and "nginx-light" in peers.answer(found).data
    assert "make peers" in drawn.by_size(found).layout.meta["drawn"]
    assert peers.compared(found).empty and "make peers" in peers.compared(found).attrs["missing"]
    assert "make peers" in peers.held(found).attrs["missing"]


def test_a_peer_that_loses_its_runs_is_a_row_without_a_ratio(make):
    make(servers=["kv-service", "nginx"], sizes=(100,))
    make(servers=["nginx"], sizes=(100,), repeats=2, counted={"errors": {"read": 2}})
    (lost,) = peers.compared(peers.measured()).query("measure == 'invalid runs'").to_dict("records")
    assert (lost["peer"], lost["ratio"]) == ("nginx", "–")
    assert (lost["kv-service"], lost["of the peer"], lost["runs"]) == ("0 %", "25.0 %", "6 and 8")


def test_two_builds_are_two_lines_and_neither_is_a_median_of_both(make):
    make(servers=["kv-service"], tool_digests={"service": "jar-1"})
    make(servers=["kv-service"], tool_digests={"service": "jar-2"}, seconds=[np.full(2000, 900)] * 6)
    figure = drawn.by_size(peers.measured())
    lines = {trace.name: list(trace.y) for trace in figure.data if trace.mode == "lines"}
    first, second = (lines[f"kv-service, service_program digest=jar-{build}"] for build in (1, 2))
    assert max(first) < 0.0004 and second == pytest.approx([0.0009, 0.0009], rel=0.01)


def test_of_two_builds_each_is_told_the_rates_that_it_holds(make):
    make(servers=["kv-service"], sizes=(100,), tool_digests={"service": "jar-1"})
    slow = [np.full(700, 900)] * 6
    make(servers=["kv-service"], sizes=(100,), tool_digests={"service": "jar-2"}, seconds=slow)
    (cell,) = peers.held(peers.measured())["kv-service"].str.replace("\u202f", " ")
    assert "digest=jar-1: every rate, to 2 000 r/s" in cell and "digest=jar-2: not 2 000 r/s" in cell


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {},
            "it held, as far as it was tested. Hold it with a p50 under 1.00 ms: empty, kv-service and nginx",
        ),
        ({"repeats": 2}, "cannot tell. Cannot tell: empty, kv-service and nginx"),
        ({"seconds": [np.full(1000, 1500)] * 6}, "it did not hold. Do not: empty, kv-service and nginx"),
        ({"seconds": [np.full(300, 300)] * 6}, "it did not hold. Do not: empty, kv-service and nginx"),
        ({"sizes": (100_000,)}, "cannot tell: not measured"),
    ],
)
def test_the_page_says_whether_each_program_held_small_values_as_expected(make, changes, said):
    at = {"offered_rate_rps": 1000.0, "seconds": [np.full(1000, 300)] * 6, "sizes": (100,)}
    make(**(at | changes))
    told = expected.each_holds_and_one_does_not(peers.measured()).data.replace("\u202f", " ")
    assert f"- 1 000 r/s, 100 B: {said}." in told, told


def test_one_program_that_misses_the_rate_of_large_values_is_what_was_expected(make):
    for servers, seconds in (["empty", "nginx"], 4000), (["kv-service"], 3000):
        at = {"offered_rate_rps": 4000.0, "seconds": [np.full(seconds, 300)] * 6, "sizes": (100_000,)}
        make(servers=servers, **at)
    told = expected.each_holds_and_one_does_not(peers.measured()).data.replace("\u202f", " ")
    assert "- 4 000 r/s, 100 kB: it held, as far as it was tested." in told, told
