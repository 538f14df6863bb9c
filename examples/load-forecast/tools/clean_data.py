"""An hourly load without what cannot be true."""

import json
from datetime import datetime, timedelta
from typing import List, Optional

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "clean_data",
    "description": "Takes values out of an hourly series that are far from those of the same hour in the weeks around. Gaps stay gaps.",
    "dependencies": ["numpy>=1.26,<3"],
    "effects": "pure",
    "output_params": ["series", "outliers", "gaps"],
}

WEEK = 168


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    data_json: str = Field(description="JSON text with `start` and `values`, as get_data gives it")
    limit: float = Field(12, gt=0, description="how many (robust) standard deviations are still possible")


class Data(BaseModel):
    start: datetime
    values: List[Optional[float]]


def run(input_model):
    data = Data.model_validate(json.loads(input_model.data_json))
    values = np.array(data.values, float)
    weeks = -(-len(values) // WEEK)
    if weeks < 3:
        raise ValueError(f"{len(values)} hours are too few: three weeks are needed")
    table = np.full(weeks * WEEK, np.nan)
    table[: len(values)] = values
    table = table.reshape(weeks, WEEK)
    usual = np.empty_like(table)
    for week in range(weeks):
        around = table[max(0, week - 3) : week + 4]
        usual[week] = [np.median(hour[~np.isnan(hour)]) if not np.isnan(hour).all() else np.nan for hour in around.T]
    away = values - usual.ravel()[: len(values)]
    known = away[~np.isnan(away)]
    spread = 1.4826 * np.median(np.abs(known - np.median(known)))
    wrong = np.abs(np.nan_to_num(away)) > input_model.limit * spread
    outliers = [
        {"time": (data.start + timedelta(hours=int(hour))).isoformat(timespec="minutes"), "value": data.values[hour]}
        for hour in np.flatnonzero(wrong)
    ]
    clean = [None if wrong[hour] else value for hour, value in enumerate(data.values)]
    return {
        "series": {"start": data.start.isoformat(timespec="minutes"), "values": clean},
        "outliers": outliers,
        "gaps": clean.count(None),
    }
