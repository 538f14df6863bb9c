"""Units of measurement, also compound ones."""

import re
from difflib import get_close_matches
from fractions import Fraction
from typing import List, Union

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

__TOOL_META__ = {
    "name": "convert_units",
    "description": (
        "Converts a number, or a list of numbers, from one unit to another: length, mass, time, temperature, area, volume, speed, "
        "force, pressure, energy, power, data, angle, and compounds such as kWh/m2, L/(100 km) or kg*m/s^2."
    ),
    "dependencies": [],
    "effects": "pure",
    "output_params": ["value", "unit"],
}

# Dimensions: metre, kilogram, second, kelvin, ampere, mole, bit, radian.
M, KG, S, K, A, MOL, BIT, RAD = ({name: 1} for name in ("m", "kg", "s", "K", "A", "mol", "bit", "rad"))
FORCE = {"kg": 1, "m": 1, "s": -2}
PRESSURE = {"kg": 1, "m": -1, "s": -2}
ENERGY = {"kg": 1, "m": 2, "s": -2}
POWER = {"kg": 1, "m": 2, "s": -3}
VOLUME = {"m": 3}
PI = Fraction("3.14159265358979323846")

# Units that take the prefixes of the SI.
PREFIXED = {
    "m": ("1", M), "g": ("0.001", KG), "s": ("1", S), "K": ("1", K), "A": ("1", A), "mol": ("1", MOL),
    "L": ("0.001", VOLUME), "l": ("0.001", VOLUME), "t": ("1000", KG), "N": ("1", FORCE), "Pa": ("1", PRESSURE),
    "bar": ("100000", PRESSURE), "J": ("1", ENERGY), "W": ("1", POWER), "Wh": ("3600", ENERGY), "cal": ("4.184", ENERGY),
    "eV": ("1.602176634e-19", ENERGY), "Hz": ("1", {"s": -1}), "C": ("1", {"A": 1, "s": 1}),
    "V": ("1", {"kg": 1, "m": 2, "s": -3, "A": -1}), "ohm": ("1", {"kg": 1, "m": 2, "s": -3, "A": -2}),
    "Ω": ("1", {"kg": 1, "m": 2, "s": -3, "A": -2}), "F": ("1", {"kg": -1, "m": -2, "s": 4, "A": 2}),
    "T": ("1", {"kg": 1, "s": -2, "A": -1}), "bit": ("1", BIT), "b": ("1", BIT), "B": ("8", BIT), "byte": ("8", BIT),
    "rad": ("1", RAD), "VA": ("1", POWER), "var": ("1", POWER), "Ah": ("3600", {"A": 1, "s": 1}),
}
PLAIN = {
    "in": ("0.0254", M), "ft": ("0.3048", M), "yd": ("0.9144", M), "mi": ("1609.344", M), "nmi": ("1852", M),
    "ly": ("9460730472580800", M), "au": ("149597870700", M),
    "lb": ("0.45359237", KG), "oz": ("0.028349523125", KG), "st": ("6.35029318", KG), "ct": ("0.0002", KG),
    "ton_us": ("907.18474", KG), "ton_uk": ("1016.0469088", KG),
    "min": ("60", S), "h": ("3600", S), "d": ("86400", S), "wk": ("604800", S), "yr": ("31557600", S),
    "ha": ("10000", {"m": 2}), "acre": ("4046.8564224", {"m": 2}),
    "gal": ("0.003785411784", VOLUME), "qt": ("0.000946352946", VOLUME), "pt": ("0.000473176473", VOLUME),
    "cup": ("0.0002365882365", VOLUME), "floz": ("0.0000295735295625", VOLUME), "tbsp": ("0.00001478676478125", VOLUME),
    "tsp": ("0.00000492892159375", VOLUME), "gal_uk": ("0.00454609", VOLUME), "bbl": ("0.158987294928", VOLUME),
    "mph": ("0.44704", {"m": 1, "s": -1}), "kn": ("0.514444444444444444", {"m": 1, "s": -1}),
    "lbf": ("4.4482216152605", FORCE), "psi": ("6894.757293168361", PRESSURE), "atm": ("101325", PRESSURE),
    "mmHg": ("133.322387415", PRESSURE), "BTU": ("1055.05585262", ENERGY), "hp": ("745.69987158227022", POWER),
    "PS": ("735.49875", POWER), "deg": (PI / 180, RAD), "turn": (2 * PI, RAD), "rpm": (2 * PI / 60, {"rad": 1, "s": -1}),
    "%": ("0.01", {}), "ppm": ("0.000001", {}),
}
PREFIXES = {
    "Q": 30, "R": 27, "Y": 24, "Z": 21, "E": 18, "P": 15, "T": 12, "G": 9, "M": 6, "k": 3, "h": 2, "da": 1,
    "d": -1, "c": -2, "m": -3, "u": -6, "µ": -6, "μ": -6, "n": -9, "p": -12, "f": -15, "a": -18, "z": -21, "y": -24,
}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# Scales whose zero is elsewhere: kelvin = (value + shift) * factor.
TEMPERATURES = {
    "K": (Fraction(0), Fraction(1)),
    "°C": (Fraction("273.15"), Fraction(1)),
    "°F": (Fraction("459.67"), Fraction(5, 9)),
    "°R": (Fraction(0), Fraction(5, 9)),
}
WORDS = {
    "celsius": "°C", "degc": "°C", "fahrenheit": "°F", "degf": "°F", "kelvin": "K", "rankine": "°R",
    "meter": "m", "metre": "m", "meters": "m", "metres": "m", "kilometer": "km", "kilometers": "km", "kilometre": "km",
    "kilometres": "km", "inch": "in", "inches": "in", "foot": "ft", "feet": "ft", "yard": "yd", "yards": "yd", "mile": "mi",
    "miles": "mi", "gram": "g", "grams": "g", "kilogram": "kg", "kilograms": "kg", "tonne": "t", "tonnes": "t", "pound": "lb",
    "pounds": "lb", "lbs": "lb", "ounce": "oz", "ounces": "oz", "stone": "st", "second": "s", "seconds": "s", "sec": "s",
    "minute": "min", "minutes": "min", "hour": "h", "hours": "h", "hr": "h", "day": "d", "days": "d", "week": "wk",
    "weeks": "wk", "year": "yr", "years": "yr", "liter": "L", "litre": "L", "liters": "L", "litres": "L", "gallon": "gal",
    "gallons": "gal", "knot": "kn", "knots": "kn", "kph": "km/h", "kmh": "km/h", "degree": "deg", "degrees": "deg", "°": "deg",
    "bytes": "byte", "bits": "bit", "joule": "J", "joules": "J", "watt": "W", "watts": "W", "newton": "N", "pascal": "Pa",
    "calorie": "cal", "calories": "cal", "kcal": "kcal", "horsepower": "hp", "barrel": "bbl", "acres": "acre", "hectare": "ha",
    "hectares": "ha", "teaspoon": "tsp", "tablespoon": "tbsp", "cups": "cup", "percent": "%",
}
PREFIX_WORDS = {"kilo": "k", "mega": "M", "giga": "G", "tera": "T", "centi": "c", "milli": "m", "micro": "u", "nano": "n"}
TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|([^\W\d²³]+|[°%]\w?)(?:(?:\^|\*\*)?(-?\d+)|([²³]))?|([*/·()]))")


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    value: Union[FiniteFloat, List[FiniteFloat]] = Field(description="a number or a list of numbers")
    from_unit: str = Field(min_length=1, max_length=100)
    to_unit: str = Field(min_length=1, max_length=100)
    digits: int = Field(10, ge=1, le=15, description="significant digits of the answer")

    @model_validator(mode="after")
    def of_one_kind(self):
        converter(self.from_unit, self.to_unit)
        return self


