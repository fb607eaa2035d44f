"""When does a rule fire, by python-dateutil? One question in JSON for each line, one answer.

Only dateutil's recurrence rules and its own copy of the time zone database are used, so that nothing
is shared with the code under test.
"""

import json
import sys
import warnings
from datetime import datetime, timedelta, timezone

from dateutil import relativedelta, rrule, tz, zoneinfo

WEEKDAYS = [rrule.MO, rrule.TU, rrule.WE, rrule.TH, rrule.FR, rrule.SA, rrule.SU]
# COUNT and UNTIL together: meant here, see `recurrence`.
warnings.simplefilter("ignore", DeprecationWarning)
ZONES = zoneinfo.get_zonefile_instance()


def parse(text):
    return datetime.strptime(text, "%Y-%m-%dT%H:%M")


def instant(local, zone):
    """Seconds since 1970; a skipped time is moved later, of a doubled one the first is meant."""
    aware = tz.resolve_imaginary(local.replace(tzinfo=zone, fold=0))
    return int(aware.astimezone(timezone.utc).timestamp())


def recurrence(question):
    rules = rrule.rruleset()
    rule = rrule.rrulestr(question["rule"], dtstart=parse(question["start"]))
    if "UNTIL" not in question["rule"]:
        # A rule that never fires would be followed to the year 9999.
        rule = rule.replace(until=parse(question["to"]) + timedelta(days=3))
    rules.rrule(rule)
    for excluded in question["except"]:
        rules.exdate(parse(excluded))
    return rules


def cron(question):
    """The two day fields are two rules where both restrict."""
    common = {
        "dtstart": parse(question["from"]) - timedelta(days=3),
        "bymonth": question["months"] or None,
        "byhour": question["hours"],
        "byminute": question["minutes"],
        "bysecond": 0,
    }
    month_days = question["month_days"]
    # Cron's week begins with Sunday as 0, dateutil's with Monday as 0.
    weekdays = [(day + 6) % 7 for day in question["weekdays"]]
    rules = rrule.rruleset()
    if month_days or not weekdays:
        rules.rrule(rrule.rrule(rrule.DAILY, bymonthday=month_days or None, **common))
    if weekdays:
        rules.rrule(rrule.rrule(rrule.DAILY, byweekday=weekdays, **common))
    return rules


def starts(question, rules):
    zone = ZONES.get(question["zone"])
    low, high = parse(question["from"]), parse(question["to"])
    found = {
        instant(local, zone)
        for local in rules.between(low - timedelta(days=2), high + timedelta(days=2), inc=True)
    }
    low = int(low.replace(tzinfo=timezone.utc).timestamp())
    high = int(high.replace(tzinfo=timezone.utc).timestamp())
    return sorted(start for start in found if low <= start < high)


def nth_weekday(question):
    """The n-th weekday of a month, in each of the years, as seconds since 1970."""
    zone = ZONES.get(question["zone"])
    weekday = WEEKDAYS[question["weekday"]]
    week = question["week"]
    days = []
    for year in question["years"]:
        day = datetime(year, question["month"], 1)
        if week > 0:
            day += relativedelta.relativedelta(weekday=weekday(week))
        else:
            day += relativedelta.relativedelta(day=31, weekday=weekday(week))
        days.append(instant(day.replace(hour=12), zone))
    return days


def answer(question):
    kind = question["kind"]
    if kind == "rrule":
        return starts(question, recurrence(question))
    if kind == "cron":
        return starts(question, cron(question))
    if kind == "nth_weekday":
        return nth_weekday(question)
    raise ValueError(kind)


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
