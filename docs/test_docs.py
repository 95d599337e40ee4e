"""Runs every code block of README and docs, and follows every link between them.

All blocks of a page are files of one folder, in which pytest is run. A Python block is a test file
of its own, unless its fence names it: ```` ```python title="conftest.py" ````. Blocks of other
languages that are to be written must have such a title. ``console`` and ``text`` blocks are for
reading only.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from pytest_sqsq import cli
from pytest_sqsq.actions import ACTIONS
from pytest_sqsq.options import PLUGIN_OPTIONS
from pytest_sqsq.serve_file import KEYS

if TYPE_CHECKING:
    from markdown_it.token import Token

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md") for path in ROOT.glob(pattern)
)
READ_ONLY = {"console", "text"}
# Their code needs what only an environment of tox's own has, and is run there.
ELSEWHERE = {"docs/how-to/async.md": "aioboto3"}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def tokens(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Block:
    language: str
    title: str | None
    line: int
    content: str

    @property
    def file_name(self) -> str:
        if self.title is not None:
            return self.title
        assert self.language == "python", f"line {self.line}: this {self.language} needs a title"
        return f"test_line_{self.line}.py"

    @property
    def padded(self) -> str:
        """The content at the lines that it has in the page, so that tracebacks point there."""
        return "\n" * self.line + self.content


def blocks(page: Path) -> Iterator[Block]:
    for token in tokens(page):
        if token.type in {"fence", "code_block"}:
            assert token.map is not None
            language, *options = shlex.split(token.info) or [""]
            settings = dict(option.split("=", 1) for option in options)
            yield Block(language, settings.get("title"), token.map[0] + 1, token.content)


def runnable(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language not in READ_ONLY]


def can_be_run(page: Path) -> bool:
    needed = ELSEWHERE.get(name_of(page))
    return bool(runnable(page)) and (needed is None or find_spec(needed) is not None)


@pytest.mark.parametrize("page", [page for page in PAGES if can_be_run(page)], ids=name_of)
def test_the_code_of_the_page_runs(page: Path, pytester: pytest.Pytester) -> None:
    found = runnable(page)
    names = [block.file_name for block in found]
    assert len(set(names)) == len(names), f"two blocks share a title: {sorted(names)}"
    for block in found:
        (pytester.path / block.file_name).write_text(block.padded, encoding="utf-8")

    # A page that shows its own filters of warnings is run with them; the command line would win.
    filtered = any("filterwarnings" in block.content for block in found)
    # The last option keeps pytest-asyncio from warning that it is not set.
    result = pytester.runpytest_subprocess(
        *(() if filtered else ("-W", "error")),
        *("-p", "no:cacheprovider"),
        *("-o", "asyncio_default_fixture_loop_scope=function"),
    )

    has_tests = any(
        re.search(r"^\s*(async )?def test_", block.content, re.MULTILINE) for block in found
    )
    assert result.ret == (pytest.ExitCode.OK if has_tests else pytest.ExitCode.NO_TESTS_COLLECTED)


def without_chance(text: str) -> str:
    """A report without what differs from run to run: instants, ids, ports, the width."""
    instant = r"\d{4}-\d\d-\d\dT[\d:.]+Z"
    message_id = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    port = r"(?<=127\.0\.0\.1:)\d+"
    return re.sub(f"{instant}|{message_id}|{port}|-{{5,}}", "…", text)


def test_the_tutorial_shows_the_report_of_a_failed_test(pytester: pytest.Pytester) -> None:
    page = ROOT / "docs" / "tutorial.md"
    for block in runnable(page):
        content = block.content.replace("max_receive_count=3", "max_receive_count=4")
        (pytester.path / block.file_name).write_text(content, encoding="utf-8")

    result = pytester.runpytest_subprocess("test_dead_letter.py", "-p", "no:cacheprovider")

    shown = [block.content for block in blocks(page) if block.language == "text"]
    assert len(shown) == 2
    for text in shown:
        assert without_chance(text) in without_chance(f"{result.stdout}\n")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    known = READ_ONLY | {"python", "toml", "ini"}
    unknown = [f"{name_of(page)}:{b.line}" for b in blocks(page) if b.language not in known]
    assert unknown == []


def links(page: Path) -> Iterator[str]:
    for token in tokens(page):
        for child in token.children or []:
            if child.type == "link_open":
                yield str(child.attrs["href"])


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    found = tokens(page)
    texts = [found[i + 1].content for i, token in enumerate(found) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_between_the_pages_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_of_the_docs_can_be_reached_from_the_index() -> None:
    waiting, reached = [ROOT / "docs" / "index.md"], set()
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        waiting += [
            (page.parent / link.partition("#")[0]).resolve()
            for link in links(page)
            if not re.match(r"[a-z]+:|#", link)
        ]
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert sorted(map(name_of, pages - reached)) == []


def first_cells(page: str) -> list[list[str]]:
    """The rows of a page's tables whose first cell is code, as the texts of their cells."""
    found = []
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            found.append(cells)
    return found


def test_the_reference_lists_the_options_and_their_defaults() -> None:
    listed = {
        cells[0].strip("`"): ast.literal_eval(cells[1].strip("`"))
        for cells in first_cells("reference/options.md")
    }
    assert listed == {name: option.default for name, option in PLUGIN_OPTIONS.items()}


def test_the_reference_lists_the_flags_of_the_command(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    with pytest.raises(SystemExit):
        cli.main(["serve", "--help"])
    flags = r"--[a-z-]+(?: [A-Z_]+)?"
    shown = re.findall(rf"^  ({flags}(?:, {flags})*)", capsys.readouterr().out, re.MULTILINE)

    rows = [cells for cells in first_cells("reference/command-line.md") if "--" in cells[0]]

    assert [cells[0].replace("`", "") for cells in rows] == shown
    assert [cells[1].strip("`") for cells in rows[-len(cli.OPTIONS) :]] == [
        "" if option.default is None else str(option.default) for option in cli.OPTIONS.values()
    ]


def test_the_reference_lists_the_keys_of_queues_in_a_file() -> None:
    keys = {
        key
        for cells in first_cells("reference/command-line.md")
        for key in re.findall("`([a-z_]+)`", cells[0])
    }
    assert keys == set(KEYS)


def test_the_reference_lists_the_actions() -> None:
    listed = [cells[0].strip("`") for cells in first_cells("reference/actions.md")]
    assert listed == sorted(ACTIONS)
