"""The words that were replaced do not come back.

Whimsical words are refused everywhere, ordinary English in names only.  Each word stands with what
replaced it; ARCHITECTURE.md has the glossary.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ["core", "ipc", "netbridge", "cli", "perf", "src", "tests", "examples", "docs", "tools"]
SUFFIXES = {".py", ".pyi", ".c", ".h", ".md"}
HISTORY = {"CHANGELOG.md", "tests/structure/test_words.py"}
"""These tell what was replaced, so they have the old words."""

REPLACED = {
    "clerk": "mover",
    "desk": "service",
    "keeper": "exit helper",
    "bury": "dead-letter",
    "burial": "dead-lettering",
    "grave": "dead-letter queue",
    "departed": "deleted queues",
    "door": "commit gate",
    "settlement": "commit record",
    "roster": "registry",
    "recollection": "deduplication log",
    "onlooker": "retained reader",
    "caretaker": "repairer",
    "upkeep": "repair",
    "sweep": "repair",
    "tidy": "repair",
}
NO_NAMES = {"remembered": "deduplication log", "tend": "repair", "look_after": "repair"}
"""Ordinary English, which may stay in sentences."""

PLACES: dict[tuple[str, str], str] = {
    ("remembered", "ipc/instance/mending.py"): "a variable: what the file of the rings has noted",
}
"""Where a word may stay, and why."""


def forms(word: str) -> set[str]:
    """The word as English inflects it: bury, buries, buried, burying."""
    stem = word.removesuffix("y").removesuffix("e")
    ends = ("ies", "ied", "ying", "y") if word.endswith("y") else ("", "s", "es", "ed", "ing")
    irregular = {"sweep": {"swept"}}.get(word, set())
    return {word, *(stem + end for end in ends)} | irregular


GONE = {form: word for word in REPLACED for form in forms(word)}
NAMES = {form: word for word in NO_NAMES for form in forms(word)}


def texts() -> Iterator[tuple[str, str]]:
    paths = [*ROOT.glob("*.md"), ROOT / "Makefile"]
    for room in ROOMS:
        paths += [path for path in (ROOT / room).rglob("*") if path.suffix in SUFFIXES]
    for path in sorted(paths):
        name = str(path.relative_to(ROOT))
        if path.is_file() and not path.is_symlink() and name not in HISTORY:
            yield name, path.read_text()


def words(text: str) -> Iterator[str]:
    """Of sentences and of names: sb_clerkRow has three, and ZooKeeper is the name of a product."""
    text = text.replace("ZooKeeper", "Zookeeper")
    for each in re.finditer(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text):
        yield each[0].lower()


def names(path: str, text: str) -> Iterator[str]:
    """Identifiers: of Python, of C without comments, and of C text in Python's strings.

    Names of tests are sentences.
    """
    if path.endswith((".py", ".pyi")):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and not token.string.startswith("test_"):
                yield token.string
            elif token.type == tokenize.STRING and "sb_" in token.string:
                yield from identifiers(token.string.lstrip("rbf").strip("\"'"))
    elif path.endswith((".c", ".h")):
        yield from identifiers(text)


def identifiers(c: str) -> list[str]:
    without_comments = re.sub(r"/\*.*?\*/|//[^\n]*", " ", c, flags=re.DOTALL)
    return re.findall(r"[A-Za-z_]\w*", re.sub(r'"(?:[^"\\\n]|\\.)*"', " ", without_comments))


def parts(name: str) -> set[str]:
    """The words of a name, and its pairs of words: look, after, look_after."""
    single = list(words(name))
    return {*single, *("_".join(pair) for pair in pairwise(single))}


def replaced_in(path: str, text: str) -> set[str]:
    seen = set(words(text))
    found = {GONE[word] for word in seen if word in GONE}
    if any(set(word.split("_")) <= seen for word in NAMES):
        found |= {NAMES[part] for name in names(path, text) for part in parts(name) & NAMES.keys()}
    return {word for word in found if (word, path) not in PLACES}


def test_replaced_words_do_not_come_back() -> None:
    better = REPLACED | NO_NAMES
    back = [
        f"{path}: {word}, now: {better[word]}"
        for path, text in texts()
        for word in sorted(replaced_in(path, text))
    ]
    assert not back, "\n" + "\n".join(back)


def test_each_place_has_its_word_still() -> None:
    """What is allowed and not used would allow something else one day."""
    found = dict(texts())
    for word, path in PLACES:
        assert word in {GONE.get(w) or NAMES.get(w) for w in words(found[path])}, (word, path)


@pytest.mark.parametrize(
    ("path", "text", "word"),
    [
        ("a.py", "def clerk_wake() -> None: ...\n", "clerk"),
        ("a.py", 'SOURCE = "int sb_memory_keeper(void);"\n', "keeper"),
        ("a.py", 'SOURCE = "int sb_remembered_row(void);"\n', "remembered"),
        ("a.c", "/* The dead are buried. */", "bury"),
        ("a.h", "void settlementOpen(void);", "settlement"),
        ("a.c", "static int tend(void) { return tended_at; }", "tend"),
        ("a.c", "int look_after(int row);", "look_after"),
        ("a.md", "Sweeping is over.", "sweep"),
    ],
)
def test_a_word_that_comes_back_is_found(path: str, text: str, word: str) -> None:
    assert replaced_in(path, text) == {word}


def test_ordinary_english_may_stay() -> None:
    assert not replaced_in("a.c", "/* Ids are remembered; queues tend to fill: attended. */")
    assert not replaced_in("a.py", '"""Ids are remembered."""\n')
