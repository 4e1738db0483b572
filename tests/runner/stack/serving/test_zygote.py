"""A task's fault is the caller's to read, and costs no later task its answer."""

import pytest

from tests.runner.stack.serving.zygote import TaskFailed, Zygote

pytestmark = pytest.mark.vllm


def test_every_task_is_a_fork_that_has_vllm(zygote: Zygote) -> None:
    assert zygote.call("os:getpid") != zygote.call("os:getpid")
    assert "vllm.v1.worker.cpu_worker" in zygote.call("tests.runner.stack.serving.inside:imported")


def test_task_that_raises_or_dies_fails_with_what_it_said(zygote: Zygote) -> None:
    with pytest.raises(TaskFailed, match=r"FileNotFoundError: .*nowhere"):
        zygote.call("os:listdir", path="/nowhere")
    with pytest.raises(TaskFailed, match="the task died with wait status 9"):
        zygote.call("tests.runner.stack.serving.inside:die")
    assert zygote.call("os:getcwd")


def test_environment_of_a_task_is_its_own(zygote: Zygote) -> None:
    assert zygote.call("os:getenv", key="PADDOCK_STEPTIME", env={"PADDOCK_STEPTIME": "x"}) == "x"
    assert zygote.call("os:getenv", key="PADDOCK_STEPTIME") is None