def unit(name):
    """Factor to the SI's base units, and dimension."""
    name = name if name in PREFIXED or name in PLAIN else WORDS.get(name.lower(), name)
    if name == "km/h":
        return Fraction(1000, 3600), {"m": 1, "s": -1}
    if name in PLAIN or name in PREFIXED:
        factor, dimension = PLAIN.get(name) or PREFIXED[name]
        return Fraction(factor), dimension
    if name in TEMPERATURES:
        # Within a compound, as W/(m2*°C), only differences of temperature make sense.
        return TEMPERATURES[name][1], K
    for prefixes, base in ((BINARY, 2), (PREFIXES, 10)):
        for prefix, power in prefixes.items():
            rest = name[len(prefix) :]
            bits = rest in ("B", "b", "bit", "byte")
            # There is no half of a bit: dB is no unit of data.
            if name.startswith(prefix) and rest in PREFIXED and (bits if base == 2 else not bits or power > 2):
                factor, dimension = PREFIXED[rest]
                return Fraction(base) ** power * Fraction(factor), dimension
    for word, prefix in PREFIX_WORDS.items():
        rest = WORDS.get(name.lower()[len(word) :])
        if name.lower().startswith(word) and rest in PREFIXED:
            return unit(prefix + rest)
    near = get_close_matches(name, [*PREFIXED, *PLAIN, *WORDS], n=3, cutoff=0.6)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    raise ValueError(f"the unit {name!r} is not known{hint}")


