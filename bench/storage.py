"""Measure the store through the real client and a real `paddock serve --no-worker`; each ratio is of one run.

    nice .venv/bin/python bench/storage.py transfer|reupload|small|listing [--folder FOLDER] [--bytes 1000000000]
                                           [--scale 0.1] [--files N]

Prints a line for each figure with its goal beside it, the load of the machine, and what the server took. `reupload`
needs four times the checkpoint (9.2 GB at scale 1), `transfer` six times its bytes; everything is removed.
"""

import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from counting_proxy import CountingProxy
from e4b_checkpoint import make_checkpoint
from served import HERE, Bench, Watched, bench, figure, noise

from storage.buckets import Change, Copy, Put
from storage.database import writing
from storage.paths import parse_bucket
from storage.settings import Settings
from storage.site import open_site

HF = Path(sys.executable).with_name("hf")
DROPPED = "2,3,4,36,37"
SMALL_BYTES = 2000
AT_ONCE = 5000
_LAYER = re.compile(r"\.layers\.\d+\.")


def main() -> int:
    """Do what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description="Measure the store.")
    parser.add_argument("what", choices=MEASUREMENTS)
    parser.add_argument("--folder", type=Path, help="where to work (default: the temporary folder)")
    parser.add_argument("--bytes", type=int, default=1_000_000_000, help="size of the file to transfer")
    parser.add_argument("--scale", type=float, default=0.1, help="size of the checkpoint: 1 is 9.2 GB")
    parser.add_argument("--files", type=int, help="how many files (default: 10,000 small ones, 100,000 listed)")
    options = parser.parse_args()
    with bench(options.folder) as made:
        print(f"load {os.getloadavg()[0]:.1f} at the start, {os.cpu_count()} cores")
        server = Watched(made.race, is_memory_new=True)
        MEASUREMENTS[options.what](made, options)
        server.report()
    print(f"load {os.getloadavg()[0]:.1f} at the end")
    return 0


def transfer(made: Bench, options: argparse.Namespace) -> None:
    """Move random bytes up and down through the server, and the same bytes through the client's own local store."""
    file, down = made.folder / "file", made.folder / "down"
    noise(file, options.bytes, "transfer")
    local, remote = f"local://{made.folder / 'local'}", made.agent.bucket
    server = Watched(made.race)
    theirs = made.transfer("up", "local-up", local, file)
    ours = made.transfer("up", "our-up", remote, file)
    report("upload", options.bytes, ours, theirs, server.cpu_s())
    server = Watched(made.race)
    theirs_down = made.transfer("down", "local-down", local, down, theirs["hash"], theirs["size"])
    same(file, down)
    ours_down = made.transfer("down", "our-down", remote, down)
    same(file, down)
    report("download", options.bytes, ours_down, theirs_down, server.cpu_s())


def report(way: str, size: int, ours: dict[str, Any], theirs: dict[str, Any], server_s: float) -> None:
    """Print the speed of both and their ratio; on a busy machine the seconds of CPU say more."""
    figure(f"{way}, local://", size / theirs["seconds"] / 1e6, "MB/s")
    figure(f"{way}, our server", size / ours["seconds"] / 1e6, "MB/s")
    figure(f"{way}, our speed ÷ that of local://", theirs["seconds"] / ours["seconds"], "", ">= 0.7")
    figure(f"{way}, CPU of the client with local://", theirs["cpu_s"], "s")
    figure(f"{way}, CPU of the client with our server", ours["cpu_s"], "s")
    figure(f"{way}, CPU of our server", server_s, "s")


def reupload(made: Bench, options: argparse.Namespace) -> None:
    """Upload a checkpoint, drop layers, and upload what is left of it, as the agent does who made both."""
    first, second = made.folder / "in", made.folder / "out"
    size = make_checkpoint(first, options.scale)
    seconds, _ = made.timed([HF, "buckets", "sync", first, made.uri("in")], "home")
    print(f"first upload: {size / 1e9:.3f} GB in {seconds:.1f} s")
    bake = [sys.executable, "-m", "paddock_stack.cli", "bake", "drop-layers", first, second, "--layers", DROPPED]
    subprocess.run(
        [*map(str, bake)], env=os.environ | {"PYTHONPATH": str(HERE.parent / "runner/stack/src")}, check=True
    )
    left = sum(path.stat().st_size for path in second.iterdir())
    cut = changed_bytes(first, second)
    before = stored_bytes(made)
    with CountingProxy(made.race.port).running() as proxy:
        seconds, _ = made.timed([HF, "buckets", "sync", second, made.uri("out")], "home", proxy.url)
    print(f"after dropping layers {DROPPED}: {left / 1e9:.3f} GB, of which {cut / 1e9:.3f} GB are new; {seconds:.1f} s")
    new = stored_bytes(made) - before
    figure("bytes that the slice changed ÷ size", 100 * cut / left, "%")
    figure("bytes of chunks that had to be sent ÷ size", 100 * new / left, "%")
    figure("those beyond what the slice changed ÷ size", 100 * (new - cut) / left, "%", "< 3")
    figure("bytes on the wire, packed, requests and all ÷ size", 100 * proxy.sent / left, "%")


