"""Serve the Hub's routes, verifying few files of a shard at once: `serve_frugal.py DATA CHALLENGE PORT LOG MOST`."""

import sys
from pathlib import Path

import uvicorn

from storage.local import effort
from storage.settings import Settings
from storage.site import open_site
from tests.web.hub.serve_counted import Counted
from tests.web.hub.serve_hub import hub_app

if __name__ == "__main__":
    data, challenge, port, log, most = sys.argv[1:]
    effort.MOST = int(most)
    opened = open_site(Settings(data=Path(data), challenge=Path(challenge)))
    uvicorn.run(Counted(hub_app(opened), Path(log)), host="127.0.0.1", port=int(port), log_level="warning")
