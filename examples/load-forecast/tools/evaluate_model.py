"""How good forecasts of past weeks were."""

from datetime import datetime, timedelta
from typing import List, Optional

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "evaluate_model",
    "description": (
        "Compares forecasts of past weeks with what came, and with the simplest forecast there is: the same hour of the week before. "
        "Errors, the range that held 80 % of them, and the last of the weeks by the hour."
    ),
    "dependencies": ["numpy>=1.26,<3"],
    "effects": "pure",
    "output_params": [
        "mae_mw", "rmse_mw", "mape_percent", "naive_mae_mw", "better_by_percent", "error_low", "error_high", "weeks", "last_week",
    ],
}

WEEK = 168


class Series(BaseModel):
    start: datetime
    values: List[Optional[float]]


class Backtest(BaseModel):
    start: datetime
    weeks: List[List[float]] = Field(min_length=1)


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    series: Series
    backtest: Backtest


def weeks_before(values, hours):
    """The same hour of the week before, or of the one before that where it is missing."""
    guess = values[hours - WEEK].copy()
    for back in (2, 3):
        guess = np.where(np.isnan(guess), values[hours - WEEK * back], guess)
    return guess


def run(input_model):
    series, backtest = input_model.series, input_model.backtest
    values = np.array(series.values, float)
    first = (backtest.start - series.start) // timedelta(hours=1)
    predicted = np.array(backtest.weeks, float).ravel()
    hours = np.arange(first, first + len(predicted))
    actual, naive = values[hours], weeks_before(values, hours)
    both = ~np.isnan(actual) & ~np.isnan(naive)
    error, naive_error = (actual - predicted)[both], (actual - naive)[both]
    mae, naive_mae = float(np.abs(error).mean()), float(np.abs(naive_error).mean())
    weeks = []
    for week in range(len(backtest.weeks)):
        inside = both & (np.arange(len(predicted)) // WEEK == week)
        start = backtest.start + timedelta(hours=week * WEEK)
        weeks.append({
            "start": start.date().isoformat(),
            "mae_mw": round(float(np.abs(actual - predicted)[inside].mean()), 1),
            "naive_mae_mw": round(float(np.abs(actual - naive)[inside].mean()), 1),
        })
    last = slice(len(predicted) - WEEK, None)

    def shown(array):
        return [None if np.isnan(value) else round(float(value), 1) for value in array[last]]

    return {
        "mae_mw": round(mae, 2),
        "rmse_mw": round(float(np.sqrt((error**2).mean())), 2),
        "mape_percent": round(float((np.abs(error) / actual[both]).mean()) * 100, 2),
        "naive_mae_mw": round(naive_mae, 2),
        "better_by_percent": round((1 - mae / naive_mae) * 100, 1),
        "error_low": round(float(np.quantile(error, 0.1)), 2),
        "error_high": round(float(np.quantile(error, 0.9)), 2),
        "hours": int(both.sum()),
        "weeks": weeks,
        "last_week": {
            "times": [(series.start + timedelta(hours=int(hour))).isoformat(timespec="minutes") for hour in hours[last]],
            "actual": shown(actual),
            "forecast": shown(predicted),
            "week_before": shown(naive),
        },
    }
