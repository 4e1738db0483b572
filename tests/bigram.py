"""A race that fits the fake model server of tests/exploits: its tokenizer, prompts and reference records."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from tests.exploits.fake_server import generate


def write_tokenizer(folder: Path) -> None:
    """Write the tokenizer of a race whose model is the fake server's bigram rule; the first four tokens are special."""
    names = ["<pad>", "<eos>", "<bos>", "<unk>"]
    words = {name: place for place, name in enumerate([*names, *(f"w{place}" for place in range(4, 64))])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in names])
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"chat_template": "{{ messages[0]['content'] }}", "eos_token": "<eos>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def write_prompts(prompts: Path, references: Path, *, salt: int) -> None:
    """Write prompts as token ids, and reference records that follow the fake server's rule."""
    prompt_lines, reference_lines = [], []
    for number in range(6):
        context = [4 + (number * 11 + salt + step * 5) % 60 for step in range(12)]
        target = generate(context, 10)
        prompt_lines.append({"id": f"p{number}", "context_token_ids": context})
        record = {"id": f"r{number}", "context_token_ids": context, "target_token_ids": target}
        reference_lines.append({**record, "target_nll": [0.1] * len(target)})
    prompts.write_text("".join(json.dumps(line) + "\n" for line in prompt_lines))
    references.write_text("".join(json.dumps(line) + "\n" for line in reference_lines))
