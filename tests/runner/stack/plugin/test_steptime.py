"""The probe's statistics, its clocks and what it may cost."""

import json
from itertools import cycle
from pathlib import Path

import pytest

from paddock_stack.steptime.allowance import MOST_S, SHARE, Allowance
from paddock_stack.steptime.clocks import CudaClock, HostClock
from paddock_stack.steptime.probe import SETTLE_AT, Probe
from paddock_stack.steptime.series import WINDOW, Series, percentile


@pytest.mark.parametrize(
    ("values", "percent", "meant"),
    [
        ([], 50, None),
        ([7.0], 1, 7.0),
        ([1.0, 2.0, 3.0, 4.0], 50, 2.0),
        ([1.0, 2.0, 3.0, 4.0], 75, 3.0),
        ([1.0, 2.0, 3.0, 4.0], 76, 4.0),
        ([float(each) for each in range(1, 101)], 99, 99.0),
        ([float(each) for each in range(1, 101)], 100, 100.0),
    ],
)
def test_percentile_is_the_nearest_rank(values: list[float], percent: float, meant: float | None) -> None:
    assert percentile(values, percent) == meant


def test_mean_and_maximum_are_over_all_and_percentiles_over_the_last() -> None:
    series = Series()
    series.add(1000.0)
    for _ in range(WINDOW):
        series.add(1.0)
    told = series.told()
    assert (told["count"], told["max_ms"], told["p99_ms"]) == (WINDOW + 1, 1000.0, 1.0)
    assert told["mean_ms"] == pytest.approx((1000 + WINDOW) / (WINDOW + 1))
    assert Series().told()["mean_ms"] is None


class FakeCuda:
    """A device whose stream is at `now_ms`; events recorded while it captures would be taken into the graph."""

    def __init__(self) -> None:
        self.now_ms, self.queued_ms, self.capturing = 0.0, 0.0, False
        self.made = 0

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def Event(self, *, enable_timing: bool) -> "FakeEvent":
        assert enable_timing
        self.made += 1
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, device: FakeCuda) -> None:
        self.device, self.at_ms = device, 0.0

    def record(self) -> None:
        assert not self.device.capturing
        self.at_ms = self.device.queued_ms

    def query(self) -> bool:
        return self.device.now_ms >= self.at_ms

    def elapsed_time(self, end: "FakeEvent") -> float:
        return end.at_ms - self.at_ms


def test_device_spans_are_read_when_the_device_is_past_them(tmp_path: Path) -> None:
    cuda = FakeCuda()
    probe = Probe(tmp_path / "out.json", CudaClock(cuda), now_s=lambda: 0.0)

    def step(cost_ms: float) -> float:
        cuda.queued_ms += cost_ms
        return cost_ms

    timed = probe.timed("execute_model", step)
    assert timed(4.0) == 4.0
    assert probe.told()["steps"] == {}  # queued, not done
    cuda.now_ms = 4.0
    assert probe.told()["steps"]["execute_model"]["mean_ms"] == 4.0
    cuda.capturing = True
    timed(9.0)
    cuda.capturing, cuda.now_ms = False, 13.0
    timed(6.0)
    cuda.now_ms = 19.0
    assert probe.told()["steps"]["execute_model"]["count"] == 2
    probe.write()
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["clock"] == "cuda_event"
    assert told["steps"]["execute_model"]["max_ms"] == 6.0
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_events_of_a_span_that_is_told_serve_again(tmp_path: Path) -> None:
    cuda = FakeCuda()
    probe = Probe(tmp_path / "out.json", CudaClock(cuda), now_s=lambda: 0.0)

    def step() -> None:
        cuda.queued_ms += 2.0
        cuda.now_ms = cuda.queued_ms - 2.0  # the device is one step behind

    timed = probe.timed("execute_model", step)
    for _ in range(200):
        timed()
    told = probe.told()["steps"]["execute_model"]
    assert (told["count"], told["mean_ms"], told["max_ms"]) == (199, 2.0, 2.0)
    assert cuda.made == 2 * SETTLE_AT


def test_fault_of_a_step_passes_and_is_not_timed(tmp_path: Path) -> None:
    probe = Probe(tmp_path / "out.json", HostClock())

    def broken() -> None:
        raise ValueError("no such block")

    with pytest.raises(ValueError, match="no such block"):
        probe.timed("execute_model", broken)()
    probe.write()
    assert not (tmp_path / "out.json").exists()


class DearClock:
    """The host's clock, and a device's whose marks take the host 25 µs each."""

    name = "dear"

    def __init__(self) -> None:
        self.now_s = 0.0

    def mark(self) -> float:
        self.now_s += 25e-6
        return self.now_s

    def span_ms(self, start: float, end: float) -> float:
        return (end - start) * 1000

    def step(self) -> None:
        self.now_s += 2.7e-3


def test_dear_clock_is_asked_no_more_than_the_allowance_pays_for(tmp_path: Path) -> None:
    clock = DearClock()
    probe = Probe(tmp_path / "out.json", clock, now_s=lambda: clock.now_s)
    kinds = [probe.timed(kind, clock.step) for kind in ("execute_model", "sample_tokens", "propose")]
    for _ in range(5000):
        for step in kinds:
            step()
    told = probe.told()["steps"]
    paid_s = sum(kind["paid_ms"] for kind in told.values()) / 1000
    assert paid_s < 0.01 * clock.now_s
    for kind in told.values():  # each pays from its own: none keeps another from being timed
        assert kind["calls"] == 5000
        assert kind["count"] == pytest.approx(5000 * SHARE * 2.7e-3 / 50e-6, rel=0.05)


def test_cheap_clock_times_every_call(tmp_path: Path) -> None:
    clock = DearClock()
    probe = Probe(tmp_path / "out.json", HostClock(), now_s=lambda: clock.now_s)
    step = probe.timed("execute_model", clock.step)
    for _ in range(100):
        step()
    assert probe.told()["steps"]["execute_model"]["count"] == 100


def test_cheap_calls_pay_for_no_dear_minute_after_them() -> None:
    allowance = Allowance()
    allowance.settle(took_s=3600.0)
    allowance.settle(took_s=0.0, paid_s=MOST_S + SHARE)
    allowance.settle(took_s=0.9)
    assert not allowance.has_left()
    allowance.settle(took_s=0.2)
    assert allowance.has_left()
    assert allowance.paid_s == pytest.approx(MOST_S + SHARE)


def test_first_calls_after_pauses_are_timed_no_more_than_others(tmp_path: Path) -> None:
    """They are prefills, and would make the mean that of a request's beginning."""
    clock = DearClock()
    probe = Probe(tmp_path / "out.json", clock, now_s=lambda: clock.now_s)
    durations = cycle([40e-3] + [2.7e-3] * 255)
    took: list[float] = []

    def step() -> None:
        took.append(next(durations))
        clock.now_s += took[-1]

    timed = probe.timed("execute_model", step)
    for number in range(256 * 200):
        clock.now_s += 0.5 if number % 256 == 0 else 0.0
        timed()
    told = probe.told()["steps"]["execute_model"]
    assert told["mean_ms"] == pytest.approx(1000 * sum(took) / len(took), rel=0.05)
    assert told["count"] < len(took) / 3
