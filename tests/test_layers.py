"""The direction of imports, and the few things that only one module may do.

Everything is read from the source with ``ast``, so an import inside a function or under
``TYPE_CHECKING`` counts like any other.
"""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "pytest_sqsq"
ROOT = Path(__file__).parents[1]

LAYERS = (
    ("plugin", "__main__"),
    ("cli",),
    ("__init__",),
    ("server",),
    ("testing", "http", "direct", "admin"),
    ("gateway",),
    ("protocol",),
    ("actions",),
    ("engine",),
    ("store",),
    ("errors", "limits", "models", "clock", "timeline", "travel", "options", "environment"),
)
"""From top to bottom.  A unit imports itself and lower layers; the lowest are the leaves, which
may also import each other."""

PARTS = {
    "aio": "server",
    "autojump": "server",
    "running": "server",
    "clients": "server",
    "configuration": "plugin",
    "controls": "server",
    "life": "server",
    "scheduler": "server",
    "serve_file": "cli",
    "stack": "server",
    "fixture_order": "plugin",
    "guard": "plugin",
    "making": "plugin",
    "shared": "plugin",
    "strict": "plugin",
    "whole_run": "plugin",
}
"""Modules that are one unit with another, to keep files short."""

LEVEL = {unit: level for level, units in enumerate(LAYERS) for unit in units}
LEAVES = LAYERS[-1]

PROCESS_TIME = {"time", "now", "utcnow", "today"}
HEAVY = ("boto3", "botocore", "fakeredis", "redis", "werkzeug", "xmltodict")


@dataclass(frozen=True)
class Module:
    """One source file of the package: its dotted name below the package, and its tree."""

    name: str
    path: str
    tree: ast.Module
    is_package: bool = False

    @property
    def unit(self) -> str:
        return unit_of(self.name)


@dataclass(frozen=True)
class Import:
    """One name that a module imports, absolute: ``pytest_sqsq.engine.queue`` or ``json``."""

    target: str
    line: int

    @property
    def top(self) -> str:
        return self.target.partition(".")[0]

    @property
    def unit(self) -> str | None:
        """The unit of the package that this imports, ``None`` for what is not ours."""
        package, _, rest = self.target.partition(".")
        if package != PACKAGE:
            return None
        unit = unit_of(rest)
        return unit if unit in LEVEL else "__init__"


def unit_of(name: str) -> str:
    first = name.partition(".")[0]
    return PARTS.get(first, first)


def parsed(name: str, source: str, *, is_package: bool = False) -> Module:
    path = f"{PACKAGE}/{name.replace('.', '/')}{'/__init__' if is_package else ''}.py"
    return Module(name, path, ast.parse(source), is_package)


def modules() -> list[Module]:
    found = []
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT / PACKAGE).with_suffix("").parts
        is_package = len(parts) > 1 and parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found.append(parsed(name, path.read_text(encoding="utf-8"), is_package=is_package))
    return found


def imports(module: Module) -> Iterator[Import]:
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, node.lineno)
            case ast.ImportFrom(names=names, level=level):
                base = absolute(module, "." * level + (node.module or ""))
                for alias in names:
                    yield Import(f"{base}.{alias.name}", node.lineno)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield Import(absolute(module, name), node.lineno)


def absolute(module: Module, name: str) -> str:
    if not name.startswith("."):
        return name
    here = PACKAGE if module.name == "__init__" else f"{PACKAGE}.{module.name}"
    parent = here if module.is_package or module.name == "__init__" else here.rpartition(".")[0]
    return importlib.util.resolve_name(name, parent).rstrip(".")


def places(module: Module) -> Iterator[str]:
    if module.unit not in LEVEL:
        yield f"{module.path}:1: {module.unit!r} has no place in LAYERS; give it one"


def direction(module: Module) -> Iterator[str]:
    for found in imports(module):
        unit = found.unit
        if unit is None or unit == module.unit or module.unit not in LEVEL:
            continue
        among_leaves = unit in LEAVES and module.unit in LEAVES
        if LEVEL[unit] <= LEVEL[module.unit] and not among_leaves:
            yield (
                f"{module.path}:{found.line}: {module.unit} imports {found.target}; imports point"
                " downward only: plugin, cli → server → testing, http, direct, admin → gateway →"
                " protocol → actions → engine → store → leaves"
            )


def probes_on_actions_and_engine(module: Module) -> Iterator[str]:
    if module.unit != "testing":
        return
    for found in imports(module):
        if found.unit is not None and found.unit not in {"testing", "actions", "engine", *LEAVES}:
            yield (
                f"{module.path}:{found.line}: testing imports {found.target}; it stands on"
                " actions and engine only, so that it works the same behind every front end"
            )


