"""The README's picture comes from the runs that are there."""

from dataclasses import replace

import pytest
from sample import sample_tables

from kvstudy.present import notebook, picture


@pytest.mark.parametrize(("experiment", "workloads", "drawn"), [("report-1", ("put", "get"), {"put", "get"}), ("reproduce", ("unique_put", "repeated_get"), {"unique_put"})])
def test_the_search_is_drawn_and_without_one_the_main_experiment(monkeypatch, tmp_path, experiment, workloads, drawn):
    tables = sample_tables(workloads=workloads, profiled=False)
    monkeypatch.setattr(notebook, "all_tables", lambda: replace(tables, runs=tables.runs.assign(experiment=experiment)))
    assert {workload for trace in picture.picture().data for workload in drawn | {"repeated_get"} if f"<b>{workload}</b>" in str(trace.text)} == drawn
    picture.write(tmp_path / "build" / "figure.html")
    assert "Plotly" in (tmp_path / "build" / "figure.html").read_text()
