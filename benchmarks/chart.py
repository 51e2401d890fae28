"""Draws how many times better one server is than another, out of two results of the benchmark driver.

``python -m benchmarks.chart original.json perdure.json [more pairs …] > benchmarks/comparison.svg``
"""

import json
import math
import sys
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

ROWS: list[tuple[str, str, tuple[str, ...], bool]] = [
    ("one chunk of an answer, wall time", "latency", ("per_chunk_us", "wall"), False),
    ("turn of 50 chunks, alone", "latency", ("N=50", "done_ms", "p50"), False),
    ("turns a second, 16 agents at once", "throughput", ("C=16", "turns_per_s"), True),
    ("turns a second, 64 agents at once", "throughput", ("C=64", "turns_per_s"), True),
    ("chunks a second to 200 tabs", "fanout", ("K=200", "delivered_per_s"), True),
    ("a new agent, until it says who it is", "cold", ("new, 1 at a time", "p50"), False),
    ("turn on 1,000 earlier messages", "history", ("1000 prior messages", "last_ms", "p50"), False),
    ("turn with a server tool", "roundtrip", ("server_tool", "p50"), False),
]
"""What is shown: its name, its section, where it is there, and whether more is better."""

WIDTH, LEFT, BAR, GAP = 760, 330, 18, 8
COLOURS = ("#2f6f4f", "#7a9e7e")


class Bar(NamedTuple):
    label: str
    ratio: float
    colour: str


def bars(first: dict[str, Any], second: dict[str, Any], colour: str) -> list[Bar]:
    """How many times better the second is, as far as both were measured."""
    found: list[Bar] = []
    for label, section, path, more_is_better in ROWS:
        a, b = at(first, section, path), at(second, section, path)
        if a and b:
            name = f"{label} ({'HTTP' if 'http' in second['label'] else 'in process'})"
            found.append(Bar(name, b / a if more_is_better else a / b, colour))
    return found


def at(result: dict[str, Any], section: str, path: tuple[str, ...]) -> float | None:
    value: Any = result["sections"].get(section, {}).get("result")
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) else None


def drawn(shown: list[Bar], title: str) -> str:
    """The picture, on a logarithmic scale: it begins at 1, where both are the same."""
    most = max(bar.ratio for bar in shown)
    scale = (WIDTH - LEFT - 70) / math.log(most)
    height = 44 + len(shown) * (BAR + GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"',
        ' font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="22" font-weight="bold" fill="#1d1d1d">{escape(title)}</text>',
    ]
    for number, bar in enumerate(shown):
        y = 36 + number * (BAR + GAP)
        length = max(2.0, math.log(max(bar.ratio, 1.0)) * scale)
        lines += [
            f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end" fill="#1d1d1d">{escape(bar.label)}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{bar.colour}"/>',
            f'<text x="{LEFT + length + 6:.1f}" y="{y + 14}" fill="#1d1d1d">{bar.ratio:.1f}×</text>',
        ]
    return "\n".join([*lines, "</svg>"])


def main() -> None:
    paths = sys.argv[1:]
    if len(paths) < 2 or len(paths) % 2:
        sys.exit(__doc__)
    results = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    pairs = zip(results[::2], results[1::2], strict=True)
    shown = [
        bar for colour, (first, second) in zip(COLOURS * 9, pairs, strict=False) for bar in bars(first, second, colour)
    ]
    print(drawn(shown, "How many times better than the original (logarithmic)"))


if __name__ == "__main__":
    main()
