"""Serves submissions on this machine: in a sandbox as a user of their own, or, for named users only, without one."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from runner.launchers import cgroups, dependencies, layout
from runner.launchers.bare import Bare
from runner.launchers.contract import JobsDisabled, KeepGoing, LaunchSpec, Running
from runner.launchers.means import Means, find_means
from runner.launchers.sandboxed import Sandboxed
from runner.launchers.slots import Slot, hold_slot
from storage.settings import Settings


class LocalLauncher:
    """See `runner.launchers.contract.Launcher`. Fails closed: each stage asks anew whether it may run."""

    def __init__(self, settings: Settings, means: Means | None = None) -> None:
        self._settings = settings
        self._means = means or find_means()
        caps = layout.machine_caps()
        environment, log_bytes = settings.server_env, settings.log_tail
        self._way: Sandboxed | Bare = (
            Bare(environment=environment, caps=caps, log_bytes=log_bytes)
            if self._means.missing()
            else Sandboxed(
                means=self._means, environment=environment, data=settings.data, caps=caps, log_bytes=log_bytes
            )
        )

    def refusal(self, user: str) -> str | None:
        """Say why `user`'s submissions aren't run here, or return None."""
        if not (self._settings.server_env / "pyvenv.cfg").is_file():
            return "No submission is run on this machine: the model server's environment isn't built."
        missing = self._means.missing()
        if missing and user not in self._settings.trusted_users:
            return f"Submissions of {user} aren't run on this machine: {', and '.join(missing)}."
        return None

    def environment(self) -> Mapping[str, object]:
        """Describe the confinement and what it lacks."""
        missing = self._means.missing()
        return {
            "launcher": "local",
            "sandbox": not missing,
            "sandbox_missing": missing,
            "cgroup_controllers_missing": cgroups.missing(),
        }

    def prepare(self, spec: LaunchSpec, keep_going: KeepGoing) -> str:
        """Install the manifest's dependencies, if it names any."""
        self._check(spec.user)
        if not spec.manifest.dependencies:
            return ""
        dependencies.check_room(spec.workspace)
        with self._slot() as (slot, cleanup):
            group = self._way.install(spec, slot, cleanup)
            try:
                return dependencies.watch(group, spec.workspace / layout.LAYER, keep_going)
            finally:
                group.stop()

    def launch(self, spec: LaunchSpec) -> Running:
        """Start the serve command beside its forwarder."""
        self._check(spec.user)
        with self._slot() as (slot, cleanup):
            return self._way.serve(spec, slot, cleanup)

    def _check(self, user: str) -> None:
        if reason := self.refusal(user):
            raise JobsDisabled(reason)

    @contextmanager
    def _slot(self) -> Iterator[tuple[Slot, ExitStack]]:
        """Hold a slot; a stage that started takes it along (`pop_all`) and lets it go when it is stopped."""
        with ExitStack() as cleanup:
            slot = cleanup.enter_context(hold_slot(self._settings.sandbox_uid))
            cleanup.callback(shutil.rmtree, slot.sockets, ignore_errors=True)
            yield slot, cleanup
