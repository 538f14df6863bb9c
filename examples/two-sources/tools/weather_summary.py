"""The temperature of a city from a CSV file of hourly values."""

import csv
from pathlib import Path

from pydantic import BaseModel, Field

__TOOL_META__ = {
    "name": "weather_summary",
    "description": "Mean and coldest hour of hourly temperatures, from a CSV file with the columns hour and temperature_c.",
    "dependencies": [],
    "effects": "read",
    "output_params": ["temperature_mean_c", "coldest_c", "coldest_hour", "temperature_hours_missing"],
}


class InputModel(BaseModel):
    path: str = Field(description="the CSV file")


def run(input_model):
    values, missing = {}, 0
    with open(Path(input_model.path), newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["temperature_c"]:
                values[row["hour"]] = float(row["temperature_c"])
            else:
                missing += 1
    if not values:
        raise ValueError(f"{input_model.path} has no values")
    coldest = min(values, key=values.get)
    return {
        "temperature_mean_c": round(sum(values.values()) / len(values), 1),
        "coldest_c": values[coldest],
        "coldest_hour": coldest,
        "temperature_hours_missing": missing,
    }
