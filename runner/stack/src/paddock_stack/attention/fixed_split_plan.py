"""Say where the fixed split cuts a sequence's keys, how much scratch that takes, and which batches it is for.

Segments begin at the absolute positions 0, S, 2S, …: never at one that the length of the sequence or the number of
verified tokens decides. So a row's partial softmaxes, and their merge in ascending order, are functions of that row
and of the keys alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from paddock_stack.refusals import Refused

TOKENS = 8  # query tokens of a sequence, at most: a verified draft of seven and its root
LEAST_ROWS = 16  # of a tensor core's product
SCRATCH_BYTES = 1 << 30


class CannotSplit(Refused):
    """A layer or an engine asks of the fixed split what it was not made for."""


@dataclass(frozen=True)
class Cut:
    """How the keys of one head size are cut: `segment` keys a program, `tile` of them at once, by `warps` warps."""

    segment: int
    tile: int
    warps: int


# A program reads 64 KB of keys and values in one go: at 256 to 768 keys an H200 has more processors than there are
# segments, and a second tile would cost another trip to memory. Shared memory is the other bound, the 99 KB that a
# program gets on sm_86: queries, keys and values of a head of 512 fill 96 KB at 32 keys.
WIDE = Cut(segment=32, tile=32, warps=8)
NARROW = Cut(segment=64, tile=64, warps=8)


def cut_for(head_size: int) -> Cut:
    """Return the cut for `head_size`, a power of two from 16 to 512; raise `CannotSplit` for another."""
    if head_size not in (16, 32, 64, 128, 256, 512):
        raise CannotSplit(f"the fixed split takes heads of a power of two from 16 to 512, not {head_size}")
    return WIDE if head_size == 512 else NARROW


def slots(cut: Cut, window: int, longest: int) -> int:
    """Return the most segments that a step touches: rows see `window` keys (0: all), a sequence has `longest`."""
    whole = -(-longest // cut.segment)
    if not window:
        return whole
    touched = window + TOKENS - 1
    return min(whole, (touched - 2) // cut.segment + 2)


def rows(group: int) -> int:
    """Return the rows of a program, whatever the number of tokens; `group` query heads share a key head."""
    return max(LEAST_ROWS, 1 << (TOKENS * group - 1).bit_length())


def is_ours(longest_query: int, *, is_plain: bool) -> bool:
    """Return whether a batch takes the fixed split; what the host knows of its shape alone decides."""
    return 0 < longest_query <= TOKENS and is_plain


@dataclass(frozen=True)
class Layer:
    """What a layer's attention was built with; `window` is the number of keys that a row sees, 0 for all."""

    heads: int
    kv_heads: int
    head_size: int
    window: int
    scale: float = 1.0
    softcap: float = 0.0
    kv_type: str = "auto"
    is_decoder: bool = True
    extras: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise `CannotSplit` in one sentence unless the fixed split can serve this layer."""
        for is_met, sentence in (
            (self.is_decoder, "serves causal attention over a cache, not an encoder's"),
            (self.scale == 1.0, f"takes a scale of 1.0, not {self.scale}"),
            (self.softcap == 0.0, f"has no soft cap, and the layer asks for {self.softcap}"),
            (self.kv_type in ("auto", "bfloat16"), f"reads keys and values in bfloat16, not {self.kv_type}"),
            (not self.extras, f"knows no {' and no '.join(self.extras)}"),
            (self.kv_heads > 0 and self.heads % self.kv_heads == 0, "needs as many query heads to each key head"),
        ):
            if not is_met:
                raise CannotSplit(f"the fixed split {sentence}")
        cut_for(self.head_size)

    def cells(self, longest: int) -> int:
        """Return the segments that one query token of this layer writes, over all its heads."""
        return self.heads * slots(cut_for(self.head_size), self.window, longest)


def scratch_rows(cells: int, head_size: int, sequences: int) -> int:
    """Return how many partial results of `head_size` sums the scratch holds for `sequences` of eight tokens.

    Raises `CannotSplit` where that is over a gigabyte.
    """
    needed = cells * sequences * TOKENS
    told = needed * (head_size + 2) * 4
    if not told <= SCRATCH_BYTES:
        raise CannotSplit(
            f"the fixed split would need {told >> 20} MiB of scratch for {sequences} sequences, over its limit of"
            f" {SCRATCH_BYTES >> 20}: lower max_num_seqs or max_model_len"
        )
    return needed
