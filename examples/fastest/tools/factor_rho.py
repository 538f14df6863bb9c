"""A factor of a number by Pollard's rho: takes about the root of the smaller factor, whatever that is."""

from math import gcd

from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "factor_rho",
    "description": "A factor of a number, by Pollard's rho method.",
    "dependencies": [],
    "effects": "pure",
    "output_params": {"factor": "integer", "method": "string"},
}


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    number: int = Field(gt=3)


def run(input_model):
    number = input_model.number
    for constant in range(1, 50):
        slow = fast = 2
        factor = 1
        while factor == 1:
            slow = (slow * slow + constant) % number
            fast = (fast * fast + constant) % number
            fast = (fast * fast + constant) % number
            factor = gcd(abs(slow - fast), number)
        if factor != number:
            return {"factor": factor, "method": "Pollard's rho"}
    raise ValueError(f"{number} is probably prime")
