"""Put contents into one bucket, one batch each, as a process of its own: `DATA CHALLENGE DIGEST…`; print how many."""

import sys
from pathlib import Path

from storage.database import writing
from storage.local.adoption import Add, apply_each
from storage.local.buckets import LocalBuckets
from storage.paths import BucketName
from storage.quota_limits import ByteLimits
from storage.settings import Settings
from storage.site import Site, open_site

BUCKET = BucketName("race", "tiny-a1")
LIMITS = ByteLimits(size=100_000)


def place(site: Site, digest: str) -> bool:
    with writing(site.engine) as session:
        store = LocalBuckets(session, site.blobs)
        line = Add(digest, digest, 0, None)
        refused = apply_each(store, BUCKET, [line], may_read=lambda _: True, limits_of=lambda _: LIMITS)
    return not refused


if __name__ == "__main__":
    data, challenge, *digests = sys.argv[1:]
    opened = open_site(Settings(data=Path(data), challenge=Path(challenge)))
    print(sum(place(opened, digest) for digest in digests))
