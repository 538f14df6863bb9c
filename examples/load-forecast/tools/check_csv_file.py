"""Whether a CSV file holds an hourly load."""

import csv
from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "check_csv_file",
    "description": "Checks that a CSV file holds an hourly load (columns time and load_mw), and counts what is missing or there twice.",
    "dependencies": [],
    "effects": "read",
    "output_params": ["is_valid", "row_count", "first", "last", "missing_hours", "problems"],
}

HOUR = timedelta(hours=1)


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    file_path: str = Field(description="the CSV file")


def read(path, problems):
    """Times and values of the rows; what is wrong with a row goes to `problems`."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        lacking = {"time", "load_mw"} - set(rows.fieldnames or [])
        if lacking:
            raise ValueError(f"{path} has no column {' and no column '.join(sorted(lacking))}")
        for row in rows:
            try:
                time, value = datetime.fromisoformat(row["time"]), float(row["load_mw"]) if row["load_mw"] else None
            except (TypeError, ValueError) as error:
                problems.append(f"line {rows.line_num}: {error}")
                continue
            if time != time.replace(minute=0, second=0, microsecond=0):
                problems.append(f"line {rows.line_num}: {row['time']} is no full hour")
            yield time, value


def run(input_model):
    problems, values, twice, count = [], {}, 0, 0
    for time, value in read(input_model.file_path, problems):
        count += 1
        if time in values:
            twice += 1
            if values[time] != value:
                problems.append(f"{time.isoformat()} is there with two values")
        values[time] = value
    if not values:
        raise ValueError(f"{input_model.file_path} has no rows")
    first, last = min(values), max(values)
    hours = (last - first) // HOUR + 1
    return {
        "is_valid": not problems,
        "row_count": count,
        "first": first.isoformat(timespec="minutes"),
        "last": last.isoformat(timespec="minutes"),
        "missing_hours": hours - sum(value is not None for value in values.values()),
        "repeated_rows": twice,
        "problems": problems[:20],
    }
