"""What so many invoices come to."""

from typing import Dict

from pydantic import BaseModel, ConfigDict

__TOOL_META__ = {
    "name": "sum_up",
    "description": "Counts invoices, and adds their totals by supplier.",
    "dependencies": [],
    "effects": "pure",
    "output_params": ["count", "mean_eur", "by_supplier_eur"],
}


class Invoice(BaseModel):
    number: str
    date: str
    supplier: str
    total_cents: int


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    invoices: Dict[str, Invoice]


def run(input_model):
    invoices = list(input_model.invoices.values())
    by_supplier = {}
    for invoice in invoices:
        by_supplier[invoice.supplier] = by_supplier.get(invoice.supplier, 0) + invoice.total_cents
    return {
        "count": len(invoices),
        "mean_eur": round(sum(by_supplier.values()) / len(invoices) / 100, 2),
        "by_supplier_eur": {name: by_supplier[name] / 100 for name in sorted(by_supplier)},
    }
