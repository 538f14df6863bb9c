"""An invoice as data, or why it is none that anybody should pay."""

import re
from datetime import date
from decimal import Decimal

from pydantic import BaseModel, ConfigDict

__TOOL_META__ = {
    "name": "parse_invoice",
    "description": "Reads an invoice from a text file, and checks its date and its sums.",
    "dependencies": [],
    "effects": "read",
    "output_params": {"number": "string", "date": "string", "supplier": "string", "total_cents": "integer"},
}

AMOUNT = r"(\d+\.\d{2})"


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: str


def cents(text):
    return int(Decimal(text) * 100)


def found(pattern, text, what):
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise ValueError(f"the invoice has no {what}")
    return match


def run(input_model):
    with open(input_model.path, encoding="utf-8") as file:
        text = file.read()
    number = found(r"^Invoice no\. (R-\d+)$", text, "number").group(1)
    day = date.fromisoformat(found(r"^Date: (\d{4}-\d\d-\d\d)$", text, "date that can be read").group(1))
    items = re.findall(rf"^ *(\d+) x .*? {AMOUNT} +{AMOUNT}$", text, re.MULTILINE)
    if not items:
        raise ValueError("the invoice has no items that can be read")
    for count, price, amount in items:
        if int(count) * cents(price) != cents(amount):
            raise ValueError(f"{count} x {price} is not {amount}")
    net = cents(found(rf"^Net +{AMOUNT}$", text, "net amount").group(1))
    vat = cents(found(rf"^VAT .*? {AMOUNT}$", text, "VAT").group(1))
    total = cents(found(rf"^Total EUR +{AMOUNT}$", text, "total").group(1))
    if net != sum(cents(amount) for *_, amount in items) or total != net + vat:
        raise ValueError("the invoice's total is not the sum of its items and the VAT")
    return {"number": number, "date": day.isoformat(), "supplier": text.splitlines()[0], "total_cents": total}
