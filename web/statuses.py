"""One table from kinds of failure to HTTP statuses. It stands alone: pages, the Hub's routes, `web.errors` read it."""

from storage import errors

STATUS: dict[type[errors.PaddockError], int] = {
    errors.Invalid: 400,
    errors.Malformed: 422,
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.PreconditionFailed: 412,
    errors.TooLarge: 413,
    errors.TooMany: 429,
    errors.Unavailable: 503,
    errors.BadGateway: 502,
    errors.Full: 507,
    errors.Corrupt: 500,
    errors.PaddockError: 500,
}


def status_of(error: errors.PaddockError) -> int:
    """Find the HTTP status of a failure by its kind."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
