"""Send or fetch one file through hf_xet in a process of its own, and print the seconds and the seconds of CPU as JSON.

    python bench/xet_transfer.py up|down ADDRESS FILE [HASH SIZE]

ADDRESS is a bucket's (`race/tiny-a1`; the server is `HF_ENDPOINT`), where the file is `big`, or hf_xet's own store on
the disk (`local:///folder`), which keeps no names and is asked by HASH and SIZE. Starting Python isn't timed.
"""

import json
import sys
import time

from hf_xet import SKIP_SHA256, XetFileInfo, XetSession
from huggingface_hub import HfApi


def main(way: str, address: str, file: str, *content: str) -> None:
    """Transfer and print."""
    transfer = {"up": _up, "down": _down}[way]
    began, cpu_began = time.perf_counter(), time.process_time()
    told = transfer(address, file, *content)
    print(json.dumps(told | {"seconds": time.perf_counter() - began, "cpu_s": time.process_time() - cpu_began}))


def _up(address: str, file: str) -> dict[str, str | int]:
    if not address.startswith("local://"):
        HfApi().batch_bucket_files(address, add=[(file, "big")])
        return {}
    with XetSession().new_upload_commit(endpoint=address) as commit:
        handle = commit.start_upload_file(file, sha256=SKIP_SHA256)
    content = handle.result().xet_info
    return {"hash": content.hash, "size": content.file_size}


def _down(address: str, file: str, *content: str) -> dict[str, str | int]:
    if not address.startswith("local://"):
        HfApi().download_bucket_files(address, [("big", file)], raise_on_missing_files=True)
        return {}
    digest, size = content
    with XetSession().new_file_download_group(endpoint=address) as group:
        group.start_download_file(XetFileInfo(digest, int(size)), file)
    return {}


if __name__ == "__main__":
    main(*sys.argv[1:])
