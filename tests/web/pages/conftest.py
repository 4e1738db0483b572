"""A small race with every state in it, written as rows and files, and a client that reads its pages."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI, Request
from fastapi.staticfiles import StaticFiles
from fastapi.testclient import TestClient

from storage.database import writing
from storage.errors import PaddockError
from storage.site import Site
from tests.web.pages.race import fill
from web.api import events
from web.pages import router
from web.pages.failure import failure_page
from web.pages.frame import STATIC
from web.statuses import status_of


def make_app(site: Site) -> FastAPI:
    app = FastAPI()
    app.state.site = site
    app.state.live = events.watch_of(site)
    app.include_router(router)
    app.include_router(events.router)
    app.mount("/static", StaticFiles(directory=STATIC))

    @app.exception_handler(PaddockError)
    def fail(request: Request, error: PaddockError) -> object:
        page = failure_page(request, status_of(error), error.code, error.message, error.hint)
        assert page is not None, "the tests ask as browsers do"
        return page

    return app


@pytest.fixture
def client(site: Site) -> Iterator[TestClient]:
    """A browser on an empty site."""
    with TestClient(make_app(site), headers={"accept": "text/html"}) as opened:
        yield opened


@pytest.fixture
def full(site: Site) -> Site:
    """The site with a race in it."""
    with writing(site.engine) as session:
        fill(site, session)
    return site
