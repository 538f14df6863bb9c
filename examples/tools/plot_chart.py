"""Charts as SVG, without a plotting library."""

import math
from datetime import datetime, timedelta, timezone
from typing import List, Literal, Optional, Union
from xml.sax.saxutils import escape, quoteattr

from pydantic import BaseModel, ConfigDict, Field, model_validator

__TOOL_META__ = {
    "name": "plot_chart",
    "description": (
        "Draws lines, bars or points as an SVG text, with axes, ticks and legend; x are numbers, dates or categories. Bands show "
        "ranges, marks are labelled vertical lines. Null in y is a gap."
    ),
    "dependencies": [],
    "effects": "pure",
    "output_params": ["svg"],
}

COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#6a3d9a", "#333333"]
POINTS_MOST = 20_000
INK, SOFT, GRID = "#1f2328", "#57606a", "#e3e6ea"
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
EPOCH = datetime(1970, 1, 1)

Place = Union[float, str]


class Series(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = ""
    y: List[Optional[float]] = Field(min_length=1)
    x: Optional[List[Place]] = Field(None, description="in place of the chart's x")
    kind: Literal["line", "bar", "points"] = "line"
    dashed: bool = False
    color: Optional[str] = Field(None, pattern=r"^(#[0-9a-fA-F]{3,8}|[a-zA-Z]+)$")


class Band(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = ""
    low: List[Optional[float]] = Field(min_length=1)
    high: List[Optional[float]] = Field(min_length=1)
    x: Optional[List[Place]] = None
    color: Optional[str] = Field(None, pattern=r"^(#[0-9a-fA-F]{3,8}|[a-zA-Z]+)$")


class Mark(BaseModel):
    model_config = ConfigDict(extra="forbid")

    x: Place
    label: str = ""


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str = ""
    x: Optional[List[Place]] = Field(None, description="numbers, ISO dates or times, or categories; 1, 2, 3 … if not given")
    series: List[Series] = Field(min_length=1, max_length=40)
    bands: List[Band] = Field(default_factory=list, max_length=10)
    marks: List[Mark] = Field(default_factory=list, max_length=40)
    x_label: str = ""
    y_label: str = ""
    from_zero: bool = Field(False, description="whether the y axis starts at zero; with bars it does anyway")
    width: int = Field(860, ge=200, le=4000)
    height: int = Field(420, ge=150, le=4000)

    @model_validator(mode="after")
    def fitting(self):
        for what, items in (("series", self.series), ("bands", self.bands)):
            for item in items:
                length = len(item.y if what == "series" else item.low)
                places = item.x if item.x is not None else self.x
                if what == "bands" and len(item.high) != length:
                    raise ValueError(f"the band {item.name!r} has {length} low and {len(item.high)} high values")
                if places is not None and len(places) != length:
                    raise ValueError(f"{what} {item.name!r}: {length} values, but {len(places)} x")
                if length > POINTS_MOST:
                    raise ValueError(f"{what} {item.name!r} has {length} values; {POINTS_MOST} at most")
        return self


def seconds(text):
    """An ISO date or time as seconds, or None."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    if moment.tzinfo:
        moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
    return (moment - EPOCH).total_seconds()


def nice(span, most):
    """A round step that divides `span` into at most `most` parts."""
    if span <= 0:
        return 1.0
    rough = span / max(1, most)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * (1 - 1e-9))


def number_ticks(low, high, most):
    step = nice(high - low, most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    # A step of 0.25 has one digit more than its size tells.
    digits += abs(step * 10**digits - round(step * 10**digits)) > 1e-9
    return [(n * step, f"{n * step:,.{digits}f}".replace(",", "\u202f").replace("-", "−")) for n in range(first, last + 1)]


def time_ticks(low, high, most):
    """Ticks at round times; the first of a day, month or year says which."""
    span = high - low
    for step in (60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600):
        if span / step <= most:
            # Weeks start on Mondays; the epoch was a Thursday.
            offset = 4 * 86_400 if step >= 604_800 else 0
            ticks, at = [], math.ceil((low - offset) / step) * step + offset
            while at <= high:
                moment = EPOCH + timedelta(seconds=at)
                day = f"{moment.day} {MONTHS[moment.month - 1]}"
                ticks.append((at, day if step >= 86_400 or at % 86_400 == 0 else f"{moment:%H:%M}"))
                at += step
            return ticks
    for months in (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200):
        if span / (months * 2_629_800) <= most:
            break
    first = EPOCH + timedelta(seconds=low)
    ticks, n = [], -(-(first.year * 12 + first.month - 1) // months) * months
    while n // 12 <= 9999:
        moment = datetime(n // 12, n % 12 + 1, 1)
        at = (moment - EPOCH).total_seconds()
        if at > high:
            break
        if at >= low:
            year = months >= 12 or (n % 12 == 0)
            ticks.append((at, str(moment.year) if year else MONTHS[moment.month - 1]))
        n += months
    return ticks


class Axis:
    """What x means: numbers, times or categories."""

    def __init__(self, places):
        self.names = None
        if all(not isinstance(place, str) for place in places):
            self.kind, self.value = "number", float
        elif all(isinstance(place, str) and seconds(place) is not None for place in places):
            self.kind, self.value = "time", seconds
        else:
            self.kind = "category"
            self.names = list(dict.fromkeys(str(place) for place in places))
            order = {name: float(index) for index, name in enumerate(self.names)}
            self.value = lambda place: order[str(place)]
        values = sorted({self.value(place) for place in places})
        self.step = min((b - a for a, b in zip(values, values[1:])), default=1.0)
        self.low, self.high = values[0], values[-1]

    def widen(self, by):
        self.low -= by
        self.high += by
        if self.high == self.low:
            self.low, self.high = self.low - 0.5, self.high + 0.5

    def ticks(self, room):
        if self.kind == "time":
            return time_ticks(self.low, self.high, max(2, room // 75))
        if self.kind == "number":
            return number_ticks(self.low, self.high, max(2, room // 70))
        longest = max(len(name) for name in self.names)
        every = max(1, math.ceil(len(self.names) * (min(longest, 14) * 6.6 + 10) / room))
        return [(float(n), shortened(name)) for n, name in enumerate(self.names) if n % every == 0]


def shortened(name):
    return name if len(name) <= 14 else name[:13] + "…"


def width_of(text, size=12):
    return len(text) * size * 0.56


class Canvas:
    def __init__(self):
        self.parts = []

    def text(self, x, y, text, size=12, color=SOFT, anchor="start", more=""):
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}"{more}>{escape(text)}</text>'
        )

    def line(self, x1, y1, x2, y2, color, width=1.0, more=""):
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}"{more}/>'
        )

    def path(self, points, more):
        self.parts.append(f'<path d="M{"L".join(f"{x:.1f},{y:.1f}" for x, y in points)}" {more}/>')


def runs_of(points):
    """Stretches without a gap."""
    stretch = []
    for point in [*points, None]:
        if point is not None and None not in point:
            stretch.append(point)
        elif stretch:
            yield stretch
            stretch = []


def legend(canvas, entries, left, right, top):
    """Draws the entries in lines and returns where they end."""
    x, y = left, top
    for name, color, kind, dashed in entries:
        needed = 26 + width_of(name) + 18
        if x > left and x + needed > right:
            x, y = left, y + 19
        if kind == "line":
            canvas.line(x, y - 4, x + 20, y - 4, color, 2.2, ' stroke-dasharray="5 3"' if dashed else "")
        elif kind == "points":
            canvas.parts.append(f'<circle cx="{x + 10:.1f}" cy="{y - 4:.1f}" r="3.5" fill="{color}"/>')
        else:
            opacity = ' fill-opacity="0.2"' if kind == "band" else ""
            canvas.parts.append(f'<rect x="{x + 3:.1f}" y="{y - 10:.1f}" width="14" height="11" fill="{color}"{opacity}/>')
        canvas.text(x + 26, y, name, color=INK)
        x += needed
    return y + 10 if entries else top - 10


def extent(given):
    """The lowest and highest y, with a little room."""
    values = [v for series in given.series for v in series.y if v is not None]
    values += [v for band in given.bands for v in [*band.low, *band.high] if v is not None]
    if not values:
        raise ValueError("there is no value to draw: every y is null")
    low, high = min(values), max(values)
    if given.from_zero or any(series.kind == "bar" for series in given.series):
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    room = (high - low) * 0.05
    return low - room * (low != 0), high + room * (high != 0)


def run(input_model):
    given = input_model
    items = [*given.series, *given.bands]

    def places_of(item):
        own = item.x if item.x is not None else given.x
        return own if own is not None else [float(n + 1) for n in range(len(item.y if isinstance(item, Series) else item.low))]

    axis = Axis([place for item in items for place in places_of(item)] + [m.x for m in given.marks])
    bars = [series for series in given.series if series.kind == "bar"]
    axis.widen(axis.step * 0.5 if bars or axis.kind == "category" else 0)
    low, high = extent(given)

    canvas = Canvas()
    colors = {id(s): s.color or COLORS[n % len(COLORS)] for n, s in enumerate(given.series)}
    band_colors = [band.color or COLORS[n % len(COLORS)] for n, band in enumerate(given.bands)]
    entries = [(s.name, colors[id(s)], s.kind, s.dashed) for s in given.series if s.name]
    entries += [(band.name, color, "band", False) for band, color in zip(given.bands, band_colors) if band.name]

    top = 14.0
    if given.title:
        canvas.text(16, top + 12, given.title, 16, INK, more=' font-weight="600"')
        top += 28
    top = legend(canvas, entries, 16, given.width - 16, top + 14) + (14 if given.y_label else 4)
    bottom = given.height - (46 if given.x_label else 30)
    if bottom - top < 40:
        raise ValueError(f"a height of {given.height} leaves no room for the chart: give more")
    y_ticks = number_ticks(low, high, max(2, int((bottom - top) // 45)))
    left = 22 + max((width_of(label) for _, label in y_ticks), default=20)
    right = given.width - 20.0

    def across(place):
        return left + (axis.value(place) - axis.low) / (axis.high - axis.low) * (right - left)

    def down(value):
        return None if value is None else bottom - (value - low) / (high - low) * (bottom - top)

    for value, label in y_ticks:
        canvas.line(left, down(value), right, down(value), GRID)
        canvas.text(left - 8, down(value) + 4, label, anchor="end")
    for value, label in axis.ticks(right - left):
        x = left + (value - axis.low) / (axis.high - axis.low) * (right - left)
        canvas.line(x, bottom, x, bottom + 5, SOFT)
        canvas.text(x, bottom + 19, label, anchor="middle")
    if given.y_label:
        canvas.text(16, top - 10, given.y_label)
    if given.x_label:
        canvas.text((left + right) / 2, given.height - 10, given.x_label, anchor="middle")

    for band, color in zip(given.bands, band_colors):
        edges = [(across(p), down(a), down(b)) for p, a, b in zip(places_of(band), band.low, band.high)]
        for stretch in runs_of(edges):
            outline = [(x, b) for x, _, b in stretch] + [(x, a) for x, a, _ in reversed(stretch)]
            canvas.path(outline, f'fill="{color}" fill-opacity="0.2"')
    room = axis.step / (axis.high - axis.low) * (right - left) * 0.8 / max(1, len(bars))
    for series in given.series:
        color = colors[id(series)]
        points = [(across(p), down(v)) for p, v in zip(places_of(series), series.y)]
        if series.kind == "line":
            dash = ' stroke-dasharray="5 3"' if series.dashed else ""
            for stretch in runs_of(points):
                if len(stretch) == 1:
                    canvas.parts.append(f'<circle cx="{stretch[0][0]:.1f}" cy="{stretch[0][1]:.1f}" r="1.6" fill="{color}"/>')
                else:
                    canvas.path(stretch, f'fill="none" stroke="{color}" stroke-width="1.8" stroke-linejoin="round"{dash}')
        elif series.kind == "points":
            canvas.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points if y is not None]
        else:
            shift = (bars.index(series) - len(bars) / 2) * room
            for x, y in points:
                if y is not None:
                    edge = min(y, down(0))
                    canvas.parts.append(
                        f'<rect x="{x + shift:.1f}" y="{edge:.1f}" width="{max(room - 1, 0.5):.1f}" '
                        f'height="{abs(down(0) - y):.1f}" fill="{color}"/>'
                    )
    base = down(min(max(0.0, low), high)) if bars else bottom
    canvas.line(left, base, right, base, SOFT)
    for mark in given.marks:
        x = across(mark.x)
        canvas.line(x, top, x, bottom, SOFT, 1, ' stroke-dasharray="3 3"')
        end = x + 6 + width_of(mark.label, 11) > right
        canvas.text(x - 5 if end else x + 5, top + 11, mark.label, 11, anchor="end" if end else "start")

    name = quoteattr(given.title or "chart")
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{given.width}" height="{given.height}" '
        f'viewBox="0 0 {given.width} {given.height}" font-family="system-ui, Helvetica, Arial, sans-serif" '
        f"role=\"img\" aria-label={name}>\n"
        f'<rect width="{given.width}" height="{given.height}" fill="#ffffff"/>\n' + "\n".join(canvas.parts) + "\n</svg>\n"
    )
    return {"svg": svg, "width": given.width, "height": given.height}
