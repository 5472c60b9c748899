"""How much `make duet-power` plants is a share of what requests cost on the machine that measures."""

import importlib.util
import json

from project import PROJECT

PLANTED = PROJECT / "tests" / "planted"


def test_how_much_five_percent_are_is_never_taken_from_another_machine():
    spec = importlib.util.spec_from_file_location("duet_power", PLANTED / "duet_power.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    line = next(
        one
        for one in (PLANTED / "duet-power-shared.jsonl").read_text(encoding="utf-8").splitlines()
        if '"kind": "nothing"' in one and '"is_quiet": true' in one
    )
    found = json.loads(line)
    here, elsewhere = (
        script.Outcome.from_line(json.dumps(found | {"machine": machine}))
        for machine in (script.this_machine(), "another processor")
    )
    known = {here.key: here}
    usual = script.unchanged(known, here.workload, script.launches.P50, here.pairs)
    assert usual == here.of(script.launches.P50).a
    assert (
        script.unchanged({elsewhere.key: elsewhere}, here.workload, script.launches.P50, here.pairs) is None
    )
    assert script.unchanged(known, here.workload, script.launches.P50, 30) is None, "of longer launches"
