"""Keep a bucket from vanishing under whoever writes it.

On PostgreSQL it may be deleted between a look at it and a write; SQLite's writing transaction is alone anyway.
Everybody takes locks in one order, so that no two wait for each other: the bucket's row, its owner's meter, xorbs,
contents.
"""

from sqlmodel import Session, select

from storage.buckets import BucketNotFound
from storage.local.rows import BucketRow


def pin(session: Session, bucket_id: int, *, alone: bool) -> str:
    """Make sure that a bucket stays until the transaction ends, and return its owner.

    Whoever changes its files does so `alone`; uploads beside that don't wait.

    Raises:
        BucketNotFound: it is gone.
    """
    asked = select(BucketRow.owner).where(BucketRow.id == bucket_id)
    owner = session.exec(asked.with_for_update(read=not alone, key_share=True)).first()
    if owner is None:
        raise BucketNotFound("This bucket was deleted just now.")
    return owner
