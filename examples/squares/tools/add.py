"""The sum of numbers."""

from typing import List

from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "add",
    "description": "The sum of numbers.",
    "dependencies": [],
    "effects": "pure",
    "output_params": ["sum"],
}


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    numbers: List[int] = Field(min_length=1)


def run(input_model):
    return {"sum": sum(input_model.numbers)}
