"""Writes data/load.csv and data/weather.csv: one week of hourly values of an invented city, the same on each run.

Some hours are missing and some have no value, as in real measurements. Run it in this folder:
python3 make_data.py
"""

import csv
import math
import random
from datetime import datetime, timedelta
from pathlib import Path

START = datetime(2026, 1, 12)  # a Monday
HOURS = 7 * 24
DATA = Path(__file__).parent / "data"


def temperature(hour, chance):
    """Degrees: colder at night, with a cold spell in the middle of the week."""
    daily = 3.5 * math.sin((hour % 24 - 9) / 24 * 2 * math.pi)
    spell = -7.0 * math.exp(-(((hour - 84) / 20) ** 2))
    return 1.5 + daily + spell + chance.gauss(0, 0.5)


def load(hour, degrees, chance):
    """Megawatts: two peaks on working days, more when it is cold."""
    clock, weekend = hour % 24, hour // 24 >= 5
    morning = math.exp(-(((clock - 8) / 2.2) ** 2))
    evening = math.exp(-(((clock - 18) / 2.8) ** 2))
    people = 95 * morning + 130 * evening
    return 310 + people * (0.6 if weekend else 1.0) + 6.5 * max(0, 8 - degrees) + chance.gauss(0, 6)


def write(name, columns, rows):
    with open(DATA / name, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def main():
    chance = random.Random(20260112)
    loads, weather = [], []
    for hour in range(HOURS):
        when = (START + timedelta(hours=hour)).isoformat(timespec="minutes")
        degrees = temperature(hour, chance)
        megawatts = load(hour, degrees, chance)
        # The meter was off for three hours; single values are lost now and then.
        if hour not in (101, 102, 103):
            loads.append([when, "" if chance.random() < 0.03 else f"{megawatts:.1f}"])
        weather.append([when, "" if chance.random() < 0.02 else f"{degrees:.1f}", f"{chance.uniform(0, 9):.1f}"])
    DATA.mkdir(exist_ok=True)
    write("load.csv", ["hour", "load_mw"], loads)
    write("weather.csv", ["hour", "temperature_c", "wind_m_s"], weather)


main()
