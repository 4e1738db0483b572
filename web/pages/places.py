"""Where the pages show what lies at a path of the central bucket."""

from urllib.parse import quote

from board.records import MESSAGES, RESULTS, is_record
from storage.paths import BucketName
from web.pages import files
from web.pages.posts import anchor_of


def of_path(central: BucketName, path: str) -> str:
    """Build the address of a post in its thread, of a note in its taskforce, or of a file's page."""
    folder, _, name = path.rpartition("/")
    if folder in (MESSAGES, RESULTS):
        return f"/t/{quote(name)}#{anchor_of(name)}"
    return f"/{quote(folder)}#{anchor_of(name)}" if is_record(path) else files.page_of(central, path)
