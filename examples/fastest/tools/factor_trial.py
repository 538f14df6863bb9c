"""The smallest factor of a number by trial division: fast if it is small."""

from math import isqrt

from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "factor_trial",
    "description": "A factor of a number, by trial division.",
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
        return {"factor": 2, "method": "trial division"}
    for factor in range(3, isqrt(number) + 1, 2):
        if number % factor == 0:
            return {"factor": factor, "method": "trial division"}
    raise ValueError(f"{number} is prime")
