"""The harness: measures one model server from outside and believes nothing that it says.

It imports nothing of ours, so that anyone can audit it and run it beside a server:

    python -m runner.harness run --spec spec.json --out FOLDER
"""

VERSION = "1"
