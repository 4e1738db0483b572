"""Write a tiny Gemma 4 checkpoint with random weights, the same bytes on every run and without a network.

    .server-env/bin/python scripts/make_tiny_gemma.py FOLDER [--corpus prompts/public.jsonl]

It keeps every idea of gemma-4-E4B's text model at toy width: per-layer embeddings, sliding and full layers with two
head sizes, layers that share the keys and values of earlier ones, tied embeddings, soft-capped logits. Vision, audio
and the drafter are not part of it. Runs in the server environment.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Gemma4ForCausalLM, Gemma4TextConfig, PreTrainedTokenizerFast

VOCABULARY = 2048
CONTEXT = 8192
# Gemma 4's own special tokens, in its order, so that ids 0..15 mean here what they mean there.
SPECIALS = [
    *("<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|turn>", "<turn|>", "<|channel>", "<channel|>"),
    *("<|image>", "<image|>", "<|image|>", "<|audio>", "<audio|>", "<|audio|>", "<|video|>"),
]
PAD, EOS, BOS, END_OF_TURN = (SPECIALS.index(name) for name in ("<pad>", "<eos>", "<bos>", "<turn|>"))
# Pictures and sounds are for checkpoints with towers, which tests make with this tokenizer.
CHAT_TEMPLATE = """\
{{- bos_token -}}
{%- for message in messages -%}
{{- '<|turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' -}}
{%- if message.content is string -%}
{{- message.content | trim -}}
{%- else -%}
{%- for part in message.content -%}
{{- part.text | trim if part.type == 'text' else {'image': '<|image|>', 'audio': '<|audio|>'}[part.type] -}}
{%- endfor -%}
{%- endif -%}
{{- '<turn|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|turn>model\\n' -}}{%- endif -%}
"""


def main() -> None:
    """Write the model, its tokenizer, chat template and generation settings into the folder given."""
    parser = argparse.ArgumentParser(description="Write a tiny Gemma 4 checkpoint with random weights.")
    parser.add_argument("folder", type=Path)
    default_corpus = Path(__file__).resolve().parent.parent / "prompts" / "public.jsonl"
    parser.add_argument("--corpus", type=Path, default=default_corpus, help="JSONL with a text field per line")
    arguments = parser.parse_args()
    texts = [json.loads(line)["text"] for line in arguments.corpus.read_text(encoding="utf-8").splitlines()]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    tokenizer(texts).save_pretrained(arguments.folder)
    model().save_pretrained(arguments.folder)
    generation = {"bos_token_id": BOS, "eos_token_id": [EOS, END_OF_TURN], "pad_token_id": PAD}
    (arguments.folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    for path in arguments.folder.iterdir():
        path.chmod(0o644)  # the library writes weights for their owner alone; a sandboxed server is somebody else


def tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer on `texts`; every one of the model's ids has a token of its own."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIALS,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    trained.train_from_iterator(texts, trainer)
    trained.add_tokens([f"<unused{number}>" for number in range(VOCABULARY - trained.get_vocab_size())])
    return PreTrainedTokenizerFast(
        tokenizer_object=trained,
        bos_token="<bos>",
        eos_token="<eos>",
        pad_token="<pad>",
        unk_token="<unk>",
        chat_template=CHAT_TEMPLATE,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )


def model() -> Gemma4ForCausalLM:
    """Return the model in bfloat16, drawn from a fixed seed.

    At their initial scale random weights repeat one token for ever under greedy decoding. Halving the embeddings and
    raising the last norm makes the text wander, so that a comparison of token ids means something.
    """
    torch.manual_seed(0)
    made = Gemma4ForCausalLM(_config())
    decoder = made.get_decoder()
    with torch.no_grad():
        decoder.embed_tokens.weight.mul_(0.5)
        decoder.norm.weight.mul_(4.0)
    return made.to(torch.bfloat16)


def _config() -> Gemma4TextConfig:
    return Gemma4TextConfig(
        vocab_size=VOCABULARY,
        vocab_size_per_layer_input=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        hidden_size_per_layer_input=16,
        num_hidden_layers=6,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"] * 2,
        num_kv_shared_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        global_head_dim=64,
        sliding_window=64,
        max_position_embeddings=CONTEXT,
        final_logit_softcapping=30.0,
        tie_word_embeddings=True,
        initializer_range=0.2,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=[EOS, END_OF_TURN],
    )


if __name__ == "__main__":
    main()
