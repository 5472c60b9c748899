"""Page 06 on duets: the answer first, every slice pair a point, what was left out, and whether the same was
asked before."""

import re
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from sample import empty_tables
from test_flame_difference import PAGE

from kvstudy.analyse import tables
from kvstudy.analyse.comparison.words import CANNOT_TELL
from kvstudy.errors import ExperimentError
from kvstudy.present import answers, duets, headlines, options, summary
from kvstudy.present.figures import duets as drawn
from kvstudy.present.figures import ratios as drawn_options

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.append(str(CHECKOUT / "tests" / "analyse"))

from duet_maker import DuetMaker, slices

STACKS = {"a": "run;kv/get 90\nrun;kv/put 10\n", "b": "run;kv/get 60\nrun;kv/put 40\n"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("KVSTUDY_ROOT", str(tmp_path))
    for borrowed in ("notebooks", "experiments"):
        (tmp_path / borrowed).symlink_to(CHECKOUT / borrowed)
    return tmp_path


@pytest.fixture
def make(root):
    return DuetMaker(root / "data" / "raw")


@pytest.fixture
def slower(make):
    for launch in range(1, 8):
        make(launch, ratio=1.1, stacks=STACKS if launch == 1 else None)
    return duets.chosen()


def run_page(root, **parameters) -> dict:
    names = {"In": [""]}
    for cell in nbformat.read(root / "notebooks" / "06-before-after.ipynb", as_version=4).cells:
        if cell.cell_type == "code":
            names["In"].append(cell.source)
            exec(compile(cell.source.replace("%load_ext kvstudy", ""), "06", "exec"), names)
            if "parameters" in cell.metadata.get("tags", []):
                names |= parameters
    return names


def test_the_answer_is_one_sentence_with_the_primary_measure(slower):
    text = duets.answer(slower).data
    first = text.splitlines()[0]
    assert first.startswith("## change is slower than main: p50 of put 1.1") and len(first.split()) <= 20
    assert "7 launches of `compare` count" in text and "dearer" in text


def test_the_index_has_a_line_for_every_duet(slower):
    (line,) = duets.summarize().data.splitlines()
    assert line.startswith("- **change is slower than main") and "put at 2" in line and "(slower)" in line


def test_a_duet_none_of_whose_rounds_count_says_so(make):
    for launch in range(1, 7):
        make(launch, parts={("put", "rate"): slices(12, idle_cpu_ns=2e8)})
    shown = duets.chosen()
    assert "too few of its rounds count" in duets.answer(shown).data and len(duets.measures(shown)) == 2
    assert "no cpu profiles" in duets.difference(shown).data.lower()


def test_every_measure_has_a_row_with_its_ratio_and_what_could_have_been_found(slower):
    rows = duets.measures(slower)
    assert rows["measure"].iloc[0] == "p50 of put, at a rate (primary)" and len(rows) == 8
    assert rows.loc[rows["word"] == CANNOT_TELL, "could have found"].ne("").all()
    figure = drawn.ratios(slower)
    assert sum(len(trace.x) for trace in figure.data) == 8 and "slower" in figure.layout.meta["finding"]


def test_every_slice_pair_is_a_point_and_what_does_not_count_is_grey(slower):
    figure = drawn.rounds(slower)
    panels = len(figure.layout.meta["panels"])
    points = {
        name: sum(len(trace.x) for trace in figure.data if trace.name == name)
        for name in ("slice pair", "does not count", "launch")
    }
    assert points["launch"] == 7 * panels and points["does not count"] == 7 * panels, (
        "the first round of each part"
    )
    assert points["slice pair"] == 7 * sum(
        8 - 1 if ", closed loop" in one.text else 12 - 1
        for one in figure.layout.annotations
        if " of put" in one.text
    )


def test_cannot_tell_says_what_could_have_been_found_and_how_many_more_it_takes(make):
    for launch, ratio in enumerate((1.0, 1.08, 0.93, 1.03, 0.9, 1.1), start=1):
        make(launch, ratio=ratio)
    shown = duets.chosen()
    assert "only a difference above" in duets.answer(shown).data.splitlines()[0]
    assert duets.measures(shown).iloc[0]["more needed"].startswith(("about", "too many"))


def test_odd_launches_are_counted_beside_the_answer_that_is_not_of_them(make):
    for launch in range(1, 14):
        make(launch, ratio=1.6 if launch in (4, 9) else 1.1)
    shown = duets.chosen()
    text = duets.answer(shown).data
    assert "is slower than" in text.splitlines()[0] and 1.08 < shown.duet.primary.ratio < 1.12
    assert "That is the typical launch: 2 of 13 launches weigh less than half." in text
    assert duets.measures(shown).iloc[0]["odd"] == 2


def test_of_launches_in_two_groups_neither_is_the_answer(make):
    for launch in range(1, 13):
        make(launch, ratio=1.6 if launch % 3 else 1.0)
    text = duets.answer(duets.chosen()).data
    assert text.splitlines()[0].endswith("its launches fall into groups")
    assert "No launch is typical: 12 launches fall into groups." in text


def test_two_launches_give_no_number_but_say_why(make):
    make(1), make(2)
    shown = duets.chosen()
    assert "Under 6 launches" in duets.answer(shown).data
    assert "Nothing to draw" in drawn.ratios(shown).layout.title.text


def test_of_a_duet_without_a_launch_that_counts_charts_name_the_command_that_measures_it(make):
    make(1, experiment="shop", machine={"load_during": {"foreign_cpu_share_mean": 0.72}})
    shown = duets.chosen()
    assert shown.duet.counted == 0
    for figure in (drawn.ratios(shown), drawn.rounds(shown)):
        assert "kvstudy compare experiments/shop.yaml" in figure.layout.title.subtitle.text


def test_a_profiled_launch_is_none_that_might_have_counted(make):
    make(1), make(2), make(3, profile={"event": "cpu"})
    assert "2 of 2 launches count, 6 are needed" in duets.answer(duets.chosen()).data


def test_a_launch_that_both_sides_failed_is_left_out_once(make):
    died = make.end(died=True)
    make(1), make(2, ends={"a": died, "b": died}), make(3, ends={"a": died, "b": make.end()})
    assert duets.every(duets.chosen()).iloc[0][["launches", "left out"]].tolist() == [1, 2]


def test_what_a_side_lost_in_a_launch_that_others_disturbed_is_told(make):
    lost = {"a": make.end(), "b": make.end(data_check={"sampled": 9, "missing": 0, "wrong": 1})}
    make(1), make(2, machine={"load_during": {"steal_share_mean": 0.5}}, ends=lost)
    said = "1 left out for what came from outside, where data_kept of change failed too"
    assert said in duets.basis(duets.chosen())


def test_who_measures_until_the_answer_pleases_has_every_answer_on_the_page(make):
    for comparison, ratio in (("first", 1.1), ("second", 1.0)):
        for launch in range(1, 7):
            make(
                launch + (10 if comparison == "second" else 0),
                ratio=ratio,
                comparison=comparison,
                asked="the same",
            )
    shown = duets.chosen()
    assert shown.duet.comparison == "second"
    assert "measured 1 time more" in duets.basis(shown) and "slower" in duets.basis(shown)
    assert duets.every(shown)["duet"].tolist() == ["second", "first"]
    assert duets.chosen(comparison="fir").duet.comparison == "first"
    with pytest.raises(ExperimentError, match="no such duet"):
        duets.chosen(comparison="third")


def test_a_duet_of_ones_own_that_decides_nothing_takes_no_answer_away(make, root):
    reference = DuetMaker(root / "data" / "reference")
    for launch in range(1, 7):
        reference(launch, ratio=1.1, comparison="committed")
    make(11, comparison="own", ratio=1.1), make(12, comparison="own", ratio=1.1)
    shown = duets.chosen()
    assert shown.duet.comparison == "own" and shown.duet.is_own and not shown.others[0].is_own
    text = duets.answer(shown).data
    assert (
        text.startswith("## Cannot tell")
        and "**The reference decides it:** change is slower than main" in text
    )
    assert "`data/raw`" in text and duets.every(shown)["measured"].tolist() == ["yours", "reference"]
    (line,) = duets.summarize().data.splitlines()
    assert "The reference decides it:" in line and "2 launches, yours" in line
    for launch in range(13, 17):
        make(launch, comparison="own", ratio=1.1)
    assert "The reference" not in duets.answer(duets.chosen()).data, "one's own answer is enough"


def test_a_duet_over_hosts_says_where_it_ran_and_is_no_repeat_of_one_on_one_machine(make):
    for launch in range(1, 7):
        make(launch, ratio=1.1, comparison="here", asked="here")
        make(launch + 10, comparison="there", asked="there", hosts={"service": "a", "generators": ["b"]})
    shown = duets.chosen()
    assert "; service on a, loaded by b." in duets.answer(shown).data and not shown.again
    assert duets.every(shown)["where"].tolist() == ["service on a, loaded by b", "one machine"]
    assert "(6 launches, service on a, loaded by b, yours;" in duets.summarize().data


def test_a_word_that_is_held_back_says_so(make):
    for launch in range(1, 9):
        part = slices(12, ratio=0.9, noise=0.02, generator=make.generator)
        part.loc[(part["side"] == "a") & (part["round"] % 2 == 0), "idle_cpu_ns"] = 2e8
        make(launch, parts={("put", "rate"): part})
    shown = duets.chosen()
    assert "what was left out could be why" in duets.answer(shown).data
    left = duets.rounds_left_out(shown)
    assert left.loc[left["left out"] == "other side busy", "by"].tolist() == ["change"]


def test_every_launch_that_is_drawn_names_its_run_so_that_the_page_leads_to_its_folder(slower):
    named = {
        text.rsplit("<br>", 1)[1]
        for trace in drawn.rounds(slower).data
        if trace.name == "launch"
        for text in trace.text
    }
    assert named == set(slower.duet.counted_runs)


def test_rounds_of_launches_that_do_not_count_are_not_shown_as_if_they_did(make):
    for launch in range(1, 4):
        make(launch, asked="one build" if launch < 3 else "another")
    shown = duets.chosen()
    assert shown.duet.counted == len(shown.duet.counted_runs) == 2 and shown.duet.outside == 1
    rounds = duets.rounds_left_out(shown).set_index("loop")
    assert rounds.loc["at a rate", "of"] == 24 and "of 2 launches" in drawn.rounds(shown).layout.meta["drawn"]


def test_the_difference_of_both_profiles_needs_a_page_to_draw_in(slower):
    assert "No cpu profiles of both" in duets.difference(slower).data


def test_the_stacks_of_either_side_can_be_chosen_each_coloured_by_the_other(slower, monkeypatch):
    monkeypatch.setattr(duets, "_template", lambda *_: PAGE)
    html = duets.difference(slower).data
    assert re.findall("<option>(.*?)</option>", html) == ["change", "main"]
    assert re.findall(r"<strong>(.*?), self share of cpu: (get \S+ points)", html) == [
        ("change against main", "get -30.0 points"),
        ("main against change", "get +30.0 points"),
    ]


@pytest.mark.parametrize("experiment", [None, "compare"])
def test_the_page_runs_with_a_duet_alone_and_without_one(root, make, experiment):
    for launch in range(1, 7):
        make(launch, ratio=1.1)
    from run_maker import RunMaker

    for label in ("before", "after"):
        for repeat in range(2):
            RunMaker(root / "data" / "raw")(
                f"20261120T2042{repeat}{label[0]}Z-rep{repeat}",
                experiment="rates",
                label=label,
                seconds=[np.full(200, 300)] * 4,
            )
    names = run_page(root, experiment=experiment)
    assert names["shown"].duet.counted == 6
    for path in (root / "data" / "raw" / "compare").iterdir():
        path.rename(root / path.name)
    names = run_page(root)
    assert names["shown"] is None and len(tables.study_duets(root / "data", progress=False).duets) == 0


OPTION = {"experiment": "wal", "sides": {"a": {"name": "wal=interval"}, "b": {"name": "wal=always"}}}


def test_a_duet_of_an_option_is_told_with_the_options_and_not_twice(root):
    reference = DuetMaker(root / "data" / "reference")
    for launch in range(1, 7):
        reference(launch, ratio=1.5, comparison="option", **OPTION)
    found = options.measured_duets()
    rows = answers.summarize_options(empty_tables(), None, found).data.splitlines()[2:]
    assert any("wal=always instead of interval is slower: p50 |" in row for row in rows)
    assert all("| 6 launches of duets |" in row for row in rows)
    assert duets.summarize() is None
    card = next(card for card in headlines.index(empty_tables(), None, found).cards if "06" in card.page)
    assert "slower at the median" in card.answer and "6 launches of duets" in card.sure
    assert not any("runs valid" in badge for badge in card.sure)


def test_the_card_shows_the_largest_differences_first_and_calls_no_small_one_none(root):
    reference = DuetMaker(root / "data" / "reference")
    for launch in range(1, 7):
        reference(launch, ratio=1.085, comparison="wal", **OPTION)
        reference(
            launch,
            ratio=1.5,
            comparison="handler",
            experiment="handler",
            run_id=f"20261120T22{launch:02d}00Z-duet-put-launch{launch:02d}",
            sides={"a": {"name": "handler=selector"}, "b": {"name": "handler=workers"}},
        )
    found = options.measured_duets()
    card = next(card for card in headlines.index(empty_tables(), None, found).cards if "06" in card.page)
    first, second = card.bars
    assert (first.label, first.text) == ("handler=workers", "p50 1.5 ×")
    assert second.label == "wal=always" and re.fullmatch(r"(CPU|p\d+) 1\.0[1-9] ×", second.text), second.text


def test_the_chart_of_options_says_whose_each_line_is_where_they_are_of_both(root, make):
    reference = DuetMaker(root / "data" / "reference")
    for launch in range(1, 7):
        reference(launch, ratio=1.5, comparison="committed", **OPTION)
    alone = drawn_options.decided(options.every(empty_tables(), None, options.measured_duets()))
    assert not any("reference" in name for trace in alone.data for name in trace.y)
    sides = {"a": {"name": "gc=G1"}, "b": {"name": "gc=Serial"}}
    for launch in range(11, 17):
        make(launch, ratio=0.8, comparison="own", experiment="gc", sides=sides)
    rows = options.every(empty_tables(), None, options.measured_duets())
    names = [name for trace in drawn_options.decided(rows).data for name in trace.y]
    assert {name.rpartition(" ")[2] for name in names if name.startswith("gc")} == {"(yours)"}
    assert {name.rpartition(" ")[2] for name in names if name.startswith("wal")} == {"(reference)"}
    table = summary.options(rows)
    assert "duet of 6 launches, yours" in set(table["runs"])
    cards = headlines.index(empty_tables(), None, options.measured_duets()).cards
    assert "12 launches of duets, 6 yours" in next(card.sure for card in cards if "06" in card.page)


def test_every_duet_can_be_chosen_in_the_first_chart(root, make):
    for launch in range(1, 7):
        make(launch, ratio=1.5, comparison="option", **OPTION)
        make(launch + 10, ratio=0.8, comparison="builds")
    shown = duets.chosen()
    figure = drawn.every(shown)
    headings = [figure.layout.annotations[place].text for *_, place in figure.layout.meta["panels"]]
    assert headings == ["compare: change beside main", "wal: wal=always beside wal=interval"]
    assert "wal=always is slower than wal=interval" in figure.layout.meta["findings"][1]
    assert len([trace for trace in figure.data if trace.showlegend and trace.name == "slower"]) == 1
    assert sum(len(trace.x) for trace in figure.data) == sum(len(one.results) for one in duets.all_of(shown))
    rows = duets.every_measure(shown)
    assert rows["experiment"].unique().tolist() == ["compare", "wal"]
    assert len(rows) == sum(len(one.results) for one in duets.all_of(shown))
    assert figure.layout.yaxis.categoryarray[-1].startswith("<b>p50")


def test_duets_of_one_question_are_told_apart_and_whose_they_are(root, make):
    reference = DuetMaker(root / "data" / "reference")
    for launch in range(1, 7):
        make(launch, comparison="first"), make(launch + 10, comparison="second")
        reference(launch + 20, comparison="committed")
    figure = drawn.every(duets.chosen())
    headings = [figure.layout.annotations[place].text for *_, place in figure.layout.meta["panels"]]
    assert len(set(headings)) == 3 and headings[0].endswith("(yours second)")
    assert headings[2].endswith("(reference committed)")


def test_one_duet_alone_needs_no_chooser(slower):
    assert drawn.every(slower) == drawn.ratios(slower)


def test_a_duet_of_too_few_launches_hides_no_other_one(root, make):
    for launch in range(1, 7):
        make(launch, ratio=1.5, comparison="option", **OPTION)
        make(launch + 10, ratio=1.5, comparison="option again", **OPTION)
    make(30, comparison="begun")
    shown = duets.chosen()
    assert shown.duet.comparison == "begun" and shown.duet.counted == 1
    assert len(drawn.every(shown).layout.meta["panels"]) == 2


def test_the_first_chart_of_options_holds_no_more_than_a_screen(root, make):
    values = ("none", "os", "always", "a", "b")
    for place, value in enumerate(values):
        sides = {"a": {"name": "wal=interval"}, "b": {"name": f"wal={value}"}}
        for launch in range(1, 9):
            make(10 * place + launch, ratio=1.5 + place, comparison=value, experiment="wal", sides=sides)
    rows = options.every(empty_tables(), None, options.measured_duets())
    figure = drawn_options.decided(rows)
    names = [name for trace in figure.data for name in trace.y]
    assert len(rows) == 20 and len(names) == 16
    assert sum(name.endswith("put: p50") for name in names) == 5
    assert "16 of 20 are drawn, of each value the median first" in figure.layout.meta["drawn"]
