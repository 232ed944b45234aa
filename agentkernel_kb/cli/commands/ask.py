"""`ask`: a session with a router agent."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Annotated, Any, Protocol

import typer

from agentkernel_kb.cli.answers import show_text
from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.cli.models import MODEL_VARIABLE, ModelRouter
from agentkernel_kb.cli.opening import Answered, Opened, opened
from agentkernel_kb.cli.standin import StandIn, Turn

_MODEL_SECONDS = 120.0
_HELP = "Ask anything. /tools lists the tools, /help shows this, /quit or Ctrl-D ends."
_MOST_SHOWN = 200


class Router(Protocol):
    """Whoever answers."""

    label: str

    def answer(self, question: str) -> Turn:
        """Answer a question."""
        ...


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, ask)


def ask(
    run: Run,
    question: Annotated[list[str] | None, typer.Argument(metavar="QUESTION", help="One question; none: a session.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="A model behind OPENAI_BASE_URL with the key in OPENAI_API_KEY. Default: what AGENTKERNEL_KB_MODEL names, "
            "else a stand-in that only routes.",
        ),
    ] = None,
) -> Code:
    r"""Ask a router agent, in a session.

    One question, or a session in the terminal. Each tool call is shown with its answer.

    Without a model, a stand-in chooses the tool by the words of the descriptions and shows what the tool answers.

    \b
    Examples:
      agentkernel-kb ask "How long do refunds take?"
      agentkernel-kb ask --agent Support_Agent
      agentkernel-kb ask --model gpt-4.1-mini "Which clients have spent most?"
      agentkernel-kb ask < questions.txt
    """
    if run.options.as_json and not question:
        raise CommandError('With --json, ask takes a question: agentkernel-kb ask --json "…".', Code.USAGE)
    with opened(run) as knowledge, _router(run, knowledge, model) as router:
        run.out.note(f"Here, {router.label}.")
        if question:
            return _answered(run, router, " ".join(question))
        return _session(run, knowledge, router)


@contextmanager
def _router(run: Run, knowledge: Opened, model: str | None) -> Generator[Router]:
    name = (model or os.environ.get(MODEL_VARIABLE, "")).strip()
    if not name:
        yield StandIn(knowledge)
        return
    with run.out.progress("Loading the framework…"):
        router = ModelRouter(knowledge, run.options.agent, name, run.options.timeout or _MODEL_SECONDS)
    with closing(router):
        yield router


def _session(run: Run, knowledge: Opened, router: Router) -> Code:
    """Answer question after question; a failure ends none but its own."""
    ended = Code.OK
    for question in _questions(run):
        if question == "/help":
            run.out.note(_HELP)
        elif question == "/tools":
            run.out.text("\n".join(tool.__name__ for tool in knowledge.tools(run.options.agent)))
        elif question.startswith("/"):
            run.out.error(f"There is no {question.split()[0]}. {_HELP}")
        else:
            try:
                ended = _answered(run, router, question)
            except CommandError as error:
                run.out.error(error.sentence)
                ended = error.code
    return Code.OK if sys.stdin.isatty() else ended


def _questions(run: Run) -> Iterator[str]:
    """Yield what is typed, or the lines of stdin, until the end."""
    if not sys.stdin.isatty():
        yield from (line.strip() for line in sys.stdin if line.strip())
        return
    _edit_lines()
    run.out.note(_HELP)
    while True:
        try:
            question = run.out.ask(">").strip()
        except EOFError:
            run.out.note("")
            return
        if question in ("/quit", "/exit"):
            return
        if question:
            yield question


def _edit_lines() -> None:
    """Let lines be edited and called back, where Python has that."""
    try:
        import readline
    except ImportError:
        return
    del readline


def _answered(run: Run, router: Router, question: str) -> Code:
    with run.out.progress("Thinking…"):
        turn = router.answer(question)
    failed = turn.calls[-1].code if turn.calls and not turn.answer else Code.OK
    if run.options.as_json:
        calls = [{**call.to_dict(), "arguments": dict(call.arguments)} for call in turn.calls]
        run.out.json(
            {
                "ok": failed == Code.OK,
                "command": run.name,
                "question": question,
                "by": router.label,
                "calls": calls,
                "answer": turn.answer or (turn.calls[-1].text if turn.calls else ""),
            }
        )
        return failed
    for call in turn.calls:
        _show_call(run, call, whole=not turn.answer)
    if turn.answer:
        show_text(run.out, turn.answer)
    return failed


def _show_call(run: Run, call: Answered, *, whole: bool) -> None:
    """Show a call, and its answer: whole where nobody sums it up, else how it begins."""
    run.out.heading(f"{call.tool}({_written(call.arguments)})")
    if whole:
        show_text(run.out, call.text)
        return
    beginning = call.text[:_MOST_SHOWN]
    run.out.note(beginning if beginning == call.text else f"{beginning}…")


def _written(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
