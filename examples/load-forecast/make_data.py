"""Writes data/load.csv: twenty weeks of hourly electric load of an invented region, the same on each run.

As in real measurements, rows and values are missing, a meter was off for more than a day, some values are wrong, two rows
are there twice, and three public holidays look like Sundays. Run it in this folder: python3 make_data.py
"""

import csv
import math
import random
from datetime import date, datetime, timedelta
from pathlib import Path

START = datetime(2026, 1, 5)  # a Monday
HOURS = 20 * 7 * 24
HOLIDAYS = {date(2026, 4, 3), date(2026, 4, 6), date(2026, 5, 1)}
DATA = Path(__file__).parent / "data"


def temperatures(chance):
    """Degrees by the hour: spring comes, nights are colder, and weather lasts for days."""
    weather = 0.0
    for hour in range(HOURS):
        weather = 0.985 * weather + chance.gauss(0, 0.5)
        season = -1.0 + 15.0 * hour / HOURS
        daily = 4.0 * math.sin((hour % 24 - 9) / 24 * 2 * math.pi)
        yield season + daily + weather


def people(clock, free):
    """What people and firms use beyond the base: two peaks on working days, one late hump on free ones."""
    if free:
        return 55 * math.exp(-(((clock - 12.5) / 3.5) ** 2)) + 75 * math.exp(-(((clock - 19) / 2.8) ** 2))
    morning = 120 * math.exp(-(((clock - 8.5) / 2.4) ** 2))
    midday = 95 * math.exp(-(((clock - 13.5) / 3.2) ** 2))
    return morning + midday + 115 * math.exp(-(((clock - 18.5) / 2.6) ** 2))


def loads(chance):
    """Megawatts by the hour: base, people, heating below 16 degrees, and what nobody can explain."""
    noise = 0.0
    for hour, degrees in enumerate(temperatures(chance)):
        moment = START + timedelta(hours=hour)
        free = moment.weekday() >= 5 or moment.date() in HOLIDAYS
        noise = 0.8 * noise + chance.gauss(0, 3.2)
        yield moment, 260 + people(moment.hour, free) + 5.2 * max(0.0, 16 - degrees) + noise


def main():
    chance = random.Random(20260105)
    off = set(range(1003, 1037))  # the meter was off
    wrong = {311: 0.0, 702: 2170.4, 1290: -12.0, 1544: 1893.0, 1871: 0.0, 2230: 3051.7, 2601: 20.1, 2990: 1411.6}
    rows = []
    for hour, (moment, megawatts) in enumerate(loads(chance)):
        if hour in off or chance.random() < 0.003:
            continue
        value = f"{wrong.get(hour, megawatts):.1f}"
        rows.append([moment.isoformat(timespec="minutes"), "" if chance.random() < 0.012 else value])
        if hour in (500, 2100):
            rows.append(rows[-1])
    DATA.mkdir(exist_ok=True)
    with open(DATA / "load.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["time", "load_mw"])
        writer.writerows(rows)


main()
