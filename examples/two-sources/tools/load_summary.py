"""The load of a city from a CSV file of hourly values."""

import csv
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

__TOOL_META__ = {
    "name": "load_summary",
    "description": "Mean, peak and gaps of an hourly electric load, from a CSV file with the columns hour and load_mw.",
    "dependencies": [],
    "effects": "read",
    "output_params": ["load_mean_mw", "load_peak_mw", "load_peak_hour", "load_hours_missing"],
}


class InputModel(BaseModel):
    path: str = Field(description="the CSV file")


def run(input_model):
    values = {}
    with open(Path(input_model.path), newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["load_mw"]:
                values[datetime.fromisoformat(row["hour"])] = float(row["load_mw"])
    if not values:
        raise ValueError(f"{input_model.path} has no values")
    peak = max(values, key=values.get)
    # A lost value and a lost row are the same gap: hours are counted from the first to the last.
    hours = (max(values) - min(values)) // timedelta(hours=1) + 1
    return {
        "load_mean_mw": round(sum(values.values()) / len(values), 1),
        "load_peak_mw": values[peak],
        "load_peak_hour": peak.isoformat(timespec="minutes"),
        "load_hours_missing": hours - len(values),
    }
