"""The square of a number."""

from pydantic import BaseModel, ConfigDict

__TOOL_META__ = {
    "name": "square",
    "description": "The square of a number.",
    "dependencies": [],
    "effects": "pure",
    "output_params": ["square"],
}


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    number: int


def run(input_model):
    return {"square": input_model.number**2}
