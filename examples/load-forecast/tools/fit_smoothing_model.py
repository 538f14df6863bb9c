"""A load curve by exponential smoothing."""

from datetime import datetime, timedelta
from typing import List, Literal, Optional

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "fit_smoothing_model",
    "description": (
        "Fits an hourly load by exponential smoothing: a level and a value for each hour of the week. Needs a value for every hour: "
        "a series with gaps is refused unless `fill` says how to fill them. Also forecasts past weeks from the data before each."
    ),
    "dependencies": ["numpy>=1.26,<3"],
    "effects": "pure",
    "output_params": ["model", "method", "backtest"],
}

WEEK = 168
LEVELS, SEASONS = (0.005, 0.01, 0.02, 0.05, 0.1), (0.05, 0.1, 0.2, 0.35)


class Series(BaseModel):
    start: datetime
    values: List[Optional[float]]


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    series: Series
    fill: Literal["none", "last_week", "interpolate"] = Field("none", description="what stands in for a missing hour")
    test_weeks: int = Field(4, ge=0, le=12, description="past weeks to forecast for comparison")


def filled(series, how):
    values = np.array(series.values, float)
    gaps = np.flatnonzero(np.isnan(values))
    if len(gaps) and how == "none":
        first = (series.start + timedelta(hours=int(gaps[0]))).isoformat(timespec="minutes")
        raise ValueError(
            f"the series has no value for {len(gaps)} of {len(values)} hours (the first is {first}), and exponential smoothing "
            'needs every hour: fill them with `fill` ("last_week" or "interpolate"), or fit a model that bears gaps'
        )
    known = np.flatnonzero(~np.isnan(values))
    for hour in gaps if how == "last_week" else []:
        # In order: a week before may itself have been filled.
        if hour >= WEEK:
            values[hour] = values[hour - WEEK]
    left = np.flatnonzero(np.isnan(values))
    values[left] = np.interp(left, known, values[known])
    return values


def smoothed(values, alpha, gamma, origins=()):
    """Level and season after all values, and the forecasts that would have been made at `origins`."""
    values = values.tolist()
    level = sum(values[:WEEK]) / WEEK
    season = [value - level for value in values[:WEEK]]
    made = {}
    for hour in range(WEEK, len(values)):
        if hour in origins:
            made[hour] = [level + season[(hour + step) % WEEK] for step in range(WEEK)]
        place = hour % WEEK
        error = values[hour] - level - season[place]
        level += alpha * error
        season[place] += gamma * (1 - alpha) * error
    return level, season, made


def fitted(values):
    """The smoothing that would have forecast the last two weeks of `values` best."""
    origins = [len(values) - WEEK * back for back in (2, 1)]

    def missed(pair):
        made = smoothed(values, *pair, origins)[2]
        return sum(float(np.abs(values[hour : hour + WEEK] - made[hour]).mean()) for hour in origins)

    alpha, gamma = min(((a, g) for a in LEVELS for g in SEASONS), key=missed)
    level, season, _ = smoothed(values, alpha, gamma)
    return level, season, alpha, gamma


def run(input_model):
    start = input_model.series.start
    values = filled(input_model.series, input_model.fill)
    if len(values) < WEEK * (input_model.test_weeks + 4):
        raise ValueError(f"{len(values)} hours are too few for {input_model.test_weeks} weeks of test and four to fit")
    forecasts = []
    for back in range(input_model.test_weeks, 0, -1):
        known = values[: len(values) - WEEK * back]
        level, season, _, _ = fitted(known)
        forecasts.append([round(level + season[(len(known) + step) % WEEK], 2) for step in range(WEEK)])
    level, season, alpha, gamma = fitted(values)
    first = len(values) - WEEK * input_model.test_weeks
    turned = [round(season[(len(values) + step) % WEEK], 3) for step in range(WEEK)]
    return {
        "method": f"exponential smoothing (level {alpha:g}, season {gamma:g}; gaps: {input_model.fill})",
        "model": {
            "start": (start + timedelta(hours=len(values))).isoformat(timespec="minutes"),
            "level": round(level, 3),
            "trend": 0.0,
            "week": turned,
        },
        "backtest": {"start": (start + timedelta(hours=first)).isoformat(timespec="minutes"), "weeks": forecasts},
    }
