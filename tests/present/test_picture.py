"""The README's picture comes from the runs that are there."""

from dataclasses import replace

from sample import sample_tables

from kvstudy.present import notebook, picture


def test_the_main_experiment_is_drawn_at_its_highest_rate(monkeypatch, tmp_path):
    tables = sample_tables(workloads=("unique_put", "repeated_get"), profiled=False)
    monkeypatch.setattr(notebook, "all_tables", lambda: replace(tables, runs=tables.runs.assign(experiment="reproduce")))
    drawn = str(picture.picture().to_dict())
    assert "unique_put" in drawn and "repeated_get" not in drawn
    assert "16 000" in drawn.replace("\\u202f", " ").replace("\u202f", " ") and "4 000" not in drawn.replace("\u202f", " ")
    picture.write(tmp_path / "build" / "figure.html")
    assert "Plotly" in (tmp_path / "build" / "figure.html").read_text()
