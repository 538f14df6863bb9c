"""A load curve by regression on the calendar."""

from datetime import datetime, timedelta
from typing import List, Optional

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "fit_calendar_model",
    "description": (
        "Fits an hourly load by weighted least squares on the hour of the week and a trend; recent weeks count more. Hours without "
        "a value are left out. Also forecasts past weeks from the data before each."
    ),
    "dependencies": ["numpy>=1.26,<3"],
    "effects": "pure",
    "output_params": ["model", "method", "backtest"],
}

WEEK = 168


class Series(BaseModel):
    start: datetime
    values: List[Optional[float]]


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    series: Series
    half_life_weeks: float = Field(3, gt=0, le=100, description="after how many weeks a value counts half")
    test_weeks: int = Field(4, ge=0, le=12, description="past weeks to forecast for comparison")


def fitted(values, half_life):
    """Level at the end, trend by the hour, and the deviation of each hour from the end on."""
    hours = np.arange(len(values))
    known = ~np.isnan(values)
    # Hours count from the end: the constant is the level there.
    when = (hours - len(values))[known]
    weights = 0.5 ** (-when / (half_life * WEEK))
    matrix = np.zeros((known.sum(), WEEK + 1))
    matrix[np.arange(known.sum()), when % WEEK] = 1
    matrix[:, WEEK] = when / WEEK
    weighted = matrix * weights[:, None]
    normal = weighted.T @ matrix
    # A little weight towards no trend: a few weeks of weather are not one. An hour that never was has the mean.
    normal[WEEK, WEEK] += weights.sum()
    normal[:WEEK, :WEEK] += 1e-6 * np.eye(WEEK)
    mean = float((weights * values[known]).sum() / weights.sum())
    solution = np.linalg.solve(normal, weighted.T @ (values[known] - mean))
    solution[:WEEK] += mean
    residual = values[known] - matrix @ solution
    # The weather of the last days stays for a while.
    recent = residual[when >= -48].mean() if (when >= -48).any() else 0.0
    week = solution[:WEEK]
    return float(week.mean() + 0.5 * recent), float(solution[WEEK] / WEEK), week - week.mean()


def run(input_model):
    start, half_life = input_model.series.start, input_model.half_life_weeks
    values = np.array(input_model.series.values, float)
    if len(values) < WEEK * (input_model.test_weeks + 4):
        raise ValueError(f"{len(values)} hours are too few for {input_model.test_weeks} weeks of test and four to fit")
    ahead, forecasts = np.arange(WEEK), []
    for back in range(input_model.test_weeks, 0, -1):
        level, trend, week = fitted(values[: len(values) - WEEK * back], half_life)
        forecasts.append([round(float(value), 2) for value in level + trend * ahead + week])
    level, trend, week = fitted(values, half_life)
    first = len(values) - WEEK * input_model.test_weeks
    return {
        "method": f"regression on the hour of the week (half-life {half_life:g} weeks)",
        "model": {
            "start": (start + timedelta(hours=len(values))).isoformat(timespec="minutes"),
            "level": round(level, 3),
            "trend": round(trend, 6),
            "week": [round(float(value), 3) for value in week],
        },
        "backtest": {"start": (start + timedelta(hours=first)).isoformat(timespec="minutes"), "weeks": forecasts},
    }