def times(one, other, power):
    factor = one[0] * other[0] ** power
    dimension = dict(one[1])
    for name, exponent in other[1].items():
        dimension[name] = dimension.get(name, 0) + exponent * power
    return factor, {name: exponent for name, exponent in dimension.items() if exponent}


def tokens_of(text):
    found, at = [], 0
    while text[at:].strip():
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"the unit {text!r} cannot be read from {text[at:].strip()!r} on")
        found.append(match.groups())
        at = match.end()
    return found


def read(text):
    """A compound unit: factors joined by `*`, `·` or a space, divided by `/`, with exponents and brackets."""
    tokens = tokens_of(text)

    def product(at, depth):
        result, power, empty = (Fraction(1), {}), 1, True
        while at < len(tokens):
            number, name, exponent, superscript, sign = tokens[at]
            at += 1
            if sign == ")":
                if not depth:
                    raise ValueError(f"the unit {text!r} has a ) too much")
                return result, at, True
            if sign in ("*", "·", "/"):
                if at == len(tokens):
                    raise ValueError(f"the unit {text!r} ends with {sign!r}")
                power = -1 if sign == "/" else 1
                continue
            if sign == "(":
                inner, at, closed = product(at, depth + 1)
                if not closed:
                    raise ValueError(f"the unit {text!r} lacks a )")
            elif number:
                inner = (Fraction(number), {})
            else:
                raised = int(exponent or {"²": 2, "³": 3}.get(superscript, 1))
                if abs(raised) > 12:
                    raise ValueError(f"the exponent {raised} in {text!r} is too large")
                inner = times((Fraction(1), {}), unit(name), raised)
            result, power, empty = times(result, inner, power), 1, False
        if empty:
            raise ValueError(f"the unit {text!r} is empty")
        return result, at, False

    return product(0, 0)[0]


def scale(text):
    """The name of a temperature scale that stands alone, else None."""
    name = WORDS.get(text.strip().lower(), text.strip())
    return name if name in TEMPERATURES else None


def shown(dimension):
    return "·".join(f"{name}^{power}" if power != 1 else name for name, power in sorted(dimension.items())) or "1"


def converter(source, target):
    """The function from a number of one unit to that of the other."""
    scales = scale(source), scale(target)
    if all(scales):
        (shift, factor), (other_shift, other_factor) = (TEMPERATURES[name] for name in scales)
        return lambda number: (number + shift) * factor / other_factor - other_shift
    (factor, dimension), (other_factor, other_dimension) = read(source), read(target)
    if dimension != other_dimension:
        raise ValueError(f"{source!r} does not become {target!r}: one is {shown(dimension)}, the other {shown(other_dimension)}")
    return lambda number: number * factor / other_factor


def run(input_model):
    convert = converter(input_model.from_unit, input_model.to_unit)

    def rounded(number):
        # The decimal that was written is meant, not the binary fraction nearest to it.
        try:
            exact = float(convert(Fraction(repr(number))))
        except OverflowError:
            raise ValueError(f"{number:g} {input_model.from_unit} is more {input_model.to_unit} than a number can hold") from None
        return float(f"{exact:.{input_model.digits}g}")

    given = input_model.value
    value = [rounded(number) for number in given] if isinstance(given, list) else rounded(given)
    return {"value": value, "unit": input_model.to_unit, "from": {"value": given, "unit": input_model.from_unit}}
