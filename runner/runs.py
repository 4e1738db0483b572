"""One claimed job, from its snapshot to what has to be recorded about it. Writes no ending: the worker does."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from runner import measuring, queue, run_environment, run_files, snapshots, volleys
from runner.heart import Heart
from runner.launchers import layout
from runner.launchers.contract import Launcher, LaunchSpec, Running
from runner.manifests import Manifest
from runner.prompt_sets import private_prompts, private_references, public_prompts
from runner.queue import Lease
from runner.references import guard_cap
from runner.rows import JobRow
from runner.states import State
from storage.database import reading, writing
from storage.site import Site

_PROGRESS_EVERY_S = 1.0


@dataclass
class Run:
    """A job under way: its files so far, its logs and the seconds that each stage took."""

    site: Site
    launcher: Launcher
    lease: Lease
    heart: Heart
    row: JobRow
    workspace: Path
    times: dict[str, float] = field(default_factory=dict)
    records: dict[str, Mapping[str, object]] = field(default_factory=dict)
    log: str = ""
    _told_at: float = 0.0

    def carry_out(self) -> None:
        """Materialise, install, serve, measure. Nothing of the submission runs when this returns or raises.

        Raises:
            SubmissionFailed, RunTimedOut, Cancelled, WorkerStopped, LeaseLost: ends of a run.
            Exception: an incident of ours.
        """
        self._tell_status()
        spec = self._lay_out()
        with self._timed("install"):
            self.log = self.launcher.prepare(spec, self.heart.check)
        self._describe_environment(spec)
        self._enter(State.SERVING)
        started = time.monotonic()
        running = self.launcher.launch(spec)
        try:
            running.wait_ready(self.site.challenge.harness.startup_timeout_s, self.heart.check)
            self.times["start"] = time.monotonic() - started
            self._measure(spec.manifest, running)
        finally:
            with self._timed("stop"):
                running.stop()
            self.log += running.log()

    def _lay_out(self) -> LaunchSpec:
        submission = self.workspace / "submission"
        self.records["run_request.json"] = self._request()
        with self._timed("snapshot"):
            submission.mkdir(parents=True)
            snapshots.materialise(self.site, self.row.content_hash, submission, self.heart.check)
            with reading(self.site.engine) as session:
                manifest = snapshots.read_manifest(self.site, session, self.row.content_hash)
        stage = self.workspace / "stage"
        stage.mkdir()
        return LaunchSpec(
            run_id=self.row.id, user=self.row.user, manifest=manifest, submission=submission, workspace=stage
        )

    def _describe_environment(self, spec: LaunchSpec) -> None:
        self.records["run_environment.json"] = run_environment.describe(
            hardware=self.row.hardware,
            launcher=self.launcher.environment(),
            server_env=self.site.settings.server_env,
            layer=spec.workspace / layout.LAYER,
        )

    def _measure(self, manifest: Manifest, running: Running) -> None:
        self.records["server.json"] = {
            "ready": True,
            "ready_after_s": self.times["start"],
            "served_model_name": manifest.served_model_name,
            "serve": list(manifest.serve),
        }
        self._enter(State.MEASURING)
        with self._timed("measure"):
            measuring.measure(
                self._harness_spec(manifest, running),
                self.workspace / "harness",
                running,
                timeout_s=self.site.challenge.harness.run_timeout_s,
                keep_going=self.heart.check,
                progress=self._tell_progress,
            )

    def _harness_spec(self, manifest: Manifest, running: Running) -> dict[str, object]:
        settings, prompts = self.site.challenge.harness, self.site.challenge.prompts
        resolve = self.site.challenge.resolve
        if self.row.volley_id is not None:
            sources = private_prompts(self.site), private_references(self.site)
            seed = volleys.seed_of(self.site.secret, self.row.volley_id, self.row.draw or 0)
        else:
            sources = public_prompts(self.site), resolve(prompts.public_references or "no-references")
            seed = settings.seed
        has_references = sources[1].is_file()
        return {
            "uds": str(running.address),
            "served_model_name": manifest.served_model_name,
            "tokenizer": str(resolve(prompts.tokenizer)),
            "prompts": str(sources[0]),
            "references": str(sources[1]) if has_references else None,
            "num_prompts": settings.num_prompts,
            "output_tokens": settings.output_tokens,
            "warmup_requests": settings.warmup_requests,
            "seed": seed,
            "max_prompt_tokens": settings.max_prompt_tokens,
            "request_timeout_s": settings.request_timeout_s,
            "ppl_cap": guard_cap(self.site.challenge.guard, sources[1]) if has_references else None,
            "hardware": self.row.hardware,
            "run_id": self.row.id,
        }

    def _request(self) -> dict[str, object]:
        row = self.row
        return {
            "job_id": row.id,
            "kind": row.kind,
            "agent_id": row.agent_id,
            "hf_user": row.user,
            "submission_bucket": row.submission_bucket,
            "submission_prefix": row.submission_prefix,
            "run_bucket": row.run_bucket,
            "run_prefix": row.run_prefix,
            "content_hash": row.content_hash,
            "hardware": row.hardware,
            "harness": self.site.challenge.harness.model_dump(),
        }

    def _enter(self, state: State) -> None:
        """Move on, if the job is still ours, and say so in its status file."""
        with writing(self.site.engine) as session:
            row = queue.held(session, self.lease, self.site.clock())
            queue.move(session, row, state)
            run_files.write_status(self.site, session, row)

    def _tell_status(self) -> None:
        with writing(self.site.engine) as session:
            run_files.write_status(self.site, session, queue.held(session, self.lease, self.site.clock()))

    def _tell_progress(self, done: int, total: int) -> None:
        if done < total and time.monotonic() - self._told_at < _PROGRESS_EVERY_S:
            return
        self._told_at = time.monotonic()
        with writing(self.site.engine) as session:
            row = queue.held(session, self.lease, self.site.clock())
            row.progress_done, row.progress_total = done, total
            session.add(row)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.times[stage] = time.monotonic() - started
