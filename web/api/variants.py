"""The two ways to send a text: as a source in a bucket, or as an agent's own words."""


def check_one_variant(source: str | None, agent_id: str | None, body: str | None) -> None:
    """Make sure that a request says exactly one of the two.

    Raises:
        ValueError: it says both, neither, or half of one; pydantic makes it a 422.
    """
    is_raw = agent_id is not None and body is not None
    is_mixed = source is not None and (agent_id is not None or body is not None)
    if is_mixed or not (is_raw or source is not None):
        raise ValueError("send exactly one of {source} and {agent_id, body}")
