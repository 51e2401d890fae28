"""When something is due: delays, dates, cron expressions."""

import math
import random
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from perdure import ConfigurationError, Retry
from perdure.agent.schedules import delay_ms, moment_ms, next_cron_ms

BERLIN = ZoneInfo("Europe/Berlin")


def ms(*date: int, tz: timezone | ZoneInfo = UTC, fold: int = 0) -> int:
    return round(datetime(*date, tzinfo=tz, fold=fold).timestamp() * 1000)  # type: ignore[arg-type,misc]


def following(expression: str, after: int, tz: str = "UTC", count: int = 3) -> list[str]:
    """The next times, in that zone."""
    found: list[str] = []
    for _ in range(count):
        after = next_cron_ms(expression, tz, after)
        found.append(datetime.fromtimestamp(after / 1000, ZoneInfo(tz)).strftime("%Y-%m-%d %H:%M:%S%z"))
    return found


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        ("*/20 * * * *", ["2027-01-31 23:40:00+0000", "2027-02-01 00:00:00+0000", "2027-02-01 00:20:00+0000"]),
        ("15 */30 * * * *", ["2027-01-31 23:30:15+0000", "2027-02-01 00:00:15+0000", "2027-02-01 00:30:15+0000"]),
        ("0 9 * * MON", ["2027-02-01 09:00:00+0000", "2027-02-08 09:00:00+0000", "2027-02-15 09:00:00+0000"]),
        ("0 0 29 2 *", ["2028-02-29 00:00:00+0000", "2032-02-29 00:00:00+0000", "2036-02-29 00:00:00+0000"]),
        ("0 12 L * *", ["2027-02-28 12:00:00+0000", "2027-03-31 12:00:00+0000", "2027-04-30 12:00:00+0000"]),
        ("@hourly", ["2027-02-01 00:00:00+0000", "2027-02-01 01:00:00+0000", "2027-02-01 02:00:00+0000"]),
        (" @Daily ", ["2027-02-01 00:00:00+0000", "2027-02-02 00:00:00+0000", "2027-02-03 00:00:00+0000"]),
        ("@weekly", ["2027-02-07 00:00:00+0000", "2027-02-14 00:00:00+0000", "2027-02-21 00:00:00+0000"]),
        ("@monthly", ["2027-02-01 00:00:00+0000", "2027-03-01 00:00:00+0000", "2027-04-01 00:00:00+0000"]),
        ("@yearly", ["2028-01-01 00:00:00+0000", "2029-01-01 00:00:00+0000", "2030-01-01 00:00:00+0000"]),
    ],
)
def test_a_cron_expression_comes_at_these_times(expression: str, times: list[str]) -> None:
    assert following(expression, ms(2027, 1, 31, 23, 29, 30)) == times


def test_what_is_due_now_comes_next_time() -> None:
    assert next_cron_ms("0 * * * *", "UTC", ms(2027, 1, 1, 5)) == ms(2027, 1, 1, 6)
    assert next_cron_ms("0 * * * *", "UTC", ms(2027, 1, 1, 5) - 1) == ms(2027, 1, 1, 5)


def test_a_time_that_is_left_out_in_spring_comes_once_right_after_the_gap() -> None:
    assert following("30 2 * * *", ms(2027, 3, 27, 12, tz=BERLIN), "Europe/Berlin") == [
        "2027-03-28 03:00:00+0200",
        "2027-03-29 02:30:00+0200",
        "2027-03-30 02:30:00+0200",
    ]


def test_a_time_that_there_is_twice_in_autumn_comes_once() -> None:
    assert following("30 2 * * *", ms(2027, 10, 30, 12, tz=BERLIN), "Europe/Berlin", 2) == [
        "2027-10-31 02:30:00+0200",
        "2027-11-01 02:30:00+0100",
    ]


def test_within_the_second_of_the_two_hours_the_first_is_over() -> None:
    after = ms(2027, 10, 31, 2, 10, tz=BERLIN, fold=1)
    assert following("30 2 * * *", after, "Europe/Berlin", 1) == ["2027-11-01 02:30:00+0100"]


def test_every_quarter_of_an_hour_goes_on_through_both_hours() -> None:
    times = following("*/15 * * * *", ms(2027, 10, 31, 2, 40, tz=BERLIN), "Europe/Berlin", 6)
    assert [time[11:16] + time[19:] for time in times] == [
        "02:45+0200",
        "02:00+0100",
        "02:15+0100",
        "02:30+0100",
        "02:45+0100",
        "03:00+0100",
    ]


@pytest.mark.parametrize(
    "expression", ["", "* * * *", "* * * * * * *", "61 * * * *", "@fortnightly", "0 0 * * FOO", "x"]
)
def test_what_is_no_cron_expression_is_refused(expression: str) -> None:
    with pytest.raises(ConfigurationError, match=r"is no cron expression: .* 5 fields"):
        next_cron_ms(expression, "UTC", 0)


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_date_that_never_comes_is_refused(expression: str) -> None:
    with pytest.raises(ConfigurationError, match=r"never comes|is no cron expression"):
        next_cron_ms(expression, "UTC", 0)


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "", "../etc/passwd", "/etc/passwd", "a\x00b"])
def test_a_time_zone_that_is_not_there_is_refused(zone: str) -> None:
    with pytest.raises(ConfigurationError, match="There is no time zone"):
        next_cron_ms("@daily", zone, 0)


@pytest.mark.parametrize("delay", [-1, -0.001, math.nan, math.inf, True, "5", None, timedelta(seconds=-1)])
def test_what_is_no_delay_is_refused(delay: float) -> None:
    with pytest.raises(ConfigurationError, match="is no delay"):
        delay_ms(delay)


def test_delays_are_seconds_or_time_deltas() -> None:
    assert [delay_ms(0), delay_ms(1.5), delay_ms(timedelta(minutes=2))] == [0, 1_500, 120_000]


def test_a_date_without_a_time_zone_is_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match=r"has no time zone.*astimezone\(\)"):
        moment_ms(datetime(2027, 1, 1))
    assert moment_ms(datetime(2027, 1, 1, 1, tzinfo=BERLIN)) == ms(2027, 1, 1)


@pytest.mark.parametrize(
    "policy",
    [
        {"max_attempts": 0},
        {"max_attempts": 1.5},
        {"base_delay_ms": 0},
        {"base_delay_ms": -1},
        {"base_delay_ms": 10, "max_delay_ms": 9},
        {"base_delay_ms": math.nan},
    ],
)
def test_a_retry_policy_that_makes_no_sense_is_refused_at_once(policy: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match="Retry"):
        Retry(**policy)  # type: ignore[arg-type]


def test_the_pause_grows_with_the_failures_up_to_its_cap_and_is_anything_below() -> None:
    rng = random.Random(3)
    for failures, longest in [(1, 0.2), (2, 0.4), (3, 0.8), (4, 1.6), (5, 3.0), (6, 3.0), (5_000, 3.0)]:
        delays = [Retry().delay(failures, rng) for _ in range(400)]
        assert 0 <= min(delays) < longest * 0.05
        assert longest * 0.95 < max(delays) <= longest
