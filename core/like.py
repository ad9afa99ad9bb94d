"""LIKE: whether a text is like a pattern, in time that grows with the text's length alone.

    'ab%c_d%e%fg'     parts:  ab      at the start of the text
                              c_d, e  wherever each is first, in this order
                              fg      at the end

Where a part is first, the most is left for those behind it: so nothing is tried twice.  A part of
bytes alone is searched for.  One with _ is at most PART_BYTES_MAX long, a bit for each byte: the
bits of all its beginnings that fit so far move on together, a byte of the text at a time.

The text may change while it is looked at: nothing beyond its end is read.  -1 stands for a place
that is not there.
"""

from __future__ import annotations

from shmbroker.core.atomics import fill, load, load_byte, search, store
from shmbroker.core.kernel import cold, kernel
from shmbroker.core.opcodes import ANY_CHARACTER, ANY_TEXT, PART_BYTES_MAX


@kernel
def continues(byte: int) -> int:
    """In UTF-8: a character that has begun."""
    return int(byte & 0xC0 == 0x80)


@kernel
def byte_find(at: int, end: int, byte: int) -> int:
    """Where it is first, or the end."""
    while at < end and load_byte(at) != byte:
        at += 1
    return at


@kernel
def fits_at_start(at: int, end: int, part: int, part_end: int) -> int:
    """Where the part ends if it is at the start of the text."""
    while part < part_end:
        wanted = load_byte(part)
        if at == end or (wanted != ANY_CHARACTER and wanted != load_byte(at)):
            return -1
        at += 1
        if wanted == ANY_CHARACTER:
            while at < end and continues(load_byte(at)):
                at += 1
        part += 1
    return at


@kernel
def fits_at_end(start: int, at: int, part: int, part_end: int) -> int:
    """Where the part starts if it is at the end of the text."""
    while part < part_end:
        part_end -= 1
        wanted = load_byte(part_end)
        if at == start:
            return -1
        at -= 1
        if wanted == ANY_CHARACTER:
            while at > start and continues(load_byte(at)):
                at -= 1
        elif wanted != load_byte(at):
            return -1
    return at


@cold
def find_by_bits(at: int, end: int, part: int, length: int, bits: int) -> int:
    """The end of the first place that fits.  Bit n of `fit`: the part up to its byte n is just
    before here.  A _ fits a byte that begins a character, and the rest of that character."""
    fill(bits, 0, 256 * 8)
    any_character = 0
    for each in range(length):
        wanted = load_byte(part + each)
        if wanted == ANY_CHARACTER:
            any_character |= 1 << each
        else:
            store(bits + 8 * wanted, load(bits + 8 * wanted) | 1 << each)
    whole = 1 << (length - 1)
    fit = 0
    while at < end:
        byte = load_byte(at)
        at += 1
        moved = fit << 1 | 1
        if continues(byte):
            fit = (moved & load(bits + 8 * byte)) | (fit & any_character)
        else:
            fit = moved & (load(bits + 8 * byte) | any_character)
        if fit & whole:
            return at
    return -1


@kernel
def part_find(at: int, end: int, part: int, part_end: int, bits: int) -> int:
    length = part_end - part
    if byte_find(part, part_end, ANY_CHARACTER) < part_end:
        return find_by_bits(at, end, part, length, bits)
    found = search(at, end - at, part, length)
    return found + length if found else -1


@cold
def pattern_is_good(pattern: int, end: int) -> int:
    """Whether the operand of a LIKE is one that is_like takes."""
    part_end = byte_find(pattern, end, ANY_TEXT)
    while part_end < end:
        part = part_end + 1
        part_end = byte_find(part, end, ANY_TEXT)
        if part_end < end and part_end - part > PART_BYTES_MAX:
            if byte_find(part, part_end, ANY_CHARACTER) < part_end:
                return 0
    return 1


@cold
def is_like(text: int, length: int, pattern: int, pattern_length: int, bits: int) -> int:
    """Whether the text is like the pattern, which is good; with memory for 256 words of bits."""
    end, pattern_end = text + length, pattern + pattern_length
    part_end = byte_find(pattern, pattern_end, ANY_TEXT)
    at = fits_at_start(text, end, pattern, part_end)
    if at < 0 or part_end == pattern_end:
        return int(at == end)
    last = pattern_end
    while load_byte(last - 1) != ANY_TEXT:
        last -= 1
    end = fits_at_end(at, end, last, pattern_end)
    part = part_end + 1
    while end >= 0 and at >= 0 and part < last:
        part_end = byte_find(part, pattern_end, ANY_TEXT)
        if part_end > part:
            at = part_find(at, end, part, part_end, bits)
        part = part_end + 1
    return int(end >= 0 and at >= 0)
