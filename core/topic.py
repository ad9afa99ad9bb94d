"""Topics: patterns and keys are words between dots; `*` is any one word, `#` any number of them.

As in AMQP: the empty key has no word at all, `a.` has two of which one is empty, and `*` takes an
empty word.  A `*` or `#` inside of a word is an ordinary character, as it is in a key.

A place is where a word starts; one beyond the length means that no word is left.  Only the last `#`
is ever tried again with one word more: whatever an earlier one could take besides, the last one
can take as well.
"""

from __future__ import annotations

from shmbroker.core.atomics import load_byte
from shmbroker.core.kernel import exported_cold, kernel

DOT = 0x2E
STAR = 0x2A
HASH = 0x23


@kernel
def first_word(length: int) -> int:
    return int(length == 0)


@kernel
def next_word(words: int, length: int, at: int) -> int:
    """The place behind the word at this place."""
    while at < length and load_byte(words + at) != DOT:
        at += 1
    return at + 1


@kernel
def word_is(words: int, length: int, at: int, character: int) -> int:
    """Whether the word at this place is this one character."""
    if at >= length or load_byte(words + at) != character:
        return 0
    return int(at + 1 == length or load_byte(words + at + 1) == DOT)


@kernel
def same_word(pattern: int, pattern_end: int, key: int, key_end: int) -> int:
    """How long the word is that both start with, -1 if they start with different ones."""
    at = 0
    while True:
        left = DOT if pattern + at == pattern_end else load_byte(pattern + at)
        right = DOT if key + at == key_end else load_byte(key + at)
        if left != right:
            return -1
        if left == DOT:
            return at
        at += 1


@exported_cold
def topic_matches(pattern: int, pattern_length: int, key: int, key_length: int) -> int:
    """1 if the key is one of those that the pattern means, else 0."""
    wanted = first_word(pattern_length)
    word = first_word(key_length)
    after_hash = -1  # the place in the pattern behind its last #
    taken = 0  # the place in the key up to which that # takes words
    while word <= key_length:
        if word_is(pattern, pattern_length, wanted, HASH):
            wanted += 2
            if wanted > pattern_length:
                return 1
            after_hash = wanted
            taken = word
            continue
        if word_is(pattern, pattern_length, wanted, STAR):
            wanted += 2
            word = next_word(key, key_length, word)
            continue
        length = -1
        if wanted <= pattern_length:
            length = same_word(
                pattern + wanted, pattern + pattern_length, key + word, key + key_length
            )
        if length >= 0:
            wanted += length + 1
            word += length + 1
        elif after_hash < 0:
            return 0
        else:
            taken = next_word(key, key_length, taken)
            wanted = after_hash
            word = taken
    while word_is(pattern, pattern_length, wanted, HASH):
        wanted += 2
    return int(wanted > pattern_length)
