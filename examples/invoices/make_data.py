"""Writes data/*.txt: thirty invoices of an invented joinery's suppliers, the same on each run. Three of them are broken on
purpose: a total that does not add up, a date that is none, and a page that a scanner has spoilt.

Run it in this folder: python3 make_data.py
"""

import random
from datetime import date, timedelta
from pathlib import Path

DATA = Path(__file__).parent / "data"
SUPPLIERS = ["Timber & Sons", "Kolb Beschläge GmbH", "Lacquer Works Ltd", "Hjelm Verktøy AS"]
ARTICLES = [
    ("oak board 27 mm, per m", 1890),
    ("birch plywood 15 mm, sheet", 5475),
    ("cabinet hinge, pair", 640),
    ("drawer runner 450 mm, pair", 1795),
    ("hard wax oil 2.5 l", 8950),
    ("abrasive disc 150 mm, box", 2260),
    ("router bit 12 mm", 3310),
]
VAT = 19  # percent


def money(cents):
    return f"{cents // 100}.{cents % 100:02d}"


def invoice(number, chance):
    day = date(2026, 3, 2) + timedelta(days=number)
    lines = []
    net = 0
    for name, price in chance.sample(ARTICLES, chance.randint(2, 4)):
        count = chance.randint(1, 12)
        net += count * price
        lines.append(f"{count:>4} x {name:<32}{money(price):>10}{money(count * price):>12}")
    vat = (net * VAT + 50) // 100
    return (
        [f"{chance.choice(SUPPLIERS)}", "", f"Invoice no. R-{2600 + number}", f"Date: {day.isoformat()}", ""]
        + lines
        + ["", f"{'Net':<50}{money(net):>12}", f"{f'VAT {VAT} %':<50}{money(vat):>12}", f"{'Total EUR':<50}{money(net + vat):>12}"]
    )


def broken(number, lines, chance):
    if number == 7:  # two digits of the total changed places
        total = lines[-1]
        lines[-1] = total[:-5] + total[-4] + total[-5] + total[-3:]
        assert lines[-1] != total
    if number == 16:
        lines[3] = "Date: 31st inst."
    if number == 23:
        lines[5:] = ["".join(chance.choice("#@~|.:'") for _ in range(40)) for _ in range(6)]
    return lines


def main():
    chance = random.Random(20260302)
    DATA.mkdir(exist_ok=True)
    for number in range(1, 31):
        lines = broken(number, invoice(number, chance), chance)
        (DATA / f"invoice-{number:02d}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


main()
