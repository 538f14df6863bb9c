"""Arithmetic with calendar dates and times."""

from calendar import isleap, monthrange
from datetime import date, datetime, time, timedelta, timezone
from typing import List, Literal, Optional
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

__TOOL_META__ = {
    "name": "calculate_dates",
    "description": (
        "Date arithmetic. shift: a date plus years, months, weeks, days, hours, working days; difference: the time between two; "
        "list: dates from one to another; describe: weekday, ISO week, quarter and more; convert: a time in another time zone."
    ),
    "dependencies": ["tzdata>=2024.1"],
    "effects": "pure",
    "output_params": ["date", "days", "workdays", "dates", "weekday"],
}

WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
LIST_MOST = 10_000


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    operation: Literal["shift", "difference", "list", "describe", "convert"]
    date: str = Field(description="2026-01-31, or 2026-01-31T18:30, or with an offset")
    to: Optional[str] = Field(None, description="difference, list: the other date")
    years: int = Field(0, ge=-9999, le=9999)
    months: int = Field(0, ge=-120_000, le=120_000)
    weeks: int = Field(0, ge=-500_000, le=500_000)
    days: int = Field(0, ge=-3_600_000, le=3_600_000)
    hours: float = Field(0, ge=-1e8, le=1e8)
    minutes: float = Field(0, ge=-1e9, le=1e9)
    workdays: int = Field(0, ge=-100_000, le=100_000, description="shift: days from Monday to Friday without `holidays`")
    holidays: List[str] = Field(default_factory=list, description="dates that are no working days")
    every: Literal["day", "workday", "week", "month", "year"] = Field("day", description="list: the step")
    zone: Optional[str] = Field(None, description="the zone of `date`, as Europe/Berlin; UTC if not given")
    to_zone: Optional[str] = Field(None, description="convert: the zone wanted")

    @field_validator("date", "to")
    @classmethod
    def is_date(cls, text):
        if text is not None:
            parsed(text)
        return text

    @field_validator("holidays")
    @classmethod
    def are_dates(cls, texts):
        for text in texts:
            parsed(text)
        return texts

    @field_validator("zone", "to_zone")
    @classmethod
    def is_zone(cls, name):
        if name is not None:
            zone_of(name)
        return name

    @model_validator(mode="after")
    def complete(self):
        if self.operation in ("difference", "list") and self.to is None:
            raise ValueError(f"{self.operation} needs `to`")
        if self.operation == "convert" and self.to_zone is None:
            raise ValueError("convert needs `to_zone`")
        return self


def parsed(text):
    """A date, or a date with a time if the text has one."""
    try:
        if len(text) == 10:
            return date.fromisoformat(text)
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise ValueError(f"{text!r} is no date such as 2026-01-31 or 2026-01-31T18:30") from None


def day_of(value):
    return value.date() if isinstance(value, datetime) else value


def plus_months(value, months):
    """The same day of another month, or its last one: 31 January and a month is 28 February."""
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise ValueError(f"the year {year} is beyond the calendar")
    return value.replace(year=year, month=month + 1, day=min(value.day, monthrange(year, month + 1)[1]))


def is_workday(day, holidays):
    return day.weekday() < 5 and day not in holidays


def shifted(given, value, holidays):
    value = plus_months(value, given.years * 12 + given.months)
    try:
        value += timedelta(weeks=given.weeks, days=given.days)
        if given.hours or given.minutes:
            if not isinstance(value, datetime):
                value = datetime.combine(value, time())
            value += timedelta(hours=given.hours, minutes=given.minutes)
        step = 1 if given.workdays >= 0 else -1
        left = abs(given.workdays)
        while left:
            value += timedelta(days=step)
            left -= is_workday(day_of(value), holidays)
    except OverflowError:
        raise ValueError("the result is beyond the calendar (years 1 to 9999)") from None
    return {"date": value.isoformat(), "weekday": WEEKDAYS[value.weekday()]}


def difference(one, other, holidays):
    if isinstance(one, datetime) or isinstance(other, datetime):
        pair = [v if isinstance(v, datetime) else datetime.combine(v, time()) for v in (one, other)]
        if any(v.tzinfo for v in pair):
            pair = [v if v.tzinfo else v.replace(tzinfo=timezone.utc) for v in pair]
        seconds = (pair[1] - pair[0]).total_seconds()
    else:
        seconds = (other - one).total_seconds()
    first, last = sorted((day_of(one), day_of(other)))
    months = (last.year - first.year) * 12 + last.month - first.month
    if plus_months(first, months) > last:
        months -= 1
    rest = (last - plus_months(first, months)).days
    # Whole weeks have five working days each; only the rest is walked through.
    days = (last - first).days
    work = days // 7 * 5 + sum((first + timedelta(days=n)).weekday() < 5 for n in range(days - days % 7, days))
    work -= sum(first <= day < last and day.weekday() < 5 for day in holidays)
    sign = -1 if seconds < 0 else 1
    return {
        "days": sign * days,
        "hours": round(seconds / 3600, 6),
        "workdays": sign * work,
        "calendar": {"years": months // 12, "months": months % 12, "days": rest},
    }


def listed(first, last, every, holidays):
    first, last = day_of(first), day_of(last)
    dates, n, day = [], 0, first
    while day <= last:
        if every != "workday" or is_workday(day, holidays):
            dates.append(day.isoformat())
        if len(dates) > LIST_MOST:
            raise ValueError(f"more than {LIST_MOST} dates: choose a longer step or a shorter time")
        n += 1
        # From the first, not from the one before: 31 January, 28 February, 31 March.
        try:
            if every in ("month", "year"):
                day = plus_months(first, n if every == "month" else 12 * n)
            else:
                day = first + timedelta(days=7 * n if every == "week" else n)
        except (OverflowError, ValueError):
            # The calendar ends.
            break
    return {"dates": dates, "count": len(dates)}


def described(value):
    day = day_of(value)
    year, week, _ = day.isocalendar()
    return {
        "date": value.isoformat(),
        "weekday": WEEKDAYS[day.weekday()],
        "iso_week": f"{year}-W{week:02d}",
        "day_of_year": day.timetuple().tm_yday,
        "quarter": (day.month + 2) // 3,
        "days_in_month": monthrange(day.year, day.month)[1],
        "leap_year": isleap(day.year),
        "month_end": day.replace(day=monthrange(day.year, day.month)[1]).isoformat(),
    }


def zone_of(name):
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}: names are like Europe/Berlin, America/New_York, UTC") from None


def run(input_model):
    value = parsed(input_model.date)
    holidays = {day_of(parsed(text)) for text in input_model.holidays}
    if input_model.operation == "shift":
        return shifted(input_model, value, holidays)
    if input_model.operation == "describe":
        return described(value)
    if input_model.operation == "convert":
        moment = value if isinstance(value, datetime) else datetime.combine(value, time())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone_of(input_model.zone or "UTC"))
        there = moment.astimezone(zone_of(input_model.to_zone))
        return {"date": there.isoformat(), "weekday": WEEKDAYS[there.weekday()], "offset": there.strftime("%z")}
    other = parsed(input_model.to)
    if input_model.operation == "list":
        return listed(value, other, input_model.every, holidays)
    return difference(value, other, holidays)
