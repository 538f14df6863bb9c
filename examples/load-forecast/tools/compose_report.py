"""A report on a load forecast."""

from datetime import date
from typing import List

from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "compose_report",
    "description": "A report on a load forecast as Markdown: the data, how good past forecasts were, the coming days.",
    "dependencies": [],
    "effects": "pure",
    "output_params": ["report"],
}


class Data(BaseModel):
    name: str
    first: str
    last: str
    rows: int
    missing_hours: int
    outliers: List[dict]


class Quality(BaseModel):
    mae_mw: float
    rmse_mw: float
    mape_percent: float
    naive_mae_mw: float
    better_by_percent: float
    hours: int
    weeks: List[dict]


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str
    data: Data
    method: str
    quality: Quality
    times: List[str] = Field(min_length=1)
    forecast: List[float] = Field(min_length=1)
    low: List[float]
    high: List[float]
    forecast_plot: str = Field(description="where the plot of the forecast is")
    backtest_plot: str = Field(description="where the plot of the last week that was held out is")


def days(given):
    """A line of the table for each day that is forecast."""
    by_day = {}
    for time, value, low, high in zip(given.times, given.forecast, given.low, given.high):
        by_day.setdefault(time[:10], []).append((value, low, high, time[11:]))
    for day, hours in by_day.items():
        value, low, high, clock = max(hours)
        mean = sum(hour[0] for hour in hours) / len(hours)
        weekday = date.fromisoformat(day).strftime("%A")
        yield f"| {weekday} {day} | {mean:.0f} | {value:.0f} ({low:.0f} to {high:.0f}) | {clock} |"


def run(input_model):
    data, quality = input_model.data, input_model.quality
    better = quality.better_by_percent > 0
    verdict = (
        f"That is {quality.better_by_percent:.0f} % better than the simplest forecast, the same hour of the week before "
        if better
        else f"The simplest forecast, the same hour of the week before, is {-quality.better_by_percent:.0f} % better: use that "
    )
    wrong = ", ".join(f"{item['value']:g} MW ({item['time'].replace('T', ' ')})" for item in data.outliers)
    lines = [
        f"# {input_model.title}",
        "",
        f"Data: {data.name}, {data.first.replace('T', ' ')} to {data.last.replace('T', ' ')}, {data.rows} rows. "
        f"{data.missing_hours} hours have no value. {len(data.outliers)} values cannot be true and were left out"
        + (f": {wrong}." if wrong else "."),
        "",
        f"Model: {input_model.method}.",
        "",
        "## The coming days",
        "",
        f"![Forecast]({input_model.forecast_plot})",
        "",
        "| day | mean, MW | highest, MW (80 % range) | at |",
        "|---|---:|---:|---:|",
        *days(input_model),
        "",
        "## How good it is",
        "",
        f"Of the last {len(quality.weeks)} weeks, each was forecast from the data before it. Over their {quality.hours} hours the "
        f"forecast was off by {quality.mae_mw:.1f} MW on average ({quality.mape_percent:.1f} %; root mean square "
        f"{quality.rmse_mw:.1f} MW). {verdict}({quality.naive_mae_mw:.1f} MW).",
        "",
        "| week from | forecast, MW off | week before, MW off |",
        "|---|---:|---:|",
        *(f"| {week['start']} | {week['mae_mw']:.1f} | {week['naive_mae_mw']:.1f} |" for week in quality.weeks),
        "",
        f"![The last week held out]({input_model.backtest_plot})",
        "",
    ]
    return {"report": "\n".join(lines)}
