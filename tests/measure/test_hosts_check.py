"""What is said of hosts before they are asked."""

from importlib.metadata import PackageNotFoundError

import pytest

from kvstudy.errors import ToolMissing
from kvstudy.hosts.hosts_file import HostsFile
from kvstudy.measure import hosts_check


def test_who_has_no_dask_is_told_what_to_install(monkeypatch):
    def none(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(hosts_check, "version", none)
    hosts = {
        name: {"address": f"192.0.2.{place}", "roles": [role]}
        for place, (name, role) in enumerate((("a", "service"), ("b", "generator")), start=1)
    }
    with pytest.raises(ToolMissing) as told:
        hosts_check.examine(HostsFile.model_validate({"ssh": {}, "hosts": hosts}))
    assert told.value.message == "measuring on several hosts needs Dask, and there is none here"
    assert "make setup" in told.value.hint
