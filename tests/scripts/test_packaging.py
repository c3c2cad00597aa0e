"""What goes into the wheel, besides Python."""

import subprocess
import tomllib

from tests.support import ROOT


def test_every_data_file_of_a_package_is_declared() -> None:
    command = ["git", "ls-files", "models", "service"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    paths = {f"{package.replace('.', '/')}/{name}" for package, names in declared.items() for name in names}
    assert paths == {path for path in listed if not path.endswith(".py")}
