"""`python -m web` is `paddock`."""

from web.cli import main

main()
