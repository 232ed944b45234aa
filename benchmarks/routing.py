"""Prints how well the baseline router of `agentkernel-kb eval` finds the route of a question, and when it says: none of these.

`KB_DATA` names a folder with `clinc150/` in it: `corpus.jsonl` (150 routes: a title, a topic, five example questions each),
`queries.jsonl` and `qrels.tsv` (4,500 questions of one route each, 1,000 of none). Only the corpus is learnt from. With `typo`,
one letter of the longest word of each question is left out, added, changed or swapped with the next, the same ones each time.
"""

from __future__ import annotations

import json
import os
import random
import re
import string
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentkernel_kb.evaluation.router import LexicalRouter, Route

SEED = 7
Labelled = tuple[str, str | None]


def routes(folder: Path) -> list[Route]:
    """Return the routes of the corpus."""
    return [_route(json.loads(line)) for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines()]


def questions(folder: Path) -> list[Labelled]:
    """Return each question with its route, `None` for none."""
    rows = [line.split("\t") for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]]
    right = {row[0]: row[1] for row in rows}
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()]
    return [(each["text"], right.get(each["_id"])) for each in asked]


def misspelt(question: str, chance: random.Random) -> str:
    """Return a question with one wrong letter in its longest word."""
    words = list(re.finditer("[a-z]+", question))
    if not words:
        return question
    word = max(words, key=lambda match: len(match[0]))
    place = chance.randrange(len(word[0]))
    letter = chance.choice(string.ascii_lowercase.replace(word[0][place], ""))
    before, rest = word[0][:place], word[0][place:]
    wrong = chance.choice(
        [before + rest[1:], before + letter + rest, before + letter + rest[1:], before + rest[1::-1] + rest[2:]]
    )
    return question[: word.start()] + wrong + question[word.end() :]


def figures(router: LexicalRouter, asked: Sequence[Labelled]) -> dict[str, Any]:
    """Return what the router does with labelled questions."""
    begun = time.perf_counter()
    decisions = [(router.route(question), right) for question, right in asked]
    seconds = time.perf_counter() - begun
    known = [(decision, right) for decision, right in decisions if right is not None]
    refused = [right is None for decision, right in decisions if not decision.confident]
    homeless = len(decisions) - len(known)
    answered = [(decision, right) for decision, right in known if decision.confident]
    return {
        "right_at_1": _share(sum(decision.backend == right for decision, right in known), len(known)),
        "right_of_answered": _share(sum(decision.backend == right for decision, right in answered), len(answered)),
        "answered": _share(len(answered), len(known)),
        "none_recall": _share(sum(refused), homeless),
        "none_precision": _share(sum(refused), len(refused)),
        "right_or_rightly_none": _share(sum(decision.chosen == right for decision, right in decisions), len(decisions)),
        "milliseconds_per_question": round(1_000 * seconds / len(decisions), 3),
    }


def main() -> int:
    """Print the figures as JSON."""
    given = os.environ.get("KB_DATA", "")
    if not given:
        print("Set KB_DATA to a folder with clinc150/ in it.", file=sys.stderr)
        return 2
    folder = Path(given) / "clinc150"
    begun = time.perf_counter()
    router = LexicalRouter(routes(folder))
    learnt = round(time.perf_counter() - begun, 2)
    asked, chance = questions(folder), random.Random(SEED)
    wrong = [(misspelt(question, chance), right) for question, right in asked]
    result = {"routes": len(router.routes), "learnt_in_s": learnt, "threshold": router.threshold}
    print(json.dumps({**result, "plain": figures(router, asked), "typo": figures(router, wrong)}, indent=2))
    return 0


def _route(document: dict[str, str]) -> Route:
    topic, _, examples = document["text"].partition(". ")
    return Route(document["_id"], topic, examples.split("; "))


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


if __name__ == "__main__":
    sys.exit(main())
