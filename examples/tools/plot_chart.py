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
        if all(value is None for series in self.series for value in series.y):
            raise ValueError("there is nothing to draw: every y is null")
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
    if max(abs(low), abs(high)) >= 1e7 or step < 1e-4:
        return [(n * step, f"{n * step:.6g}".replace("-", "−")) for n in range(first, last + 1)]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    # A step of 0.25 has one digit more than its size tells.
    digits += abs(step * 10**digits - round(step * 10**digits)) > 1e-9
    return [(n * step, f"{n * step:,.{digits}f}".replace(",", "\u202f").replace("-", "−")) for n in range(first, last + 1)]


def time_ticks(low, high, most):
    """Ticks at round times; the first of a day, month or year says which."""
    span = high - low
    for step in (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600):
        if span / step <= most:
            # Weeks start on Mondays; the epoch was a Thursday.
            offset = 4 * 86_400 if step >= 604_800 else 0
            ticks, at = [], math.ceil((low - offset) / step) * step + offset
            while at <= high:
                moment = EPOCH + timedelta(seconds=at)
                day = f"{moment.day} {MONTHS[moment.month - 1]}"
                ticks.append((at, day if step >= 86_400 or at % 86_400 == 0 else f"{moment:%H:%M}" if step >= 60 else f"{moment:%H:%M:%S}"))
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
            return time_ticks(self.low, self.high, max(2, room // 70))
        if self.kind == "number":
            return number_ticks(self.low, self.high, max(2, room // 60))
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
    low, high = min(values), max(values)
    if given.from_zero or any(series.kind == "bar" for series in given.series):
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    room = (high - low) * 0.05
    return low - room * (low != 0), high + room * (high != 0)


class Chart:
    """What is to be drawn, and where it goes."""

    def __init__(self, given):
        self.given, self.canvas = given, Canvas()
        self.bars = [series for series in given.series if series.kind == "bar"]
        places = [place for item in [*given.series, *given.bands] for place in self.places(item)]
        self.axis = Axis(places + [mark.x for mark in given.marks])
        points = any(series.kind == "points" for series in given.series)
        span = self.axis.high - self.axis.low
        self.axis.widen(self.axis.step / 2 if self.bars or self.axis.kind == "category" else span * 0.02 if points else 0)
        self.low, self.high = extent(given)
        self.colors = [series.color or COLORS[n % len(COLORS)] for n, series in enumerate(given.series)]
        self.band_colors = [band.color or COLORS[n % len(COLORS)] for n, band in enumerate(given.bands)]
        self.bottom = given.height - (46 if given.x_label else 30)
        self.right = given.width - 28.0

    def places(self, item):
        own = item.x if item.x is not None else self.given.x
        return own if own is not None else [float(n + 1) for n in range(len(item.y if isinstance(item, Series) else item.low))]

    def at(self, value):
        return self.left + (value - self.axis.low) / (self.axis.high - self.axis.low) * (self.right - self.left)

    def across(self, place):
        return self.at(self.axis.value(place))

    def down(self, value):
        return None if value is None else self.bottom - (value - self.low) / (self.high - self.low) * (self.bottom - self.top)

    def head(self):
        """Title and legend; what is below them is for the chart."""
        given, top = self.given, 14.0
        if given.title:
            self.canvas.text(16, top + 12, given.title, 16, INK, more=' font-weight="600"')
            top += 28
        entries = [(s.name, color, s.kind, s.dashed) for s, color in zip(given.series, self.colors) if s.name]
        entries += [(band.name, color, "band", False) for band, color in zip(given.bands, self.band_colors) if band.name]
        self.top = legend(self.canvas, entries, 16, given.width - 16, top + 14) + (20 if given.y_label else 4)
        if self.bottom - self.top < 40:
            raise ValueError(f"a height of {given.height} leaves no room for the chart: give more")

    def frame(self):
        """Axes with their ticks and labels."""
        given, canvas = self.given, self.canvas
        ticks = number_ticks(self.low, self.high, max(3, int((self.bottom - self.top) // 38)))
        self.left = 22 + max((width_of(label) for _, label in ticks), default=20)
        for value, label in ticks:
            canvas.line(self.left, self.down(value), self.right, self.down(value), GRID)
            canvas.text(self.left - 8, self.down(value) + 4, label, anchor="end")
        for value, label in self.axis.ticks(self.right - self.left):
            canvas.line(self.at(value), self.bottom, self.at(value), self.bottom + 5, SOFT)
            canvas.text(self.at(value), self.bottom + 19, label, anchor="middle")
        if given.y_label:
            canvas.text(16, self.top - 10, given.y_label)
        if given.x_label:
            canvas.text((self.left + self.right) / 2, given.height - 10, given.x_label, anchor="middle")

    def band(self, band, color):
        edges = [(self.across(p), self.down(a), self.down(b)) for p, a, b in zip(self.places(band), band.low, band.high)]
        for stretch in runs_of(edges):
            outline = [(x, b) for x, _, b in stretch] + [(x, a) for x, a, _ in reversed(stretch)]
            self.canvas.path(outline, f'fill="{color}" fill-opacity="0.2"')

    def draw(self, series, color):
        canvas = self.canvas
        points = [(self.across(p), self.down(v)) for p, v in zip(self.places(series), series.y)]
        if series.kind == "bar":
            room = self.axis.step / (self.axis.high - self.axis.low) * (self.right - self.left) * 0.8 / len(self.bars)
            shift, zero = (self.bars.index(series) - len(self.bars) / 2) * room, self.down(0)
            for x, y in points:
                if y is not None:
                    canvas.parts.append(
                        f'<rect x="{x + shift:.1f}" y="{min(y, zero):.1f}" width="{max(room - 1, 0.5):.1f}" '
                        f'height="{abs(zero - y):.1f}" fill="{color}"/>'
                    )
            return
        dash = ' stroke-dasharray="5 3"' if series.dashed else ""
        for stretch in runs_of(points):
            if series.kind == "line" and len(stretch) > 1:
                canvas.path(stretch, f'fill="none" stroke="{color}" stroke-width="1.8" stroke-linejoin="round"{dash}')
            else:
                # A value between two gaps is a dot, even of a line.
                size = 3 if series.kind == "points" else 1.6
                canvas.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{color}"/>' for x, y in stretch]

    def mark(self, mark):
        x = self.across(mark.x)
        self.canvas.line(x, self.top, x, self.bottom, SOFT, 1, ' stroke-dasharray="3 3"')
        over = x + 6 + width_of(mark.label, 11) > self.right
        self.canvas.text(x - 5 if over else x + 5, self.top + 11, mark.label, 11, anchor="end" if over else "start")

    def svg(self):
        given = self.given
        self.head()
        self.frame()
        for band, color in zip(given.bands, self.band_colors):
            self.band(band, color)
        for series, color in zip(given.series, self.colors):
            self.draw(series, color)
        base = self.down(min(max(0.0, self.low), self.high)) if self.bars else self.bottom
        self.canvas.line(self.left, base, self.right, base, SOFT)
        for mark in given.marks:
            self.mark(mark)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{given.width}" height="{given.height}" '
            f'viewBox="0 0 {given.width} {given.height}" font-family="system-ui, Helvetica, Arial, sans-serif" '
            f'role="img" aria-label={quoteattr(given.title or "chart")}>\n'
            f'<rect width="{given.width}" height="{given.height}" fill="#ffffff"/>\n' + "\n".join(self.canvas.parts) + "\n</svg>\n"
        )


def run(input_model):
    return {"svg": Chart(input_model).svg(), "width": input_model.width, "height": input_model.height}
