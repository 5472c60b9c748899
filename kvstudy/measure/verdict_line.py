"""What the checks say of a run as soon as it is sealed, by the rule of the study's pages
(``analyse/validity.py``): whoever measures learns at once which runs will count in no median, and why."""

from collections import Counter
from collections.abc import Iterable

from kvstudy.record.run_folder import SealedRun

CHECKS_SHOWN = 2  # of one run; the pages have them all


def failed_checks(run: SealedRun) -> dict[str, str]:
    """Name → what was seen and what is required, of the checks that the run failed; none where it is valid.
    First what nobody but the service does, as lost data; last what may follow from the rest, as a rate that
    was not held where other programs took the CPU."""
    # With pandas: half of what all of kvstudy takes to import, and a run begins without.
    from kvstudy.analyse.observation import observe
    from kvstudy.analyse.validity import FAIL, FOLLOWS_FROM_OVERLOAD, OF_THE_SERVICE

    def place(check: str) -> int:
        return 2 if check in FOLLOWS_FROM_OVERLOAD else 0 if check in OF_THE_SERVICE else 1

    try:
        checks = observe(run)["validity"]
    except Exception as error:  # of reading, hours into a measurement: it must not end that
        return {"readable": f"{type(error).__name__}: {error}"}
    failed = [check for check in checks if check["verdict"] == FAIL]
    failed.sort(key=lambda check: place(check["check"]))
    return {check["check"]: f"{check['observed']} (required: {check['required']})" for check in failed}


def format_verdict(failed: dict[str, str]) -> str:
    """``completed``, or ``completed, but invalid: no_foreign_load: 79.00 % (required: ≤ 5 % of the CPU time
    used by other processes; FAIL above 20 %)``."""
    if not failed:
        return "completed"
    rest = f"; {len(failed) - CHECKS_SHOWN} more" if len(failed) > CHECKS_SHOWN else ""
    return (
        "completed, but invalid: "
        + "; ".join(f"{name}: {seen}" for name, seen in list(failed.items())[:CHECKS_SHOWN])
        + rest
    )


def count_failures(failed: Iterable[dict[str, str]]) -> str:
    """``no_foreign_load 5, rate_held 3``: by how many runs each check was failed, the commonest first."""
    return ", ".join(
        f"{name} {count}"
        for name, count in Counter(name for checks in failed for name in checks).most_common()
    )
