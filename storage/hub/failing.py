"""Say in our own kinds of failure what the Hub's client raises."""

from collections.abc import Iterator
from contextlib import contextmanager

from httpx2 import HTTPError
from huggingface_hub.errors import BucketBatchError, BucketNotFoundError, HfHubHTTPError

from storage.buckets import BucketExists, BucketNotFound
from storage.errors import Conflict, PaddockError, Unavailable
from storage.paths import BucketName


class HubUnavailable(Unavailable):
    """The Hub can't be reached, is busy, or doesn't take our token."""

    code = "HUB_UNAVAILABLE"


class ChangeRefused(Conflict):
    """The Hub made none of the changes, and said why."""

    code = "CHANGE_REFUSED"


class HalfApplied(Unavailable):
    """The Hub made some changes of a batch and not others; the bucket holds the ones that it made."""

    code = "HALF_APPLIED"


@contextmanager
def asking(name: BucketName, *, changes: int = 0) -> Iterator[None]:
    """Translate what goes wrong within the block, which asks about one bucket or makes `changes` to it.

    Raises:
        BucketNotFound, BucketExists, ChangeRefused, HalfApplied, HubUnavailable: in place of the client's own errors.
    """
    try:
        yield
    except FileNotFoundError:
        raise  # a local file that was to be uploaded: not the Hub's doing
    except (HTTPError, OSError, RuntimeError) as error:  # hf_xet, which moves the bytes, raises the last one
        raise _translated(error, name, changes) from error


def _translated(error: Exception, name: BucketName, changes: int) -> PaddockError:
    if isinstance(error, BucketNotFoundError):
        return BucketNotFound(f"There is no bucket {name}.")
    if isinstance(error, BucketBatchError):
        return _refused(error, changes)
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
    if status == 409:
        return BucketExists(f"The bucket {name} exists already.")
    if status in (401, 403):
        return HubUnavailable(f"The Hub does not let this server use the bucket {name}.", hint="Check its token.")
    return HubUnavailable(f"The Hub did not do what was asked of {name}: {type(error).__name__}.")


def _refused(error: BucketBatchError, changes: int) -> PaddockError:
    reasons = "; ".join(f"{failure['path']}: {failure['error']}" for failure in error.failures[:5])
    if len(error.failures) < changes:
        return HalfApplied(f"The Hub left out {len(error.failures)} of {changes} changes: {reasons}.")
    return ChangeRefused(f"The Hub refused: {reasons}.")
