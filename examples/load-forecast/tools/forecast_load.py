"""The load of the coming hours, from a fitted curve."""

from datetime import datetime, timedelta
from typing import List

from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "forecast_load",
    "description": "Forecasts the hours after the data of a fitted model, with a range, and names the highest and lowest hour.",
    "dependencies": [],
    "effects": "pure",
    "output_params": ["times", "forecast", "low", "high", "peak", "lowest"],
}


class Model(BaseModel):
    start: datetime = Field(description="the first hour to forecast")
    level: float
    trend: float = Field(description="by the hour")
    week: List[float] = Field(min_length=168, max_length=168, description="deviation from the level, from `start` on")


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: Model
    hours: int = Field(168, ge=1, le=24 * 60)
    error_low: float = Field(0, description="what is added for the lower end of the range")
    error_high: float = Field(0, description="what is added for the upper end of the range")


def run(input_model):
    model = input_model.model
    times = [(model.start + timedelta(hours=hour)).isoformat(timespec="minutes") for hour in range(input_model.hours)]
    values = [round(model.level + model.trend * hour + model.week[hour % 168], 1) for hour in range(input_model.hours)]
    peak, lowest = (choose(range(len(values)), key=values.__getitem__) for choose in (max, min))
    return {
        "times": times,
        "forecast": values,
        "low": [round(value + input_model.error_low, 1) for value in values],
        "high": [round(value + input_model.error_high, 1) for value in values],
        "peak": {"time": times[peak], "load_mw": values[peak]},
        "lowest": {"time": times[lowest], "load_mw": values[lowest]},
    }