def pytest_in_plugin(module: Module) -> Iterator[str]:
    if module.unit == "plugin":
        return
    for found in imports(module):
        if found.top in {"pytest", "_pytest", "pluggy"}:
            yield (
                f"{module.path}:{found.line}: imports {found.target}; only the plugin knows"
                " pytest, so that the server runs without it"
            )


def time_in_clock(module: Module) -> Iterator[str]:
    if module.unit == "clock":
        return
    rule = "only clock.py asks what time it is, so that everything follows one clock"
    for found in imports(module):
        if found.top == "time":
            yield f"{module.path}:{found.line}: imports time; {rule}"
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=asked, value=owner)) if (
                asked in PROCESS_TIME and last_name(owner) in {"datetime", "date", "time"}
            ):
                yield f"{module.path}:{node.lineno}: calls {ast.unparse(node.func)}(); {rule}"


def last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def array_attributes(message_log: Module) -> set[str]:
    """The names of MessageLog's lists: what nobody else may touch."""
    names = set()
    for node in ast.walk(message_log.tree):
        match node:
            case ast.AnnAssign(
                target=ast.Attribute(value=ast.Name(id="self"), attr=name),
                annotation=ast.Subscript(value=ast.Name(id="list")),
            ):
                names.add(name)
    return names


def array_in_message_log(arrays: set[str]) -> Callable[[Module], Iterator[str]]:
    def rule(module: Module) -> Iterator[str]:
        if module.name == "engine.message_log":
            return
        for node in ast.walk(module.tree):
            match node:
                case ast.Attribute(attr=name) if name in arrays:
                    yield (
                        f"{module.path}:{node.lineno}: touches {ast.unparse(node)}; the array of"
                        " a message log belongs to engine/message_log.py alone"
                    )

    return rule


@pytest.mark.parametrize(
    "rule", [places, direction, probes_on_actions_and_engine, pytest_in_plugin, time_in_clock]
)
def test_no_module_breaks_the_rule(rule: Callable[[Module], Iterator[str]]) -> None:
    violations = [text for module in modules() for text in rule(module)]
    assert not violations, "\n" + "\n".join(violations)


def test_nothing_outside_message_log_touches_the_array() -> None:
    found = modules()
    message_log = next(module for module in found if module.name == "engine.message_log")
    arrays = array_attributes(message_log)
    assert arrays, "no list attribute in engine/message_log.py: this test has lost its subject"
    rule = array_in_message_log(arrays)
    violations = [text for module in found for text in rule(module)]
    assert not violations, "\n" + "\n".join(violations)


def test_loading_the_plugin_imports_no_heavy_library() -> None:
    code = (
        f"import sys, {PACKAGE}.plugin\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


@pytest.mark.parametrize(
    ("name", "source", "rule", "text"),
    [
        ("engine.queue", "from pytest_sqsq.gateway import gate", direction, "engine imports"),
        ("engine.queue", "from pytest_sqsq import server", direction, "engine imports"),
        ("engine.queue", "from ..actions.queues import resolve", direction, "engine imports"),
        ("store.redis", "from pytest_sqsq import SqsServer", direction, "store imports"),
        ("http.wsgi", "def f():\n    import pytest_sqsq.admin.page", direction, "http imports"),
        ("models", "import pytest_sqsq.engine", direction, "models imports"),
        ("server", "import importlib\nimportlib.import_module('.cli')", direction, "server imp"),
        (
            "testing.probe",
            "from pytest_sqsq.gateway.requests import RequestLog",
            probes_on_actions_and_engine,
            "testing imports pytest_sqsq.gateway.requests.RequestLog",
        ),
        ("testing.assertions", "import pytest", pytest_in_plugin, "only the plugin"),
        ("engine.queue", "from time import monotonic", time_in_clock, "imports time"),
        ("engine.queue", "import datetime as d\nd.datetime.now()", time_in_clock, ":2: calls"),
        ("engine.queue", "log._slots[0]", array_in_message_log({"_slots"}), "touches log._slots"),
        ("helpers", "", places, "'helpers' has no place"),
    ],
)
def test_each_rule_names_what_breaks_it(
    name: str, source: str, rule: Callable[[Module], Iterator[str]], text: str
) -> None:
    [violation] = rule(parsed(name, source))
    assert text in violation
    assert violation.startswith(f"{PACKAGE}/{name.replace('.', '/')}.py:")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("gateway.handler", "from pytest_sqsq.engine import Broker"),
        ("engine.queue", "from . import standard\nfrom pytest_sqsq.clock import Clock"),
        ("clock", "from pytest_sqsq.models import Event"),
        ("plugin", "import pytest_sqsq\nfrom pytest_sqsq.server import SqsServer"),
        ("testing.probe", "from pytest_sqsq.actions import perform"),
    ],
)
def test_imports_that_point_downward_are_fine(name: str, source: str) -> None:
    module = parsed(name, source)
    rules = (places, direction, probes_on_actions_and_engine)
    assert [text for rule in rules for text in rule(module)] == []
