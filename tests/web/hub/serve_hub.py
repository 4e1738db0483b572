"""Serve the Hub's routes alone, as a process of its own: `serve_hub.py DATA CHALLENGE PORT`."""

import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI

import web.errors
from storage.settings import Settings
from storage.site import Site, open_site
from web.hub import router


def hub_app(site: Site) -> FastAPI:
    """Build an application of nothing but the Hub's routes."""
    app = FastAPI()
    app.state.site = site
    web.errors.install(app)
    app.include_router(router)
    return app


if __name__ == "__main__":
    data, challenge, port = sys.argv[1:]
    opened = open_site(Settings(data=Path(data), challenge=Path(challenge)))
    uvicorn.run(hub_app(opened), host="127.0.0.1", port=int(port), log_level="warning")
