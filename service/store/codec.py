"""How values become bytes: a magic word with the format's version, a length, raw little-endian arrays. Never pickle.

    bag      SLB1 | n u32 | counts f32[n] | idf f32[n] | terms, joined by \\n, UTF-8
    others   SLM3, SLE2, SLP1 | header length u32 | header JSON | the arrays that the header names, one after the other

A bag keeps its terms as words, not as hashes: a log outlives the hash function, can be read by people, and gives a
model its words back.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

BAG = b"SLB1"
MODEL = b"SLM3"  # 2: features are hashed eight bytes at a time; 3: with evidence
EPOCH = b"SLE2"
PROJECTION = b"SLP1"
_DTYPES = {"<f4", "<f8", "<u8", "<u4", "<i8", "<i4", "|i1"}
_PREFIX = struct.Struct("<4sI")


class Corrupt(ValueError):
    """The bytes are not what the magic word promises."""


def pack_bag(terms: Sequence[str], counts: NDArray[np.float32], idf: NDArray[np.float32]) -> bytes:
    words = "\n".join(terms).encode()
    return _PREFIX.pack(BAG, len(terms)) + counts.astype("<f4").tobytes() + idf.astype("<f4").tobytes() + words


def pack_words(terms: Sequence[str]) -> bytes:
    """Packs terms without counts, such as the words of a model."""
    nothing = np.zeros(len(terms), np.float32)
    return pack_bag(terms, nothing, nothing)


def unpack_bag(blob: bytes) -> tuple[bytes, NDArray[np.float32], NDArray[np.float32]]:
    """The terms (joined by newlines), their counts and idf."""
    n = _prefix(blob, BAG)
    start = _PREFIX.size
    if len(blob) < start + 8 * n:
        raise Corrupt("a bag is shorter than it says")
    counts = np.frombuffer(blob, "<f4", n, start)
    idf = np.frombuffer(blob, "<f4", n, start + 4 * n)
    return blob[start + 8 * n :], counts, idf


def pack(magic: bytes, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    layout = [[name, array.dtype.newbyteorder("<").str, len(array)] for name, array in arrays.items()]
    header = json.dumps({"meta": meta, "arrays": layout}, sort_keys=True, allow_nan=False).encode()
    parts = [_PREFIX.pack(magic, len(header)), header]
    parts += [array.astype(array.dtype.newbyteorder("<")).tobytes() for array in arrays.values()]
    return b"".join(parts)


def unpack(magic: bytes, blob: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    size = _prefix(blob, magic)
    try:
        header = json.loads(blob[_PREFIX.size : _PREFIX.size + size])
    except ValueError as error:
        raise Corrupt("the header is not JSON") from error
    at, arrays = _PREFIX.size + size, {}
    for name, dtype, length in header["arrays"]:
        if dtype not in _DTYPES:
            raise Corrupt(f"an array of type {dtype!r} is not one of ours")
        if at + length * np.dtype(dtype).itemsize > len(blob):
            raise Corrupt(f"the array {name!r} is cut short")
        arrays[name] = np.frombuffer(blob, dtype, length, at)
        at += arrays[name].nbytes
    if at != len(blob):
        raise Corrupt("there are bytes after the last array")
    return header["meta"], arrays


def _prefix(blob: bytes, magic: bytes) -> int:
    if len(blob) < _PREFIX.size or blob[:3] != magic[:3]:
        raise Corrupt("these bytes are not ours")
    if blob[:4] != magic:
        raise Corrupt(f"written by another version of Sluice ({blob[:4]!r}; this one reads {magic!r})")
    return int(_PREFIX.unpack_from(blob)[1])
