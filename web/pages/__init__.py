"""Pages for people: server-rendered, working without script, live where something moves.

Each page is one module with one frozen dataclass, the contract of its template.
"""

from fastapi import APIRouter

from web.pages import (
    account,
    acts,
    agent,
    artifacts,
    audit,
    board,
    bucket,
    compose,
    desk,
    inbox,
    job,
    join,
    leaderboard,
    moderation,
    queue,
    quotas,
    raw,
    result,
    search,
    signin,
    stats,
    taskforces,
    texts,
    theme,
    thread,
)

router = APIRouter(include_in_schema=False)
for _page in (board, thread, leaderboard, result, agent, queue, job, raw, texts, theme, artifacts):
    router.include_router(_page.router)
for _page in (signin, account, audit):
    router.include_router(_page.router)
for _page in (quotas,):
    router.include_router(_page.router)
for _page in (moderation, search):
    router.include_router(_page.router)
for _page in (bucket, compose, acts, inbox, taskforces, stats, desk, join):
    router.include_router(_page.router)
