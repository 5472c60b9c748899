"""All simulations of soundness at full length, and their table: `make soundness`.

    python tests/soundness/run.py [--only MODULE] [--write docs/results/DATE-soundness.md]

Prints the table as Markdown; --write puts it between the two marks of that file, with --only the rows of that
module alone. Exits with 1 when a goal is missed that is no known limit.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import date
from pathlib import Path

from simulation import Outcome, Simulation, simulations

BEGIN, END = "<!-- made by make soundness: begin -->", "<!-- end -->"


def main() -> int:
    arguments = argparse.ArgumentParser(description="how often the study's rules say something false")
    arguments.add_argument("--only", metavar="MODULE", help="of rules/ this one alone")
    arguments.add_argument(
        "--write", metavar="FILE", type=Path, help="put the table between the marks of this file"
    )
    given = arguments.parse_args()
    chosen = [(name, place) for name, place, _ in simulations() if given.only in (None, name)]
    if not chosen:
        arguments.error(f"no such module: only={given.only}")
    outcomes = _run(chosen)
    found = {(one.simulation.rule, one.simulation.counted): _row(one) for one in outcomes}
    print("\n" + _table(found))
    if given.write:
        _put(given.write, _table(rows(given.write) | found))
    missed = [outcome for outcome in outcomes if not outcome.holds and not outcome.simulation.limit]
    for outcome in missed:
        print(f"goal missed: {outcome}", file=sys.stderr)
    return 1 if missed else 0


def _run(chosen: list[tuple[str, int]]) -> list[Outcome]:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        running = {pool.submit(_one, name, place): (name, place) for name, place in chosen}
        found = {}
        for done in as_completed(running):
            name, place = running[done]
            found[name, place] = Outcome(_simulation(name, place), *done.result())
            print(found[name, place], flush=True)
    return [found[key] for key in chosen]


def _one(name: str, place: int) -> tuple[int, int, float]:
    """Named, not handed over: what a simulation counts with may be a function that cannot be pickled."""
    outcome = _simulation(name, place).run()
    return outcome.hits, outcome.trials, outcome.lasted_s


def _simulation(name: str, place: int) -> Simulation:
    return next(one for module, at, one in simulations() if (module, at) == (name, place))


def rows(path: Path) -> dict[tuple[str, str], str]:
    """Rule and what is counted → the row of the table in that file."""
    lines = path.read_text(encoding="utf-8").split(BEGIN)[-1].split(END)[0].splitlines()
    found = [line for line in lines if line.startswith("| ")][1:]
    return {tuple(cell.strip() for cell in line.split("|")[1:3]): line for line in found}


def _table(of: dict[tuple[str, str], str]) -> str:
    """Of all simulations that have a row, in their order."""
    ours = [one for _, _, one in simulations()]
    seeds = ", ".join(map(str, sorted({one.seed for one in ours})))
    lines = [
        f"Seed {seeds}, {date.today().isoformat()}.",
        "",
        "| rule | counted | goal | found | 95 % interval | holds |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [of[one.rule, one.counted] for one in ours if (one.rule, one.counted) in of])


def _row(outcome: Outcome) -> str:
    low, high = outcome.interval
    one = outcome.simulation
    holds = "yes" if outcome.holds else "**no**, a known limit" if one.limit else "**no**"
    return (
        f"| {one.rule} | {one.counted} | {one.goal} | "
        f"{outcome.hits} of {outcome.trials} ({outcome.share:.1%}) | "
        f"{low:.1%}–{high:.1%} | {holds} |"
    )


def _put(path: Path, table: str) -> None:
    text = path.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or END not in text.split(BEGIN)[1]:
        raise SystemExit(f"no place for the table: file={path}\nit needs the lines {BEGIN} and {END}")
    before, rest = text.split(BEGIN)
    path.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
