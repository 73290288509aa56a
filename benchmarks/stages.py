"""Where an audit's memory and time go: the largest memory and the CPU seconds of each stage.

    python benchmarks/stages.py [--name stages] audit DATA … --out FOLDER

runs a command of tokensieve in this process and samples its resident memory every ten milliseconds.
For each stage it keeps the largest memory, what is left at its end, and the seconds of all
processors, and for the largest memory of all what each thread was doing. The table is printed and
kept in benchmarks/results/NAME.json. CPU seconds depend on what else the machine does, memory
hardly.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from types import FrameType

from machine import described, memory, store
from tokensieve.__main__ import main
from tokensieve.progress import Clock

SECONDS_BETWEEN_SAMPLES = 0.01
MAX_FRAMES = 6  # of a thread, innermost first


@dataclass
class Stage:
    """A stage of the command: gigabytes, and seconds of all processors."""

    name: str = "until the end"
    largest: float = 0.0
    left: float = 0.0
    cpu: float = 0.0


@dataclass
class Sampler:
    """Samples the memory of this process in a thread of its own until `ended`."""

    stage: Stage = field(default_factory=Stage)
    stages: list[Stage] = field(default_factory=list)
    largest: float = 0.0
    at_largest: list[list[str]] = field(default_factory=list)
    cpu_before: float = field(default_factory=time.process_time)
    ended: bool = False

    def sample(self) -> None:
        """Until the command ends."""
        own = threading.get_ident()
        while not self.ended:
            now = memory("VmRSS")
            self.stage.largest = max(self.stage.largest, now)
            if now > self.largest:
                self.largest = now
                frames = sys._current_frames()
                self.at_largest = [places_of(frames[i]) for i in frames if i != own]
            time.sleep(SECONDS_BETWEEN_SAMPLES)

    def end_stage(self, name: str) -> None:
        """What was sampled since the last stage belongs to this one."""
        cpu = time.process_time()
        self.stage.name = name
        self.stage.left = memory("VmRSS")
        self.stage.cpu = cpu - self.cpu_before
        self.cpu_before = cpu
        self.stages.append(self.stage)
        gigabytes = f"{self.stage.largest:6.2f} GB {self.stage.left:6.2f} GB"
        print(f"{name:20} {gigabytes} {self.stage.cpu:7.2f} s", flush=True)
        self.stage = Stage()


def places_of(frame: FrameType | None) -> list[str]:
    """Functions of tokensieve that a thread is in, innermost first."""
    places: list[str] = []
    while frame is not None and len(places) < MAX_FRAMES:
        _, inside, path = frame.f_code.co_filename.partition("/tokensieve/")
        if inside:
            places.append(f"{path}:{frame.f_code.co_name}")
        frame = frame.f_back
    return places


def run(arguments: list[str], name: str) -> None:
    """Run the command, print the table and keep it."""
    sampler = Sampler()
    lap = Clock.lap

    def lap_and_tell(clock: Clock, stage: str) -> None:
        sampler.end_stage(stage)
        lap(clock, stage)

    Clock.lap = lap_and_tell  # type: ignore[method-assign]
    threading.Thread(target=sampler.sample, daemon=True).start()
    own_arguments = sys.argv
    sys.argv = ["tokensieve", *arguments]
    status: object = 0
    try:
        main()
    except SystemExit as end:
        status = end.code
    sampler.end_stage("files and page")
    sampler.ended = True
    sys.argv = own_arguments
    if status not in (0, 3):
        raise SystemExit(status)  # the command said why
    figures = {
        "arguments": arguments,
        "largest": sampler.largest,
        "at_largest": [places for places in sampler.at_largest if places],
        "stages": [asdict(stage) for stage in sampler.stages],
    }
    store(name, figures, described("polars", "numba"))


if __name__ == "__main__":
    given = sys.argv[1:]
    result_name = "stages"
    if given[:1] == ["--name"]:
        result_name = given[1]
        given = given[2:]
    run(given, result_name)
