"""An order as a letter."""

from pydantic import BaseModel

__TOOL_META__ = {
    "name": "write_order",
    "description": "An order as plain text.",
    "dependencies": [],
    "effects": "pure",
}


class Line(BaseModel):
    sku: str
    name: str
    packs: int
    cost: float


class InputModel(BaseModel):
    supplier: str
    lines: list[Line]
    total: float
    remark: str


def run(input_model):
    text = [f"Order to {input_model.supplier}", ""]
    text += [f"{line.packs:>4} packs  {line.sku}  {line.name:<22} {line.cost:>9.2f}" for line in input_model.lines]
    text += ["", f"Total {input_model.total:.2f}", input_model.remark]
    return "\n".join(text)
