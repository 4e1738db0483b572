"""The whole application, composed here and nowhere else."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

import web.errors
from storage.site import Site
from web import pages
from web.api import (
    agents,
    audit,
    digest,
    events,
    feeds,
    inbox,
    jobs,
    leaderboard,
    me,
    messages,
    moderation,
    people,
    quotas,
    results,
    search,
    service,
    stats,
    syncs,
    taskforces,
    threads,
    tokens,
    traces,
)
from web.docs import router as docs
from web.envelope import Envelope
from web.hosts import KnownHosts
from web.hub import router as hub
from web.mcp.endpoint import router as mcp
from web.openapi import DescribedApp
from web.proxies import Proxies

STATIC = Path(__file__).resolve().parent / "static"


def create_app(site: Site) -> FastAPI:
    """Build the application that serves `site`."""
    app = DescribedApp(
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
    for module in (tokens, people, audit):
        app.include_router(module.router)
    for module in (taskforces, traces, stats, syncs):
        app.include_router(module.router)
    app.state.live = events.watch_of(site)
    for module in (threads, moderation, search, events, feeds):
        app.include_router(module.router)
    app.include_router(quotas.router)
    app.include_router(hub)
    app.include_router(mcp)
    app.include_router(docs)
    app.include_router(pages.router)
    app.add_middleware(Envelope)
    app.add_middleware(KnownHosts, settings=site.settings)
    app.add_middleware(Proxies, trusted=site.settings.proxy_networks)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app
