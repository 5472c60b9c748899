"""From what an experiment names to the subject that can be launched."""

from collections.abc import Callable
from pathlib import Path

from kvstudy.plan.run_plan import Configuration
from kvstudy.plan.subject import EMPTY
from kvstudy.project import empty_server_jar, service_jar
from kvstudy.subject.command import Command
from kvstudy.subject.jdk import find_jdk
from kvstudy.subject.kv_service import EmptyServer, KvService
from kvstudy.subject.protocol import Subject
from kvstudy.subject.running import Address


def subject_of(configuration: Configuration, root: Path, built: Callable[[str, Path], Path]) -> Subject:
    """``built(revision, root)`` gives the service's jar of another revision, built if it is not there yet."""
    spec = configuration.spec
    if spec.program == EMPTY:
        return EmptyServer(find_jdk(), empty_server_jar(root), configuration.jvm, root)
    if spec.program:
        return KvService(find_jdk(), service_jar(root), configuration.service, configuration.jvm, root)
    if spec.build:
        return KvService(
            find_jdk(),
            built(spec.build, root),
            configuration.service,
            configuration.jvm,
            root,
            has_admin=None,
        )
    adapter = Command if spec.command else Address
    return adapter(spec, root, find_jdk() if spec.jvm else None)
