"""Serve the model with plain vLLM: on a GPU with its defaults, without one in the modest way a CPU can bear.

Reads MODEL_ID (a Hub id or a folder beside this file), SERVED_MODEL_NAME, HOST and PORT, and from the manifest
MAX_MODEL_LEN and MAX_NUM_BATCHED_TOKENS. Becomes vLLM's OpenAI server, so that signals reach it directly.
"""

import os
import sys
import tempfile
from pathlib import Path

QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
# Without a GPU: no compiler is needed or waited for, and float32, because bfloat16 arithmetic alone costs a toy model
# nearly the whole margin under the perplexity cap.
CPU_ENVIRONMENT = {"TORCHDYNAMO_DISABLE": "1"}


def main() -> None:
    """Replace this process by the server."""
    os.environ.update(QUIET if _has_gpu() else QUIET | CPU_ENVIRONMENT)
    _keep_caches_in(Path(os.environ.get("TMPDIR") or tempfile.gettempdir()))
    model = _model(os.environ["MODEL_ID"])
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *_arguments(model)]
    print("serving with", *command, flush=True)
    os.execv(sys.executable, command)


def _keep_caches_in(folder: Path) -> None:
    """Point every cache at a folder that can be written: the submission and the home may not be."""
    os.environ.setdefault("HOME", str(folder))
    os.environ.setdefault("VLLM_CACHE_ROOT", str(folder / "vllm-cache"))
    os.environ.setdefault("VLLM_CONFIG_ROOT", str(folder / "vllm-config"))
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))
    os.environ.setdefault("NUMBA_CACHE_DIR", str(folder / "numba"))
    os.environ.setdefault("XDG_CACHE_HOME", str(folder / "cache"))


def _model(model_id: str) -> str:
    """Return the folder beside this file that `model_id` names, else the id itself; a folder needs no network."""
    for folder in (Path(model_id), Path(__file__).resolve().parent / model_id):
        if (folder / "config.json").is_file():
            os.environ["HF_HUB_OFFLINE"] = "1"
            return str(folder.resolve())
    return model_id


def _arguments(model: str) -> list[str]:
    options = {
        "--model": model,
        "--served-model-name": os.environ["SERVED_MODEL_NAME"],
        "--host": os.environ.get("HOST", "127.0.0.1"),
        "--port": os.environ.get("PORT", "8000"),
        "--dtype": "bfloat16" if _has_gpu() else "float32",
        "--max-model-len": os.environ.get("MAX_MODEL_LEN", "4096"),
        "--max-num-batched-tokens": os.environ.get("MAX_NUM_BATCHED_TOKENS", "512"),
        "--max-num-seqs": "1",
    }
    pairs = [part for option in options.items() for part in option]
    return [
        *pairs,
        "--no-enable-prefix-caching",
        "--no-enable-log-requests",
        *([] if _has_gpu() else ["--enforce-eager"]),
    ]


def _has_gpu() -> bool:
    return any(Path("/dev").glob("nvidia[0-9]*"))


if __name__ == "__main__":
    main()
