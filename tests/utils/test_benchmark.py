"""Timer, Measurement and Compare."""

from __future__ import annotations

import pytest

import clew
from clew.utils.benchmark import Compare, Measurement, Timer


class Clock:
    """A clock that the statement moves."""

    now = 0.0

    def __call__(self):
        return self.now


def timer(step=1e-3, **options):
    clock = Clock()

    def work():
        clock.now += step
        seen.append(clew.get_num_threads())

    seen: list[int] = []
    return Timer("work()", globals={"work": work}, timer=clock, **options), seen


def test_measurements():
    t, seen = timer(num_threads=1, label="a", sub_label="b", description="c")
    before = clew.get_num_threads()
    m = t.timeit(50)
    assert (m.median == pytest.approx(1e-3) and m.times == m.raw_times) or len(m.times) == 1
    assert m.number_per_run == 50 and m.iqr == 0 and m.title == "a: b"
    assert set(seen) == {1} and clew.get_num_threads() == before
    assert "1.00 ms" in repr(m) and "1 run of 50, 1 thread" in repr(m)
    blocks = []
    m = t.blocked_autorange(lambda n, s: blocks.append((n, s)), min_run_time=0.05)
    assert sum(m.raw_times) >= 0.05 and len(blocks) == len(m.raw_times)
    assert m.mean == pytest.approx(1e-3)
    m = t.adaptive_autorange(min_run_time=0.02)
    assert len(m.raw_times) >= 4 and m.iqr == pytest.approx(0, abs=1e-9)


def test_statistics():
    m = Measurement(2, [2.0, 4.0, 6.0, 8.0, 100.0], stmt="x")
    assert m.times == [1.0, 2.0, 3.0, 4.0, 50.0] and m.median == 3.0 and m.mean == 12.0
    assert m.iqr == 2.0 and m.title == "x" and "5 runs of 2" in repr(m)
    both = Measurement.merge([m, Measurement(2, [6.0], stmt="x"), Measurement(3, [6.0], stmt="x")])
    assert [len(b.raw_times) for b in both] == [6, 1]
    with pytest.raises(ValueError, match="at least one"):
        Measurement(1, [])


def test_tables():
    made = [
        Measurement(1, [0.002], "add", "8x8", "old"),
        Measurement(1, [0.001], "add", "8x8", "new"),
        Measurement(1, [0.5], "add", "big", "old"),
    ]
    table = Compare(made[:2])
    table.extend_results(made[2:])
    lines = str(table).split("\n")
    assert [c.strip() for c in lines[0].split("|")] == ["", "old", "new"]
    assert [c.strip() for c in lines[2].split("|")] == ["add 8x8 (1 threads)", "2", "1"]
    assert [c.strip() for c in lines[3].split("|")] == ["add big (1 threads)", "500", ""]
    assert lines[-1] == "Times are medians in ms." and str(Compare([])) == ""


def test_refusals_and_scope():
    assert Timer("clew.ones(1)").timeit(3).number_per_run == 3
    assert Timer("y + 1", setup="y = 2").timeit(2).median > 0
    for options in ({"stmt": len}, {"language": "cpp"}, {"global_setup": "#include <x>"}):
        with pytest.raises(ValueError, match="Timer"):
            Timer(**options)
    for name in ("repeat", "autorange", "collect_callgrind"):
        with pytest.raises(NotImplementedError):
            getattr(Timer(), name)()
    with pytest.raises(NameError):
        Timer("nothing_of_the_kind").timeit(1)
