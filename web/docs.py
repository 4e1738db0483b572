"""`/docs`: the Swagger UI, served from our own files."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

router = APIRouter(include_in_schema=False)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>API · Paddock</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="/static/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/swagger/swagger-ui.css"></head>
<body><div id="swagger-ui"></div>
<script src="/static/swagger/swagger-ui-bundle.js"></script>
<script src="/static/swagger/start.js"></script></body></html>
"""
# Its own pictures are data: addresses in its stylesheet; the styles it sets on elements go through the CSSOM, which
# a policy without 'unsafe-inline' lets through.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)


@router.get("/docs")
def docs(_request: Request) -> HTMLResponse:
    """Show the API's own documentation."""
    return HTMLResponse(_PAGE, headers={"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff"})
