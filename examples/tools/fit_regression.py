"""Linear and polynomial regression by least squares."""

import math
from typing import Dict, List, Optional

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

__TOOL_META__ = {
    "name": "fit_regression",
    "description": (
        "Fits y as a linear function of one or more variables, or as a polynomial of one, by least squares: coefficients with "
        "standard errors, confidence intervals and p-values, R², residual error, and predictions. Rows with a missing value are left out."
    ),
    "dependencies": ["numpy>=1.26,<3"],
    "effects": "pure",
    "output_params": ["coefficients", "r_squared", "rmse", "predictions"],
}

Numbers = List[Optional[float]]


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    y: Numbers = Field(description="what is explained")
    x: Dict[str, Numbers] = Field(min_length=1, max_length=50, description="what explains it, each as long as y")
    degree: int = Field(1, ge=1, le=8, description="of a polynomial, for a single x")
    intercept: bool = True
    confidence: float = Field(0.95, gt=0.5, lt=1, description="of the intervals")
    predict: Dict[str, List[float]] = Field(default_factory=dict, description="values of each x to predict y for")

    @model_validator(mode="after")
    def same_lengths(self):
        for name, values in self.x.items():
            if len(values) != len(self.y):
                raise ValueError(f"x[{name!r}] has {len(values)} values, y {len(self.y)}")
        if self.degree > 1 and len(self.x) > 1:
            raise ValueError("a `degree` above 1 needs a single x")
        if self.predict:
            if set(self.predict) != set(self.x):
                raise ValueError(f"`predict` needs values of {', '.join(self.x)}, each and nothing else")
            if len({len(values) for values in self.predict.values()}) > 1:
                raise ValueError("the lists of `predict` differ in length")
        return self


def beta_fraction(a, b, x):
    """The continued fraction of the incomplete beta function (Lentz's method)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    result = d
    for m in range(1, 300):
        for top in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1.0 + top * d
            c = 1.0 + top / c
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            result *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return result


def beyond(t, freedom):
    """The probability that Student's t is further from zero than `t`."""
    x = freedom / (freedom + t * t)
    a, b = freedom / 2, 0.5
    if x >= 1:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) if x > 0 else 0.0
    if x < (a + 1) / (a + b + 2):
        return front * beta_fraction(a, b, x) / a
    return 1 - front * beta_fraction(b, a, 1 - x) / b


def quantile(confidence, freedom):
    """How far from zero Student's t is at most, with this probability."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle, freedom) > 1 - confidence else (low, middle)
    return high


def design(columns, degree, intercept):
    """The matrix of what explains, and the names of its columns."""
    parts, names = ([np.ones(len(next(iter(columns.values()))))], ["intercept"]) if intercept else ([], [])
    for name, values in columns.items():
        for power in range(1, degree + 1):
            parts.append(np.asarray(values, float) ** power)
            names.append(name if power == 1 else f"{name}^{power}")
    return np.column_stack(parts), names


def significant(value, digits=8):
    return float(f"{float(value):.{digits}g}")


def run(input_model):
    complete = [
        n for n, value in enumerate(input_model.y) if value is not None and all(v[n] is not None for v in input_model.x.values())
    ]
    y = np.array([input_model.y[n] for n in complete], float)
    columns = {name: [values[n] for n in complete] for name, values in input_model.x.items()}
    if not complete:
        raise ValueError("no row has all its values")
    matrix, names = design(columns, input_model.degree, input_model.intercept)
    freedom = len(y) - len(names)
    if freedom < 1:
        raise ValueError(f"{len(y)} complete rows are too few for {len(names)} coefficients")
    # Columns of one size: large and small numbers beside each other cost no digits.
    scale = np.linalg.norm(matrix, axis=0)
    if not scale.all():
        raise ValueError(f"{names[int(np.argmin(scale))]!r} is zero everywhere")
    scaled = matrix / scale
    if np.linalg.matrix_rank(scaled) < len(names):
        raise ValueError(f"{', '.join(names)} depend on each other: leave one out")
    solution = np.linalg.lstsq(scaled, y, rcond=None)[0]
    residual = y - scaled @ solution
    squares = float(residual @ residual)
    centred = y - y.mean() if input_model.intercept else y
    total = float(centred @ centred)
    errors = np.sqrt(squares / freedom * np.diag(np.linalg.inv(scaled.T @ scaled))) / scale
    width = quantile(input_model.confidence, freedom)
    coefficients = {}
    for name, value, error in zip(names, solution / scale, errors):
        coefficients[name] = {
            "value": significant(value),
            "std_error": significant(error),
            "low": significant(value - width * error),
            "high": significant(value + width * error),
            "p": significant(beyond(value / error, freedom), 4) if error else 0.0,
        }
    r_squared = 1 - squares / total if total else None
    rows = len(y) - (1 if input_model.intercept else 0)
    result = {
        "coefficients": coefficients,
        "r_squared": None if r_squared is None else significant(r_squared),
        "r_squared_adjusted": None if r_squared is None else significant(1 - (1 - r_squared) * rows / freedom),
        "rmse": significant(math.sqrt(squares / len(y))),
        "rows": len(y),
        "rows_left_out": len(input_model.y) - len(y),
    }
    if input_model.predict:
        points, _ = design(input_model.predict, input_model.degree, input_model.intercept)
        result["predictions"] = [significant(value) for value in points @ (solution / scale)]
    return result
