"""What is in a CSV table: columns, types, gaps, extremes, and what looks wrong."""

import csv
import io
import re
from collections import Counter
from datetime import date, datetime
from math import isfinite
from typing import Optional

from pydantic import BaseModel, ConfigDict, Field, model_validator

__TOOL_META__ = {
    "name": "describe_csv",
    "description": (
        "Describes a CSV table from a file or from text: number of rows, and for each column its type, missing and distinct "
        "values, minimum, maximum, mean, most frequent values. Finds the delimiter and lists what looks wrong."
    ),
    "dependencies": [],
    "effects": "read",
    "output_params": ["row_count", "columns", "problems"],
}

MISSING = {"", "na", "n/a", "nan", "null", "none", "-"}
DISTINCT_MOST = 10_000
PROBLEMS_MOST = 20


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: Optional[str] = Field(None, description="the CSV file; this or `text`")
    text: Optional[str] = Field(None, description="the CSV text itself; this or `path`")
    delimiter: Optional[str] = Field(None, min_length=1, max_length=1, description="found out if not given")
    top: int = Field(3, ge=0, le=50, description="how many of the most frequent values to show for each column")

    @model_validator(mode="after")
    def one_source(self):
        if (self.path is None) == (self.text is None):
            raise ValueError("give `path` or `text`, and not both")
        return self


def content_of(given):
    """The text and its encoding."""
    if given.text is not None:
        return given.text, "utf-8"
    try:
        with open(given.path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {given.path!r}") from None
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding), "utf-8" if encoding == "utf-8-sig" else encoding
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), "latin-1"


def delimiter_of(text):
    """The delimiter that splits the first lines into most fields, and all of them into as many."""
    lines = [line for line in text.splitlines()[:50] if line.strip()]
    best, found = (0, 0), ","
    for candidate in ",;\t|":
        counts = [len(row) for row in csv.reader(lines, delimiter=candidate)]
        usual, times = Counter(counts).most_common(1)[0]
        if usual > 1 and (times / len(counts), usual) > best:
            best, found = (times / len(counts), usual), candidate
    return found


def number(text):
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and "_" not in text else None


def is_time(text, kind):
    try:
        kind.fromisoformat(text.replace("Z", "+00:00") if kind is datetime else text)
    except ValueError:
        return False
    return True


def type_of(values):
    """The narrowest type that all values have."""
    if not values:
        return "empty"
    if all(number(value) is not None for value in values):
        whole = all(value.lstrip("+-").isdigit() for value in values)
        # A leading zero is meant: postal codes and article numbers are not for adding up.
        coded = any(len(value) > 1 and value[0] == "0" and value.isdigit() for value in values)
        return "text" if whole and coded else "integer" if whole else "number"
    if all(value.lower() in ("true", "false", "yes", "no") for value in values):
        return "boolean"
    if all(is_time(value, date) for value in values):
        return "date"
    if all(is_time(value, datetime) for value in values):
        return "datetime"
    return "text"


def described(name, cells, top):
    values = [cell.strip() for cell in cells if cell.strip().lower() not in MISSING]
    counts = Counter(values)
    kind = type_of(list(counts))
    column = {"name": name, "type": kind, "missing": len(cells) - len(values), "distinct": len(counts)}
    if kind in ("integer", "number"):
        numbers = [int(value) if kind == "integer" else float(value) for value in values]
        column.update(min=min(numbers), max=max(numbers), mean=round(sum(numbers) / len(numbers), 6))
    elif kind in ("date", "datetime"):
        column.update(min=min(values), max=max(values))
    # Where each value is there once, none is frequent.
    if top and len(counts) < len(values) and kind not in ("number", "datetime"):
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        column["top"] = [{"value": value, "count": count} for value, count in ordered[:top]]
    return column


def run(input_model):
    text, encoding = content_of(input_model)
    if not text.strip():
        raise ValueError("the table is empty")
    delimiter = input_model.delimiter or delimiter_of(text)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    header = [name.strip() for name in next(reader)]
    problems = []
    for name, count in Counter(header).items():
        if not name:
            problems.append(f"{count} column(s) have no name")
        elif count > 1:
            problems.append(f"the column {name!r} is there {count} times")
    cells = [[] for _ in header]
    rows, odd, seen, repeated = 0, [], set(), 0
    for row in reader:
        if not any(cell.strip() for cell in row):
            continue
        rows += 1
        if len(row) != len(header):
            odd.append(f"line {reader.line_num} has {len(row)} fields, the header {len(header)}")
        for index, column in enumerate(cells):
            column.append(row[index] if index < len(row) else "")
        key = tuple(row)
        repeated += key in seen
        if len(seen) < DISTINCT_MOST:
            seen.add(key)
    problems += odd[:PROBLEMS_MOST]
    if len(odd) > PROBLEMS_MOST:
        problems.append(f"{len(odd) - PROBLEMS_MOST} more lines have another number of fields")
    if repeated:
        problems.append(f"{repeated} row(s) repeat an earlier one")
    for name, column in zip(header, cells):
        filled = [cell.strip() for cell in column if cell.strip().lower() not in MISSING]
        if filled and all(re.fullmatch(r"[+-]?\d+(,\d+)?", cell) for cell in filled) and any("," in cell for cell in filled):
            problems.append(f"the column {name!r} seems to have numbers with decimal commas, which count as text")
    return {
        "row_count": rows,
        "delimiter": delimiter,
        "encoding": encoding,
        "columns": [described(name, column, input_model.top) for name, column in zip(header, cells)],
        "problems": problems,
    }
