"""The probe's statistics, its clocks and what it costs."""

import json
import time
from pathlib import Path

import pytest

from paddock_stack.steptime.clocks import CudaClock, HostClock
from paddock_stack.steptime.probe import Probe
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

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def Event(self, *, enable_timing: bool) -> "FakeEvent":
        assert enable_timing
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
    probe = Probe(tmp_path / "out.json", CudaClock(cuda))

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


def test_fault_of_a_step_passes_and_is_not_timed(tmp_path: Path) -> None:
    probe = Probe(tmp_path / "out.json", HostClock())

    def broken() -> None:
        raise ValueError("no such block")

    with pytest.raises(ValueError, match="no such block"):
        probe.timed("execute_model", broken)()
    probe.write()
    assert not (tmp_path / "out.json").exists()


def test_probe_costs_less_than_a_hundredth_of_a_step(tmp_path: Path) -> None:
    """A step is 5 ms on the fastest profile: three wrapped calls must cost less than 50 µs, the file included."""
    probe = Probe(tmp_path / "out.json", HostClock())
    timed = probe.timed("execute_model", lambda: None)
    best_s = min(_seconds_for_3000(timed) for _ in range(3))
    assert best_s / 1000 < 50e-6


def _seconds_for_3000(timed: object) -> float:
    assert callable(timed)
    started = time.process_time()
    for _ in range(3000):
        timed()
    return time.process_time() - started
