"""Check the words and links of docs/: short sentences, an easy page, no dead link.

    python -m scripts.docs_check            all pages: links, sentences, Flesch reading ease
    python -m scripts.docs_check PAGE …     the scores and the long sentences of these pages

Tables and code count neither as words nor as sentences.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ("README.md", "ROADMAP.md", "deploy/README.md")
"""Pages beside docs/ that are held to the same rules."""

LINKS_ONLY = ("CHANGELOG.md", "CONTRIBUTING.md")
"""Pages whose links are checked, and not their words."""

EASIEST_HARD_SCORE = 55.0
"""A page needs at least this Flesch reading ease."""

MAX_WORDS, MAX_COMMAS = 25, 2
"""A sentence has at most so many words and commas."""

_FENCE = re.compile(r"^ *(```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[)\"'*]*\s+")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a page, with the number of the line that it begins on."""

    line: int
    text: str

    @property
    def words(self) -> int:
        """The number of words; a piece of code is one."""
        return len(re.findall(r"\w[\w'./-]*", self.text))

    @property
    def commas(self) -> int:
        """The number of commas between words; the comma of 26,000 is none, and the one behind an item of a list."""
        return len(re.findall(r",(?!\d)(?=.*\w)", self.text))

    @property
    def is_too_long(self) -> bool:
        """Whether the sentence has too many words or commas."""
        return self.words > MAX_WORDS or self.commas > MAX_COMMAS


def pages() -> list[Path]:
    """Return the pages of docs/ in the order of their paths, and those beside it."""
    return [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in BESIDE)]


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the first line's number and the text of each paragraph and list item: no heading, table or block of code."""
    start, lines, in_code = 0, list[str](), False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = _FENCE.match(line) is not None
        breaks = fence or in_code or not line.strip() or line.startswith(("#", "|", "<", ":::", "    "))
        if (breaks or _ITEM.match(line)) and lines:
            yield start, " ".join(lines)
            lines = []
        if not breaks:
            start = start if lines else number
            lines.append(_ITEM.sub("", line).strip())
        in_code ^= fence


def _plain(text: str) -> str:
    """Return Markdown as it is read: the text of links, and a piece or a list of `code` as the one word "Code"."""
    text = re.sub(r"``.+?``|`[^`]+`", "Code", text)
    text = _LINK.sub(lambda link: "" if link[0].startswith("!") else link[1], text)
    text = re.sub(r"\*\*|(?<!\w)[*_]|[*_](?!\w)", "", text)
    return re.sub(r"Code(?:,? (?:and |or )?Code)+", "Code", text)


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of a page, without those of its tables and code."""
    return [
        Sentence(line, sentence)
        for line, paragraph in _paragraphs(text)
        for sentence in _SENTENCE_END.split(_plain(paragraph))
        if re.search(r"\w", sentence)
    ]


def reading_ease(found: Sequence[Sentence]) -> float:
    """Return the Flesch reading ease of sentences; 100 is easy, 0 is hard."""
    import textstat

    # One mark at each end: textstat takes a point within a number or a name for the end of a sentence.
    text = " ".join(re.sub(r"[.!?:;]", "", sentence.text) + "." for sentence in found)
    return float(textstat.flesch_reading_ease(text))


def _anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings."""
    anchors, seen, in_code = set[str](), dict[str, int](), False
    for line in text.splitlines():
        in_code ^= _FENCE.match(line) is not None
        if in_code or not re.match(r"#+ ", line):
            continue
        title = _LINK.sub(lambda link: link[1], line.lstrip("# ")).lower()
        anchor = re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-")
        seen[anchor] = seen.get(anchor, -1) + 1
        anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
    return anchors


def dead_links() -> list[str]:
    """Return ``page:line: link`` of each relative link to a file or heading that is not there."""
    dead = []
    for page in [*pages(), *(ROOT / name for name in LINKS_ONLY)]:
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for link in _LINK.findall(line):
                name, _, anchor = link[1].partition("#")
                target = (page.parent / name).resolve() if name else page
                if re.match(r"[a-z]+:", name):
                    continue
                is_page = target.suffix == ".md" and target.is_file()
                if not target.exists() or (
                    anchor and (not is_page or anchor not in _anchors(target.read_text()))
                ):
                    dead.append(f"{page.relative_to(ROOT)}:{number}: {link[1]}")
    return dead


def long_sentences(page: Path) -> list[str]:
    """Return ``page:line: sentence`` of each sentence of a page that is too long."""
    name = page.relative_to(ROOT)
    return [
        f"{name}:{found.line}: {found.words} words, {found.commas} commas: {found.text}"
        for found in sentences(page.read_text())
        if found.is_too_long
    ]


def main(names: Sequence[str]) -> int:
    """Print each page's score and faults, and return 1 if there are any."""
    failed = False
    for page in [Path(name).resolve() for name in names] or pages():
        found = sentences(page.read_text())
        score = reading_ease(found) if found else 100.0
        too_long = long_sentences(page)
        bad = bool(too_long) or score < EASIEST_HARD_SCORE
        print(f"{score:6.1f}  {len(too_long):3} too long  {page.relative_to(ROOT)}")
        if bad:
            failed = True
            print("".join(f"        {line}\n" for line in too_long), end="")
    if dead := dead_links():
        failed = True
        print("\nDead links:", *dead, sep="\n  ")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
