"""Speak the Hub's bucket protocol and that of the Xet store behind it, as the unmodified `hf` client does."""

from fastapi import APIRouter

from web.hub import batches, buckets, downloads, files, tokens, trees, uploads, whoami

router = APIRouter()
for _part in (whoami, buckets, trees, batches, files, tokens, uploads, downloads):
    router.include_router(_part.router)
