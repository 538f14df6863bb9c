

"""What a tool returns, as JSON (A-32): values of Python's own types and of usual libraries have one form each, anything else is
refused with its place. No library is imported for it.
"""

PLAIN = {str, int, float, bool, type(None)}


class NoJson(Exception):
    """A value that has no form as JSON. `at` is a chain of (chain, key) from the output to it."""

    def __init__(self, at, why):
        super().__init__("%s: %s" % (place(at), short(why, 500)))


def place(at):
    """A chain of keys as a path: $.rows[3].price"""
    keys = []
    while at is not None:
        at, key = at
        keys.append(key)
    step = lambda key: "[%d]" % key if isinstance(key, int) else "." + key if key.isidentifier() else "[%s]" % json.dumps(key)
    return short("$" + "".join(step(key) for key in reversed(keys)), 300)


def json_form(value, at=None, within=()):
    """The value made of plain ones only. `within` are the ids of what it is in. Each level of nesting is one call."""
    # What a conversion was made of stays, so that no other value has its id.
    converting = []
    while type(value) not in PLAIN:
        if id(value) in within:
            raise NoJson(at, "it contains itself")
        within = (*within, id(value))
        kind = type(value)
        if kind is list or kind is tuple:
            if PLAIN.issuperset(map(type, value)):
                return value
            form = []
            for number, element in enumerate(value):
                form.append(json_form(element, (at, number), within))
            return form
        if isinstance(value, dict):
            if kind is dict and PLAIN.issuperset(map(type, value.values())) and {str}.issuperset(map(type, value)):
                return value
            form = {}
            for key, element in value.items():
                name = key if type(key) is str else named(key, at, within)
                if name in form:
                    raise NoJson(at, "two of its keys are %s as a text" % json.dumps(name))
                form[name] = json_form(element, (at, name), within)
            return form
        converting.append(value)
        if len(converting) > 20:
            raise NoJson(at, "a value of the type %s is no JSON" % kind.__name__)
        value = converted(value, at)
    return value


def named(key, at, within):
    """A key as a text: JSON has no other keys."""
    form = json_form(key, at, within)
    if type(form) not in PLAIN:
        raise NoJson(at, "a key is a %s, and no text" % type(key).__name__)
    unsayable(form, at)
    return form if type(form) is str else json.dumps(form)


def converted(value, at):
    """One step towards plain values."""
    import dataclasses
    import datetime
    import decimal
    import enum
    import pathlib
    import uuid

    kind = type(value)
    if isinstance(value, enum.Enum):
        return value.value
    if callable(getattr(kind, "model_dump", None)):
        try:
            return value.model_dump(mode="json")
        except Exception as e:
            raise NoJson(at, said(e))
    if dataclasses.is_dataclass(kind):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return dict(zip(kind._fields, value))
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, (set, frozenset)):
        try:
            return sorted(value)
        except Exception:
            # Their order differs from process to process.
            return sorted(value, key=lambda element: (type(element).__name__, repr(element)))
    if hasattr(value, "dtype") and callable(getattr(kind, "tolist", None)):
        return of_numpy(value, at)
    for plain, made in ((str, str.__str__), (int, int.__int__), (float, float.__float__)):
        if isinstance(value, plain):
            return made(value)
    if isinstance(value, (datetime.date, datetime.time)):
        if value != value:
            raise NoJson(at, "NaT is no JSON")
        text = value.isoformat()
        return text[:-6] + "Z" if text.endswith("+00:00") else text
    if isinstance(value, datetime.timedelta):
        return duration(value)
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            raise NoJson(at, "%s is no JSON" % value)
        return str(value)
    if isinstance(value, (pathlib.PurePath, uuid.UUID)):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            raise NoJson(at, "these bytes are no UTF-8: encode them, as with base64")
    raise NoJson(at, "a value of the type %s is no JSON" % kind.__name__)


def duration(value):
    """A timedelta as ISO 8601 has it: P1DT2H0.5S"""
    sign, value = ("-", -value) if value.days < 0 else ("", value)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    second = ("%d.%06d" % (seconds, value.microseconds)).rstrip("0").rstrip(".")
    parts = [("%d" % hours, "H"), ("%d" % minutes, "M"), (second, "S")]
    days = "%dD" % value.days if value.days else ""
    time = "".join(number + unit for number, unit in parts if number != "0")
    return sign + "P" + days + ("T" + time if time or not days else "") + ("" if time or days else "0S")


def of_numpy(value, at):
    """A scalar or an array of NumPy, or of what looks like it."""
    kind = getattr(value.dtype, "kind", "O")
    if getattr(value, "ndim", 0):
        # Elements that Python has no type of its own for are converted each by itself.
        return value.tolist() if kind in "biufU" else list(value)
    item = value.item()
    if kind in "mM" and isinstance(item, int):
        # Nanoseconds, which Python's times do not have.
        item = value.astype(kind + "8[us]").item()
    if kind in "mM" and item is None:
        raise NoJson(at, "NaT is no JSON")
    if type(item) is type(value):
        raise NoJson(at, "a value of the type %s is no JSON" % type(value).__name__)
    return item


def unsayable(value, at=None):
    """Where plain values have something that JSON lacks."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        name = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        raise NoJson(at, "%s is no JSON" % name)
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise NoJson(at, "half of a UTF-16 pair is no character")
    items = enumerate(value) if isinstance(value, (list, tuple)) else value.items() if isinstance(value, dict) else ()
    for key, item in items:
        if isinstance(key, str):
            unsayable(key, at)
        unsayable(item, (at, key))


def encoded(value):
    """The answer with this value."""
    try:
        form = json_form(value)
        try:
            return json.dumps({"ok": form}, allow_nan=False, ensure_ascii=False).encode("utf-8")
        except ValueError:
            unsayable(form)
            raise
    except BaseException as e:
        deep = isinstance(e, RecursionError)
        text = "it is nested too deeply" if deep else str(e) if isinstance(e, NoJson) else said(e)
        message = "the tool returned something that is not JSON: " + text
        raise Refused("tool_execution_error", message + " (return a BaseModel or plain JSON values)")
