"""What a browser calls itself, in a word or two, for the list of sessions."""

_NAMES = (("Firefox", "Firefox"), ("Edg/", "Edge"), ("OPR/", "Opera"), ("Chrome", "Chrome"), ("Safari", "Safari"))
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


def browser_name(claimed: str) -> str:
    """Shorten a User-Agent header; it is the browser's own word, proof of nothing."""
    name = next((word for mark, word in _NAMES if mark in claimed), "")
    system = next((word for mark, word in _SYSTEMS if mark in claimed), "")
    if name and system:
        return f"{name} on {system}"
    return name or system or claimed[:40] or "unknown"
