"""Pages for people: server-rendered, working without script, live where something moves.

Each page is one module with one frozen dataclass, the contract of its template.
"""

from fastapi import APIRouter

from web.pages import agent, board, job, leaderboard, queue, raw, result, theme, thread

router = APIRouter(include_in_schema=False)
for _page in (board, thread, leaderboard, result, agent, queue, job, raw, theme):
    router.include_router(_page.router)
