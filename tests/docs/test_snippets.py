"""Every Python block of the documentation is a file in ``docs_src`` that runs."""

import re
from pathlib import Path

import pytest

from docs_src import test_an_agent
from tests.support import serving

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def python_blocks() -> list[tuple[str, str]]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [(str(page.relative_to(ROOT)), block) for page in pages for block in BLOCK.findall(page.read_text("utf-8"))]


@pytest.mark.parametrize(("page", "block"), python_blocks())
def test_a_block_stands_word_for_word_in_a_tested_file(page: str, block: str) -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "docs_src").rglob("*.py")]
    assert any(block.strip() in source for source in sources), f"a block of {page} is in no file of docs_src"


@pytest.mark.anyio
async def test_the_agent_of_the_testing_guide_answers(tmp_path: Path) -> None:
    async with serving(test_an_agent.Calculator, data=tmp_path) as server:
        tab = await server.tab(agent="calculator")
        await tab.ask("R1", "1 + 2?")
        await tab.done("R1")
        assert (await server.stored(agent="calculator"))[1]["parts"][-1]["text"] == "Three."
    test_an_agent.Calculator.model.assert_done()


@pytest.mark.anyio
async def test_the_agent_of_the_readme_answers(tmp_path: Path) -> None:
    from docs_src import readme

    async with serving(readme.Assistant, data=tmp_path) as server:
        tab = await server.tab(agent="assistant")
        await tab.ask("R1", 'call get_weather {"city": "Oslo"}')
        await tab.done("R1")
        parts = (await server.stored(agent="assistant"))[1]["parts"]
        assert [part["output"] for part in parts if part["type"] == "tool-get_weather"] == [
            {"city": "Oslo", "sky": "sunny"}
        ]
