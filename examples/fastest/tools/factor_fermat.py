"""A factor of an odd number as a difference of squares: fast if it has two factors that are close to each other."""

from math import isqrt

from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "factor_fermat",
    "description": "A factor of an odd number, by Fermat's method.",
    "dependencies": [],
    "effects": "pure",
    "output_params": {"factor": "integer", "method": "string"},
}


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    number: int = Field(gt=3)


def run(input_model):
    number = input_model.number
    if number % 2 == 0:
        raise ValueError("the method is for odd numbers")
    middle = isqrt(number - 1) + 1
    while True:
        square = middle * middle - number
        root = isqrt(square)
        if root * root == square:
            factor = middle - root
            if factor == 1:
                raise ValueError(f"{number} is prime")
            return {"factor": factor, "method": "Fermat"}
        middle += 1
