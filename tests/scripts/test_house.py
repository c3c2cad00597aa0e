"""The packages: an essay introduces each of them, none grows too large, and CONTRIBUTING.md names them all."""

import ast
import re
from pathlib import Path

import pytest

from tests.support import ROOT

MAX_MODULES = 16
PUBLIC = {"service/schemas", "service/client"}  # users import from these by the name of the package


def folders(*trees: str) -> list[str]:
    """Every folder with Python modules below these, as paths from the root."""
    paths = {path.parent for tree in trees for path in (ROOT / tree).rglob("*.py")}
    return sorted(path.relative_to(ROOT).as_posix() for path in paths)


def modules(folder: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).glob("*.py") if path.name != "__init__.py")


PACKAGES = [folder for folder in folders("models", "service", "scripts") if "/" in folder]


def test_there_are_packages() -> None:
    assert {"models/core", "service/store", "service/api/routes", "scripts/common"} <= set(PACKAGES)


@pytest.mark.parametrize("package", ["models", "service", *PACKAGES])
def test_the_essay_of_each_package_names_every_module(package: str) -> None:
    """An essay that leaves a module out misleads those who read by it."""
    essay = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text()))
    assert essay
    for module in modules(package):
        assert re.search(rf"(?<![\w/.-]){re.escape(module.name)}\b", essay), module.name


@pytest.mark.parametrize("package", sorted({"models", "service", *PACKAGES} - PUBLIC))
def test_a_package_imports_nothing(package: str) -> None:
    """Else a process that needs a light module of it would load the heavy ones, too."""
    tree = ast.parse((ROOT / package / "__init__.py").read_text())
    assert not [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


@pytest.mark.parametrize("folder", folders("models", "service", "scripts", "tests"))
def test_a_folder_can_be_taken_in_at_a_glance(folder: str) -> None:
    assert len(modules(folder)) <= MAX_MODULES


def test_contributing_names_every_package() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    missing = [package for package in PACKAGES if not re.search(rf"`{package}/?`", text)]
    assert not missing
