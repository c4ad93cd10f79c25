"""Tables of results: for terminals, as JSON, and as Markdown (`python -m benchmarks.report FILE.json`)."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from rich import box
from rich.console import Console
from rich.table import Table as Drawn

Cell: TypeAlias = str | int | float


@dataclass(frozen=True, slots=True)
class Table:
    """One table of figures. `key` names it in plots and in JSON, and `note` describes the measurement."""

    key: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def column(self, name: str) -> list[Cell]:
        """Return the cells of one column."""
        place = list(self.columns).index(name)
        return [row[place] for row in self.rows]

    def where(self, **equal: Cell) -> "Table":
        """Return the rows whose cells in these columns equal these values."""
        places = {list(self.columns).index(name): value for name, value in equal.items()}
        rows = [row for row in self.rows if all(row[place] == value for place, value in places.items())]
        return Table(self.key, self.title, self.columns, rows, self.note)


def shown(cell: Cell) -> str:
    """Return a cell as text, with thousands separators and three significant digits."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or abs(cell) >= 100:
        return f"{cell:,.0f}"
    return f"{cell:.2f}" if abs(cell) >= 10 else f"{cell:.3g}"


def show(console: Console, table: Table) -> None:
    """Print a table."""
    drawn = Drawn(title=table.title, caption=table.note or None, box=box.SIMPLE, title_justify="left")
    drawn.caption_justify = "left"
    for place, column in enumerate(table.columns):
        numbers = all(not isinstance(row[place], str) for row in table.rows)
        drawn.add_column(column, justify="right" if numbers else "left")
    for row in table.rows:
        drawn.add_row(*map(shown, row))
    console.print(drawn)


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    lines = [f"**{table.title}**", "", "| " + " | ".join(table.columns) + " |", "| --- " * len(table.columns) + "|"]
    lines += ["| " + " | ".join(map(shown, row)) + " |" for row in table.rows]
    return "\n".join([*lines, "", *([table.note, ""] if table.note else [])])


def save(path: Path, machine: str, tables: Sequence[Table]) -> None:
    """Write results as JSON."""
    document = {"machine": machine, "tables": [asdict(table) for table in tables]}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load(path: Path) -> tuple[str, list[Table]]:
    """Return the results of a JSON file."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return document["machine"], [Table(**table) for table in document["tables"]]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        machine, tables = load(Path(name))
        sys.stdout.write("\n".join([machine, "", *map(markdown, tables)]))
