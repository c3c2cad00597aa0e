"""Set-up compiles everything: after the rehearsal no kernel is left for a user's first request to wait for."""

import ast
import json
import subprocess
import sys

from models.text.tokens import buffer
from tests.support import ROOT

# Used by experiments only: it scores documents for all fitted topics.
NOT_SERVED = {("models.methods.matrix", "_scores")}

# Prints which of these kernels the rehearsal has not called.
REHEARSED = """
import asyncio, importlib, json, sys
from service.run.warm import rehearse
asyncio.run(rehearse(sys.argv[1]))
print()
kernels = ((module, name, importlib.import_module(module)) for module, name in json.loads(sys.argv[2]))
print(json.dumps([[module, name] for module, name, where in kernels if not getattr(where, name).signatures]))
"""


def is_kernel(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(ast.unparse(d).startswith("kernel") for d in node.decorator_list)


def used_by_python(node: ast.AST) -> set[str]:
    """Names that occur outside kernels, whose own calls of each other are compiled with them."""
    if is_kernel(node):
        return set()
    name = {node.id} if isinstance(node, ast.Name) else set[str]()
    return name.union(*map(used_by_python, ast.iter_child_nodes(node)))


def called_by_python() -> set[tuple[str, str]]:
    """(module, name) of each kernel that a Python function of its own module, or of one that imports it, uses."""
    paths = [*ROOT.glob("models/**/*.py"), *ROOT.glob("service/**/*.py")]
    trees = {".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text()) for path in paths}
    kernels = {
        (module, n.name)
        for module, tree in trees.items()
        for n in tree.body
        if isinstance(n, ast.FunctionDef) and is_kernel(n)
    }
    used: set[tuple[str, str]] = set()
    for module, tree in trees.items():
        here = used_by_python(tree)
        used |= {(module, name) for name in here}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("models."):
                used |= {(str(node.module), n.name) for n in node.names if n.name in here}
    return kernels & used - NOT_SERVED


def test_the_rehearsal_calls_every_kernel_that_python_calls(redis_url: str) -> None:
    """In a process of its own: in this one, other tests have called kernels already."""
    called = sorted(called_by_python())
    assert len(called) > 10
    ran = subprocess.run(
        [sys.executable, "-c", REHEARSED, redis_url, json.dumps(called)], capture_output=True, check=True
    )
    assert json.loads(ran.stdout.splitlines()[-1]) == []


def test_no_documents_are_read_by_what_was_compiled_for_some() -> None:
    """A preview before anything had passed once took ten seconds: one number is contiguous however it is strided, so
    the kernels that read text were compiled again for it."""
    for zones in ([], [b""], [b"OPEC", b"meets in Vienna"]):
        assert not buffer(zones).eights.flags.c_contiguous
