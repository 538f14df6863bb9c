"""One of so many passages of a text, cut between lines."""

from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "read_passage",
    "description": "One of so many passages of a text of about the same length, by its number from 0 on.",
    "dependencies": [],
    "effects": "read",
    "output_params": {"text": "string", "first_line": "integer"},
}


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: str
    number: int = Field(ge=0)
    of: int = Field(ge=1)


def run(input_model):
    with open(input_model.path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    number, of = input_model.number, input_model.of
    first, last = number * len(lines) // of, (number + 1) * len(lines) // of
    return {"text": "\n".join(lines[first:last]), "first_line": first + 1}
