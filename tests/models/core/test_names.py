import subprocess
import sys

import pytest

from models.core.names import BATCH_NAMES, LEARNER_NAMES
from models.methods.registry import METHODS
from models.online.registry import AUTO, LEARNERS
from tests.support import ROOT


def test_the_registries_hold_what_is_named_in_the_same_order() -> None:
    assert tuple(LEARNERS) == LEARNER_NAMES
    assert tuple(METHODS) == BATCH_NAMES
    assert set(AUTO) <= set(LEARNER_NAMES)


@pytest.mark.parametrize(
    "module", ["models.core.names", "service.schemas.jobs", "service.schemas.models", "service.store.events"]
)
def test_names_are_had_without_loading_the_mathematics(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'numpy', 'numba', 'scipy', 'sklearn'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
