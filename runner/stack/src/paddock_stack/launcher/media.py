"""Make a picture and a sound for the warm-up from nothing: as data URLs, by the standard library."""

from __future__ import annotations

import base64
import io
import struct
import wave
import zlib
from typing import Any


def part(kind: str) -> dict[str, Any]:
    """Return the part of a chat message that carries an `image` or an `audio`."""
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + _text(picture(64))}}
    return {"type": "input_audio", "input_audio": {"data": _text(sound(16000)), "format": "wav"}}


def picture(side: int) -> bytes:
    """Return a PNG of `side` x `side` pixels with a fixed pattern."""
    rows = b"".join(
        b"\0" + bytes((x * y * (band + 1)) % 256 for x in range(side) for band in range(3)) for y in range(side)
    )
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, body) for name, body in chunks)


def sound(samples: int) -> bytes:
    """Return a WAV of `samples` samples at 16 kHz: a saw of 100 Hz."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(b"".join(struct.pack("<h", (number % 160) * 100 - 8000) for number in range(samples)))
    return out.getvalue()


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
