"""Sign what the store's own calls are allowed by: access tokens, and URLs of xorb bytes that need none.

A token is `base64url("bucket id|mode|token id|expiry") "." base64url(HMAC)`. The key depends on the store's
generation, so that a store that lost bytes accepts nothing from its former life.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import urlencode

from storage.errors import Forbidden, Unauthorized
from storage.xet.hashes import to_text
from storage.xet.reconstruction import Fetch

URL_LIFE = timedelta(minutes=30)


class Mode(StrEnum):
    """What a token allows."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True)
class Grant:
    """Access to one bucket until `expires_s`, in Unix seconds, by the token of that id (`""` for anybody)."""

    bucket_id: int
    mode: Mode
    token_id: str
    expires_s: int


class BadSignature(Forbidden):
    """A signed URL was altered or is too old; ask for the reconstruction again."""

    code = "BAD_SIGNATURE"


class Signer:
    """Make and check signatures of one store generation."""

    def __init__(self, secret: bytes, generation: str) -> None:
        """Derive this generation's key from the site's secret."""
        self._key = hmac.new(secret, f"xet access {generation}".encode(), hashlib.sha256).digest()

    def token(self, grant: Grant) -> str:
        """Write a grant as a bearer token."""
        text = f"{grant.bucket_id}|{grant.mode}|{grant.token_id}|{grant.expires_s}"
        return f"{_encode(text.encode())}.{self._sign('token', text)}"

    def grant(self, token: str, *, now: datetime) -> Grant:
        """Read a token back.

        Raises:
            Unauthorized: it is malformed, forged or expired.
        """
        payload, _, signature = token.partition(".")
        text = _decode(payload)
        if not hmac.compare_digest(signature.encode(), self._sign("token", text).encode()):
            raise Unauthorized("The access token is not valid.")
        bucket_id, mode, token_id, expires_s = text.split("|")
        if not (now.timestamp() < int(expires_s)):
            raise Unauthorized("The access token has expired.")
        return Grant(int(bucket_id), Mode(mode), token_id, int(expires_s))

    def query(self, fetch: Fetch, grant: Grant, *, expires_s: int) -> str:
        """Write the query string that opens exactly `fetch` to whoever holds it, while the grant's holder may read."""
        return urlencode(
            {
                "chunks": f"{fetch.chunks.start}-{fetch.chunks.end}",
                "bytes": f"{fetch.first_byte}-{fetch.last_byte}",
                "by": grant.token_id,
                "expires": expires_s,
                "signature": self._sign("url", _url_text(fetch, grant, expires_s)),
            }
        )

    def check_url(self, fetch: Fetch, grant: Grant, *, signature: str, now: datetime) -> None:
        """Check a signed URL, whose expiry stands in the grant.

        Raises:
            BadSignature: anything about it was altered, or it has expired.
        """
        expected = self._sign("url", _url_text(fetch, grant, grant.expires_s))
        if not hmac.compare_digest(signature.encode(), expected.encode()):
            raise BadSignature("The URL's signature does not match it.")
        if not (now.timestamp() < grant.expires_s):
            raise BadSignature("The URL has expired.")

    def _sign(self, purpose: str, text: str) -> str:
        return _encode(hmac.new(self._key, f"{purpose}:{text}".encode(), hashlib.sha256).digest())


def _url_text(fetch: Fetch, grant: Grant, expires_s: int) -> str:
    chunks = f"{fetch.chunks.start}|{fetch.chunks.end}|{fetch.first_byte}|{fetch.last_byte}"
    return f"{grant.bucket_id}|{to_text(fetch.xorb)}|{chunks}|{grant.token_id}|{expires_s}"


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError) as error:
        raise Unauthorized("The access token is malformed.") from error
