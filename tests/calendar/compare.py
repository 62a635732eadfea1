#!/usr/bin/python3
# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""Compares the broker's calendar with another implementation, minute by minute.

compare.py DUMP YEARS: DUMP is calendar_dump. This one knows nothing of days or of rules: it walks
through all minutes as cron does, with Python's zoneinfo for the clock on the wall. What has a star
in minute or hour follows that clock. Any other follows a clock that never goes back, and that runs
through what the one on the wall leaves out, at once.
"""

import datetime
import subprocess
import sys
import zoneinfo

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca",
         "Asia/Kolkata"]
FIELDS = ["*/5 * * * *", "30 * * * *", "*/20 2 * * *", "30 2 * * *", "0,30 1-3 * * *",
          "15 3 * * 0", "0 0 1 * *", "45 23 31 * mon", "10 2 29 feb *", "1 1 1-7 * */2",
          "0 12 */10 3,10 sun", "7 5 31 */3 */7", "* 4 28-30 2,4 */3", "0 6 */30 2-4 mon"]
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
BEGIN = datetime.datetime(2026, 1, 15, tzinfo=datetime.timezone.utc)
MINUTE = datetime.timedelta(minutes=1)
YEAR_S = 365 * 86400


def numbers(text, least, most, words=()):
    """The numbers that one field names."""
    found = set()
    for item in text.split(","):
        base, _, step = item.partition("/")
        if base == "*":
            first, last = least, most
        else:
            ends = [words.index(end) + (1 if words is MONTHS else 0) if end in words else int(end)
                    for end in base.split("-")]
            first, last = ends[0], ends[-1]
        found.update(range(first, last + 1, int(step or 1)))
    return found


class Job:
    """One line of a crontab."""

    def __init__(self, text):
        minute, hour, day, month, weekday = text.split()
        self.minutes = numbers(minute, 0, 59)
        self.hours = numbers(hour, 0, 23)
        self.days = numbers(day, 1, 31)
        self.months = numbers(month, 1, 12, MONTHS)
        self.weekdays = {number % 7 for number in numbers(weekday, 0, 7, DAYS)}
        self.either = day[0] != "*" and weekday[0] != "*"
        self.wall = minute[0] == "*" or hour[0] == "*"
        self.due = []

    def matches(self, wall):
        if wall.minute not in self.minutes or wall.hour not in self.hours:
            return False
        if wall.month not in self.months:
            return False
        day = wall.day in self.days
        weekday = wall.isoweekday() % 7 in self.weekdays
        return day or weekday if self.either else day and weekday


def walk(zone, years):
    """All jobs, as cron would run them."""
    jobs = [Job(text) for text in FIELDS]
    tz = zoneinfo.ZoneInfo(zone)
    begin = int(BEGIN.timestamp())
    steady = BEGIN.astimezone(tz).replace(tzinfo=None, fold=0)
    for utc in range(begin + 60, begin + int(years * YEAR_S) + 1, 60):
        wall = datetime.datetime.fromtimestamp(utc, tz).replace(tzinfo=None, fold=0)
        for job in jobs:
            if job.wall and job.matches(wall):
                job.due.append(utc)
        while steady < wall:
            steady += MINUTE
            for job in jobs:
                if not job.wall and job.matches(steady):
                    job.due.append(utc)
    return jobs


def main():
    dump, years = sys.argv[1], float(sys.argv[2])
    begin = int(BEGIN.timestamp())
    until = begin + int(years * YEAR_S)
    wrong = 0
    for zone in ZONES:
        count = 0
        for text, job in zip(FIELDS, walk(zone, years)):
            output = subprocess.run([dump, zone, str(begin), str(until), text], check=True,
                                    capture_output=True, text=True).stdout
            ours = [int(line) for line in output.split()]
            count += len(ours)
            if ours != job.due:
                wrong += 1
                differ = sorted(set(ours) ^ set(job.due))[:5] or "how often"
                print(f"{zone}: {text}: {len(ours)} against {len(job.due)}, differ at {differ}")
        print(f"{zone}: {count} occurrences of {len(FIELDS)} calendars in {years} years")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