def stored_bytes(made: Bench) -> int:
    """Ask how many bytes of different chunks, unpacked, the bucket holds."""
    return int(made.agent.call("GET", f"/api/buckets/{made.agent.bucket}").json()["storedBytes"])


def changed_bytes(first: Path, second: Path) -> int:
    """Add up the tensors that the slice wrote anew: those beside the layers whose shape is no longer what it was."""
    before = {name: shape for file in first.glob("*.safetensors") for name, shape, _ in tensors(file)}
    after = [entry for file in second.glob("*.safetensors") for entry in tensors(file)]
    return sum(size for name, shape, size in after if not _LAYER.search(name) and shape != before[name])


def tensors(file: Path) -> Iterator[tuple[str, list[int], int]]:
    """Yield name, shape and size in bytes of every tensor of a safetensors file."""
    with file.open("rb") as stream:
        header = json.loads(stream.read(*struct.unpack("<Q", stream.read(8))))
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            yield name, entry["shape"], end - start


def small(made: Bench, options: argparse.Namespace) -> None:
    """Sync a folder of small files both ways, and copy the same with rsync."""
    count = options.files or 10_000
    here, there, copied = (made.folder / name for name in ("here", "there", "copied"))
    for number in range(count):
        noise(here / f"{number % 100:02}" / f"{number:05}", SMALL_BYTES, number)
    up_s, _ = made.timed([HF, "buckets", "sync", here, made.uri("small"), "-q"], "up")
    down_s, _ = made.timed([HF, "buckets", "sync", made.uri("small"), there, "-q"], "down")
    subprocess.run(["diff", "-r", str(here), str(there)], check=True)
    figure(f"sync of {count} files of 2 KB, up", up_s, "s")
    figure(f"sync of {count} files of 2 KB, down", down_s, "s")
    if shutil.which("rsync") is None:
        print("rsync: NOT RUN, it is not installed (package rsync)")
        return
    rsync_s, _ = made.timed(["rsync", "-a", f"{here}/", f"{copied}/"], "rsync")
    figure("rsync -a of the same on one disk", rsync_s, "s")
    figure("sync up ÷ rsync", up_s / rsync_s, "")
    figure("sync down ÷ rsync", down_s / rsync_s, "")


def listing(made: Bench, options: argparse.Namespace) -> None:
    """Fill a bucket by the server's own writes and list it."""
    count = options.files or 100_000
    fill(made, count)
    seconds, told = made.timed([HF, "buckets", "list", made.agent.bucket, "-R", "-q"], "list")
    assert len(told.splitlines()) >= count
    figure(f"hf buckets list -R of {count} files", seconds, "s")
    url, pages, began = f"/api/buckets/{made.agent.bucket}/tree?recursive=true", 0, time.perf_counter()
    while url:
        answer = made.agent.call("GET", url)
        url = answer.links.get("next", {}).get("url", "").removeprefix(made.race.url)
        pages += 1
    figure(f"the same by HTTP alone, {pages} pages", time.perf_counter() - began, "s")


def fill(made: Bench, count: int) -> None:
    """Copy one file many times, in the same way as the server takes whole runs and submissions over."""
    site = open_site(Settings(data=made.race.data, challenge=made.race.folder / "challenge.toml"))
    bucket, source = parse_bucket(made.agent.bucket), parse_bucket("race/tiny-source")
    with writing(site.engine) as session:
        site.buckets(session).create(source, owner=made.agent.user)
        site.buckets(session).apply(source, [Put("one.txt", b"one of many")])
    began = time.perf_counter()
    for start in range(0, count, AT_ONCE):
        names = [f"many/{number // 1000:03}/{number:06}.txt" for number in range(start, min(count, start + AT_ONCE))]
        changes: list[Change] = [Copy(name, source, "one.txt") for name in names]
        with writing(site.engine) as session:
            site.buckets(session).apply(bucket, changes)
    site.engine.dispose()
    figure(f"filling in {count} files by apply", time.perf_counter() - began, "s")


def same(first: Path, second: Path) -> None:
    """Make sure that two files hold the same bytes, and remove the second."""
    subprocess.run(["cmp", str(first), str(second)], check=True)
    second.unlink()


MEASUREMENTS: dict[str, Callable[[Bench, argparse.Namespace], None]] = {
    "transfer": transfer,
    "reupload": reupload,
    "small": small,
    "listing": listing,
}

if __name__ == "__main__":
    sys.exit(main())
