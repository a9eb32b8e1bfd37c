"""The operator table of the README, printed from the catalogue that the tests run.

``python -m tests.operators.readme`` (from the root of the repository) writes it into the README.
"""

from pathlib import Path

from .catalogue import FAMILIES
from .operator import BOOL, FLOAT8, FLOATS, INTS, Operator

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- operators: begin -->\n", "<!-- operators: end -->\n"

#: Targets whose code runs in the tests, and those whose code is generated (and compiled where a compiler is).
RUN = ("interpreter", "llvm", "opencl")
TEXT = ("cuda", "metal")

_GROUPS = (("bool", BOOL), ("ints", INTS), ("floats", FLOATS), ("float8", FLOAT8))


def described(dtypes: tuple[str, ...]) -> str:
    """Element types in few words."""
    words: list[str] = []
    for name, group in _GROUPS:
        present = [d for d in group if d in dtypes]
        if len(present) == len(group):
            words.append(name)
        else:
            words += present
    return ", ".join(words)


def _cell(op: Operator, target: str) -> str:
    refused = op.refused(target)
    if not refused:
        return "✓"
    return "–" if refused == op.dtypes else f"not {described(refused)}"


def table() -> str:
    """The table as Markdown."""
    targets = (*RUN, *TEXT)
    lines: list[str] = []
    for family, operators in FAMILIES.items():
        lines += [f"| {family} | dtypes | {' | '.join(targets)} |", "| --- " * (len(targets) + 2) + "|"]
        for op in operators:
            cells = " | ".join(_cell(op, target) for target in targets)
            lines.append(f"| `{op.name.replace('|', chr(92) + '|')}` | {described(op.dtypes)} | {cells} |")
        lines.append("")
    return "\n".join(lines)


def updated(text: str) -> str:
    """The README's text with the table of now."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    README.write_text(updated(README.read_text()))
