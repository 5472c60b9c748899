"""async-profiler's pages inside ours: which run they show, and what is said above them; that they work is
tested in a browser."""

from dataclasses import replace

import pytest
from IPython.display import HTML
from sample import empty_tables, failed, repeated

from kvstudy.present import flame

PAGE = "<html><head></head><body><h1>cpu</h1><style>#canvas {width: 100%; height: 64px}</style></body></html>"


@pytest.fixture(autouse=True)
def page(monkeypatch):
    monkeypatch.setattr(flame, "page_of", lambda *_: PAGE)


@pytest.fixture
def one(profiles):
    return profiles.only(profiles.runs["run_id"].head(1))


@pytest.mark.parametrize("kind", ["flamegraph", "heatmap"])
def test_a_graph_names_its_run(one, kind):
    html = flame.flame_graph(one, "cpu", kind).data
    told, run_id = one.runs["workload"].iloc[0], one.runs["run_id"].iloc[0]
    assert f"of {told}, sample, 4 connections, 1\u202f000 r/s</strong>, run <code>{run_id}</code>" in html
    assert "INVALID" not in html and "grayscale" not in html


@pytest.mark.parametrize("kind", ["flamegraph", "heatmap"])
def test_a_graph_of_an_invalid_run_is_grey_and_every_heading_says_so(one, kind):
    html = flame.flame_graph(failed(one, one.runs["run_id"]), "cpu", kind).data
    assert "<strong>INVALID: no_foreign_load: 30.00 %. cpu: " in html
    assert (
        "filter:grayscale(1)" in html
        and "&lt;h1&gt;INVALID: cpu&lt;/h1&gt;" in html
        and 'iframe title="INVALID: ' in html
    )


def test_without_a_lock_wait_there_is_a_sentence_and_no_empty_frame(one):
    html = flame.flame_graph(one, "lock").data
    assert "No lock waits were recorded" in html and "iframe" not in html


def test_shares_say_which_runs_count(profiles):
    first = profiles.runs["run_id"].iloc[0]
    shares = flame.shares(failed(profiles, [first]))
    assert shares.groupby("run_id")["valid"].all().to_dict() == {
        run_id: run_id != first for run_id in profiles.runs["run_id"]
    }
    assert set(shares.loc[shares["run_id"] == first, "why"]) == {"no_foreign_load: 30.00 %"}


def test_what_goes_to_network_and_store_is_held_against_the_expectation(profiles):
    first, second = profiles.runs["workload"]
    told = flame.network_and_store(flame.shares(profiles)).data
    assert told.count("cannot tell: fewer than 5 profiled runs") == 2 and first in told and second in told
    place = "at 1\u202f000 r/s on 4 connections"
    assert (
        f"{second} {place}: cannot tell (INVALID: no_foreign"
        in flame.network_and_store(flame.shares(failed(profiles, profiles.runs["run_id"].iloc[[1]]))).data
    )
    five = flame.network_and_store(flame.shares(repeated(profiles, 5))).data
    assert five.count("not as expected") == 2 and "2 of 2 configurations decided" in five
    theirs = flame.shares(replace(profiles, runs=profiles.runs.assign(server="shop")))
    assert "not asked. The groups know the code of kv-service" in flame.network_and_store(theirs).data


def test_without_a_profile_it_says_so():
    assert "No profiled run" in flame.flame_graph(empty_tables()).data
    assert "nothing can be told" in flame.network_and_store(flame.shares(empty_tables())).data


def test_of_several_graphs_the_first_is_shown_and_a_chooser_names_all():
    drawn = [(name, HTML(f"<div><iframe title={name}></iframe></div>")) for name in ("a<b", "c")]
    html = flame.one_at_a_time("Side", *drawn).data
    assert "<option>a&lt;b</option><option>c</option>" in html
    assert html.index('style=""><div><iframe title=a<b') < html.index('hidden"><div>')
    assert 'data-name="Side a&lt;b"' in html and 'data-name="Side c"' in html, "on paper, where both are"


def test_what_is_missing_in_one_of_two_graphs_is_said_where_it_is_chosen():
    one, none = HTML("<div><iframe></iframe></div>"), HTML("<p>No flame graph.</p>")
    assert 'hidden"><p>No' in flame.one_at_a_time("Side", ("a", one), ("b", none)).data
    assert 'style=""><p>No' in flame.one_at_a_time("Side", ("a", none), ("b", one)).data


def test_where_there_is_no_graph_nothing_is_to_be_chosen():
    none = HTML("<p>No flame graph.</p>")
    assert flame.one_at_a_time("Side", ("a", none), ("b", none)).data == none.data


def test_two_graphs_of_one_name_are_both_there_to_be_chosen():
    one, other = (
        HTML("<div><iframe title=one></iframe></div>"),
        HTML("<div><iframe title=other></iframe></div>"),
    )
    html = flame.one_at_a_time("Stacks of", ("main", one), ("main", other)).data
    assert html.count("<option>main</option>") == 2 and "title=one" in html and "title=other" in html
