"""One sealed launch of a duet, read once: its rows of the tables ``duets``, ``slices``, ``ratios``,
``duet_stacks`` and ``duet_validity``.

A launch is never dropped: what cannot be read is said in its check ``readable``, and the rest of its rows are
there.
"""

import json

import pandas as pd

from kvstudy.analyse import duet_validity, schema, validity
from kvstudy.analyse.comparison import launches
from kvstudy.analyse.conditions import hosts_of_run, pinning_of_run
from kvstudy.analyse.evidence import unlike_sealed, why_unreadable
from kvstudy.record import duet, generator_result, stacks
from kvstudy.record.run_folder import SealedRun


def observe_duet(run: SealedRun) -> dict[str, list[dict]]:
    """Table name → rows, each with the keys of kvstudy.analyse.schema."""
    facts, problems = run.facts, []

    def attempt(reader, default):
        try:
            return reader()
        except Exception as error:  # whatever somebody else wrote into it
            problems.append(why_unreadable(run, error))
            return default

    slices = attempt(lambda: duet.slices_of(run), duet.no_slices())
    counted = launches.counted_slices(
        slices, int(run.machine.get("cores_usable") or run.machine.get("cores") or 1)
    )
    histograms = attempt(lambda: duet.slice_histograms(run), {})
    files = {
        part["workload"] + " " + part["loop"]: duet.generator_file(part["workload"], part["loop"])
        for part in facts["parts"]
    }
    generators = {
        name: attempt(lambda file=file: generator_result.read_json(run.text(file), file), None)
        for name, file in files.items()
        if run.has(file)
    }
    generators = {name: one for name, one in generators.items() if one is not None}
    ratios = launches.launch_values(
        counted,
        histograms,
        launches.sent_per_counted(facts["parts"]),
        facts["primary"]["measure"],
        cold=not any(part["warm_pairs"] for part in facts["parts"]),
    )
    # What the generator spoiled it spoiled for both sides: they would look the same.
    spoiled = {name: duet_validity.without_meaning(one) for name, one in generators.items()}
    ratios = ratios[
        [row.measure not in spoiled.get(f"{row.workload} {row.loop}", ()) for row in ratios.itertuples()]
    ]
    rows = {
        "slices": _rows(run, counted),
        "ratios": _rows(run, ratios),
        "duet_stacks": [row for side in duet.SIDES for row in _stacks(run, side, attempt)],
    }
    unexpected = attempt(lambda: duet.unexpected_answers(run), {})
    problems += unlike_sealed(run, problems)
    checks = duet_validity.check(run, counted, generators, unexpected, problems)
    return {
        **rows,
        "duet_validity": [{"run_id": run.run_id, **vars(one)} for one in checks],
        "duets": [_duet(run, checks)],
    }


def _rows(run: SealedRun, frame: pd.DataFrame) -> list[dict]:
    return [{"run_id": run.run_id, **row} for row in frame.to_dict("records")]


def _stacks(run: SealedRun, side: str, attempt) -> list[dict]:
    files = {event: duet.side_file(f"{event}.collapsed", side) for event in schema.PROFILE_EVENTS}
    return [
        {"run_id": run.run_id, "side": side, "event": event, "stack": stack, "samples": samples}
        for event, file in files.items()
        if run.has(file)
        for stack, samples in sorted(attempt(lambda file=file: stacks.read(run.text(file), file), {}).items())
    ]


def _duet(run: SealedRun, checks: list[validity.Check]) -> dict:
    facts = run.facts
    starts = [
        phase["start_utc"] for phase in (facts.get("phases") or {}).values() if (phase or {}).get("start_utc")
    ]
    return {
        "run_id": run.run_id,
        **{
            name: facts[name]
            for name in (
                "experiment",
                "label",
                "comparison",
                "launch",
                "outcome",
                "revision",
                "dirty",
                "seed",
            )
        },
        "asked": str(facts.get("asked") or facts["comparison"]),
        **{side: str(facts["sides"][side]["name"]) for side in duet.SIDES},
        **{name: json.dumps(facts[name], sort_keys=True) for name in ("sides", "parts", "primary")},
        "same_within": facts["same_within_percent"] / 100,
        "profiled": bool(facts["profile"]),
        "verdict": validity.worst(checks),
        "excluded": duet_validity.excluded(checks),
        "hosts": hosts_of_run(run),
        "pinning": pinning_of_run(run),
        "start_utc": min(starts, default=""),
    }
