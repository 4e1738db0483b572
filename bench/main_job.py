"""What the line costs beside what it measures: queueing, snapshot, install, start and collection of a benchmark.

    .venv/bin/python bench/main_job.py [RUNS]

Runs a fake submission that answers after a fixed delay (so that the server's own start is as short as it gets)
through a real `paddock serve` with the real `hf` binary. Prints each stage's seconds, the seconds of the harness's
own timed block, and all stages but measuring as a ratio to measuring.
"""

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


from tests.e2e.race import lay_out

STAGES = ("queue", "snapshot", "install", "start", "measure", "stop", "collect")


def main(runs: int) -> None:
    """Run and print."""
    with tempfile.TemporaryDirectory() as folder:
        race = lay_out(Path(folder) / "race")
        race.start()
        try:
            agent = race.agent("ada", "blue-heron")
            agent.join()
            prefix = agent.upload("fixed_delay")
            jobs = [agent.finished(agent.run(prefix, f"runs/{number}")) for number in range(runs)]
        finally:
            race.stop()
    print(f"{'stage':<10} {'median s':>9} {'max s':>9}")
    for stage in STAGES:
        seconds = [job["times"][stage] for job in jobs]
        print(f"{stage:<10} {statistics.median(seconds):9.3f} {max(seconds):9.3f}")
    overhead = [sum(job["times"][stage] for stage in STAGES if stage != "measure") for job in jobs]
    measured = [job["times"]["measure"] for job in jobs]
    timed = [job["summary"]["duration_s"] for job in jobs]
    print(f"{'timed block':<11} {statistics.median(timed):8.3f} {max(timed):9.3f}  (by the harness's own clock)")
    print(f"line ÷ measure: {statistics.median(overhead) / statistics.median(measured):.3f} (n = {runs})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
