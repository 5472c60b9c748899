"""The README's picture comes from data/reference."""

from dataclasses import replace

from sample import sample_tables

from kvstudy.present import notebook, picture


def test_the_stopped_service_is_drawn_on_its_schedule_alone(monkeypatch, tmp_path):
    tables = sample_tables(workloads=("unique_put",), profiled=False)
    runs = tables.runs.assign(experiment="stall")
    runs.loc[runs.index[0], "experiment"] = "reproduce"
    runs.loc[runs.index[1], "closed_loop"] = True
    monkeypatch.setattr(notebook, "reference_tables", lambda: replace(tables, runs=runs))
    drawn = str(picture.picture().to_dict())
    assert all((run_id in drawn) == (number > 1) for number, run_id in enumerate(runs["run_id"]))
    picture.write(tmp_path / "build" / "figure.html")
    assert "Plotly" in (tmp_path / "build" / "figure.html").read_text()
