"""Serve a data folder as `paddock serve` does, without worker or ticks; prints the port it listens on."""

import socket
import sys
from pathlib import Path

from storage.settings import Settings
from storage.site import open_site
from web.serving import Server, server_config

if __name__ == "__main__":
    data, challenge = map(Path, sys.argv[1:3])
    site = open_site(Settings(data=data, challenge=challenge))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        Server(server_config(site)).run(sockets=[listener])
