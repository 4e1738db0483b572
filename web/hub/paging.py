"""Point to the next page of a listing, in the query parameters of the request itself."""

from urllib.parse import quote, urlencode

from fastapi import Request

from web.deps import origin


def next_link(request: Request, cursor: str) -> str:
    """Write the Link header that leads to what comes behind `cursor`."""
    query = [(key, value) for key, value in request.query_params.multi_items() if key != "cursor"]
    url = f"{origin(request)}{quote(request.url.path)}?{urlencode([*query, ('cursor', cursor)])}"
    return f'<{url}>; rel="next"'
