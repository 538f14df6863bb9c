"""SQL over tables that are CSV files, CSV texts or rows of earlier results."""

import csv
import io
import json
import math
import sqlite3
from typing import Any, Dict, List, Optional, Union

from pydantic import BaseModel, ConfigDict, Field, model_validator

__TOOL_META__ = {
    "name": "query_tables",
    "description": (
        "Runs one SELECT (SQLite's SQL: joins, GROUP BY, window functions) over tables given as CSV files, CSV texts or lists of "
        "objects. Numbers are numbers, empty fields are NULL."
    ),
    "dependencies": [],
    "effects": "read",
    "output_params": ["rows", "row_count", "truncated"],
}

READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, getattr(sqlite3, "SQLITE_RECURSIVE", 33)}


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: Optional[str] = Field(None, description="a CSV file with a header")
    csv: Optional[str] = Field(None, description="CSV text with a header")
    rows: Optional[List[Dict[str, Any]]] = Field(None, description="objects, such as another tool's rows")
    delimiter: str = Field(",", min_length=1, max_length=1)

    @model_validator(mode="after")
    def one_source(self):
        if sum(source is not None for source in (self.path, self.csv, self.rows)) != 1:
            raise ValueError("give one of `path`, `csv` and `rows`")
        return self


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sql: str = Field(min_length=1, description="one SELECT; values as ? or :name")
    tables: Dict[str, Table] = Field(min_length=1, description="the tables by the names that the SQL uses")
    parameters: Union[List[Any], Dict[str, Any]] = Field(default_factory=list, description="values for ? or :name")
    limit: int = Field(1000, ge=1, le=100_000, description="rows of the result at most")


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def converted(column):
    """A CSV column as numbers if all of it is numbers; empty fields as NULL."""
    values = [cell.strip() if cell is not None and cell.strip() else None for cell in column]
    filled = [value for value in values if value is not None]
    if any(len(value) > 1 and value[0] == "0" and value.isdigit() for value in filled):
        return values
    for kind in (int, float):
        try:
            numbers = [value if value is None else kind(value) for value in values]
        except ValueError:
            continue
        # More than SQLite's integers hold are floats; names such as inf are texts.
        if all(number is None or abs(number) < (2**63 if kind is int else math.inf) for number in numbers):
            return numbers
    return values


def from_csv(name, text, delimiter):
    lines = csv.reader(io.StringIO(text), delimiter=delimiter)
    header = [column.strip() for column in next(lines, [])]
    if not any(header):
        raise ValueError(f"table {name!r}: there is no header")
    rows = [row for row in lines if any(cell.strip() for cell in row)]
    for row in rows:
        if len(row) > len(header):
            raise ValueError(f"table {name!r}: {row!r} has {len(row)} fields, the header {len(header)}")
    padded = [row + [""] * (len(header) - len(row)) for row in rows]
    columns = [converted(column) for column in zip(*padded)] if padded else [[] for _ in header]
    return header, list(zip(*columns))


def from_rows(rows):
    header = list(dict.fromkeys(key for row in rows for key in row))

    def cell(value):
        if isinstance(value, int) and abs(value) >= 2**63:
            return float(value)
        if value is None or isinstance(value, (int, float, str)):
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    return header, [tuple(cell(row.get(key)) for key in header) for row in rows]


def load(database, name, table):
    if table.rows is not None:
        header, rows = from_rows(table.rows)
        if not header:
            raise ValueError(f"table {name!r}: without a row that has a field, its columns are not known")
    elif table.csv is not None:
        header, rows = from_csv(name, table.csv.lstrip("\ufeff"), table.delimiter)
    else:
        try:
            with open(table.path, encoding="utf-8-sig", newline="") as file:
                header, rows = from_csv(name, file.read(), table.delimiter)
        except FileNotFoundError:
            raise FileNotFoundError(f"table {name!r}: there is no file {table.path!r}") from None
    try:
        database.execute(f"CREATE TABLE {quoted(name)} ({', '.join(map(quoted, header))})")
    except sqlite3.Error as error:
        raise ValueError(f"table {name!r}: {error}") from None
    database.executemany(f"INSERT INTO {quoted(name)} VALUES ({', '.join('?' * len(header))})", rows)
    return header


def only_reads(action, first, second, database, inner):
    """Nothing but reading of the tables: no file is attached, no setting changed, no code loaded."""
    if action not in READS or (action == sqlite3.SQLITE_FUNCTION and second == "load_extension"):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def shown(value):
    """A value of SQLite's as JSON: bytes as hexadecimal digits, what is no number as text."""
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def distinct(names):
    """Column names for objects: the second `id` becomes `id_2`."""
    found = []
    for name in names:
        candidate, count = name, 2
        while candidate in found:
            candidate, count = f"{name}_{count}", count + 1
        found.append(candidate)
    return found


def run(input_model):
    database = sqlite3.connect(":memory:")
    columns = {name: load(database, name, table) for name, table in input_model.tables.items()}
    database.set_authorizer(only_reads)
    try:
        cursor = database.execute(input_model.sql, input_model.parameters)
        fetched = cursor.fetchmany(input_model.limit + 1)
    except (sqlite3.Error, sqlite3.Warning) as error:
        there = "; ".join(f"{name}({', '.join(header)})" for name, header in columns.items())
        reason = "only a SELECT is run here" if "not authorized" in str(error) else str(error).rstrip(".")
        raise ValueError(f"the SQL does not run: {reason}. Tables: {there}") from None
    if cursor.description is None:
        raise ValueError("the SQL is no SELECT")
    names = distinct([column[0] for column in cursor.description])
    rows = [dict(zip(names, map(shown, row))) for row in fetched[: input_model.limit]]
    return {"columns": names, "rows": rows, "row_count": len(rows), "truncated": len(fetched) > input_model.limit}
