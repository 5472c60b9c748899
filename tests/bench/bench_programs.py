"""The benchmarks are programs beside what they measure, and none of a package's modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def program(path: str) -> ModuleType:
    """``path``: in the project. What lies beside it can be imported from it, as when it is called."""
    file = ROOT / path
    spec = importlib.util.spec_from_file_location(f"program_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there for their own
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module
