"""The whole application, composed here and nowhere else."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

import web.errors
from storage.site import Site
from web import pages
from web.api import agents, digest, inbox, jobs, leaderboard, me, messages, results, service
from web.docs import router as docs
from web.envelope import Envelope
from web.hub import router as hub

STATIC = Path(__file__).resolve().parent / "static"


def create_app(site: Site) -> FastAPI:
    """Build the application that serves `site`."""
    app = FastAPI(
        title=f"Paddock: {site.challenge.title}",
        description=site.challenge.description,
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    app.state.site = site
    web.errors.install(app)
    for module in (service, agents, messages, inbox, me, results, leaderboard, digest, jobs):
        app.include_router(module.router)
    app.include_router(hub)
    app.include_router(docs)
    app.include_router(pages.router)
    app.add_middleware(Envelope)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app
