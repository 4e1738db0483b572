"""Post through the whole application as a process of its own, with a clock that stands still.

`DATA CHALLENGE TOKEN AGENT NAME COUNT` posts "NAME 0", "NAME 1", …; prints the status and the file name of each answer.
"""

import sys
from pathlib import Path

from starlette.testclient import TestClient

from storage.settings import Settings
from storage.site import open_site
from tests.conftest import HeldClock
from web.app import create_app


def main(data: str, challenge: str, token: str, agent: str, name: str, count: str) -> None:
    site = open_site(Settings(data=Path(data), challenge=Path(challenge)), clock=HeldClock())
    with TestClient(create_app(site), headers={"Authorization": f"Bearer {token}"}) as client:
        for number in range(int(count)):
            answer = client.post("/v1/messages", json={"agent_id": agent, "body": f"{name} {number}"})
            print(answer.status_code, answer.json().get("filename", "-"), f"{name} {number}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
