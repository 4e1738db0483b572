"""One measurement from its spec to its last file. Every stage leaves its file before the next one starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.harness import records
from runner.harness.chat import ask_chat
from runner.harness.decoding import Decoded, decode, warm_up
from runner.harness.faults import BadInput, SubmissionFault
from runner.harness.prompts import Reference, read_prompts, read_references
from runner.harness.rendering import ChallengeTokenizer
from runner.harness.run_folder import RunFolder
from runner.harness.scoring import Perplexity, score
from runner.harness.selection import Chosen, select
from runner.harness.spec import Spec
from runner.harness.wire import Endpoint


@dataclass(frozen=True)
class Inputs:
    """What a measurement works on, checked before the server hears anything."""

    tokenizer: ChallengeTokenizer
    chosen: Sequence[Chosen]
    references: Sequence[Reference]


def measure(spec: Spec, folder: RunFolder) -> None:
    """Measure the server that `spec` names and write the run's files into `folder`.

    Raises:
        BadInput: the spec's files are unusable. Nothing is written.
        SubmissionFault: `failure.json` says what the server did wrong; files of earlier stages stay.
    """
    inputs = _read_inputs(spec)
    endpoint = Endpoint(spec)
    try:
        _measure(spec, folder, inputs, endpoint)
    except SubmissionFault as fault:
        folder.write("failure.json", {"code": fault.code, "message": fault.message, "hint": fault.hint})
        raise
    finally:
        endpoint.close()


def _read_inputs(spec: Spec) -> Inputs:
    tokenizer = ChallengeTokenizer(Path(spec.tokenizer))
    chosen = select(
        read_prompts(Path(spec.prompts)),
        tokenizer,
        count=spec.num_prompts,
        seed=spec.seed,
        max_prompt_tokens=spec.max_prompt_tokens,
    )
    references = [] if spec.references is None else read_references(Path(spec.references))
    if references and not any(len(set(one.target_token_ids)) > 1 for one in references):
        raise BadInput("no reference record has two different target tokens, so no decoy can be made")
    return Inputs(tokenizer, chosen, references)


def _measure(spec: Spec, folder: RunFolder, inputs: Inputs, endpoint: Endpoint) -> None:
    warm_up(endpoint, inputs.tokenizer, spec)
    decoded = decode(endpoint, inputs.tokenizer, inputs.chosen, spec)
    _leave_decoded(decoded, spec, folder)
    found = score(endpoint, inputs.references, spec) if inputs.references else None
    if found is not None:
        _leave_perplexity(found, spec, folder)
    ask_chat(endpoint, spec)
    folder.write("summary.json", records.summary(decoded, found, spec))


def _leave_decoded(decoded: Decoded, spec: Spec, folder: RunFolder) -> None:
    folder.write_lines("benchmark.jsonl", [records.benchmark_record(decoded)])
    folder.write_lines("decode_outputs.jsonl", [records.decode_record(*pair) for pair in enumerate(decoded.timed)])
    folder.write("decode_summary.json", records.decode_summary(decoded, spec))


def _leave_perplexity(found: Perplexity, spec: Spec, folder: RunFolder) -> None:
    folder.write_lines("ppl_results.jsonl", map(records.ppl_record, found.records))
    folder.write_lines("ppl_decoys.jsonl", map(records.ppl_record, found.decoys))
    folder.write("ppl_summary.json", records.ppl_summary(found, spec))
