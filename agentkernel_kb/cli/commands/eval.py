"""`eval`: labelled questions put to a router, and how many it got right."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.cli.faulty import show_faults
from agentkernel_kb.cli.models import MODEL_VARIABLE, ModelRouter
from agentkernel_kb.cli.opening import Opened, opened
from agentkernel_kb.config import ConfigurationError
from agentkernel_kb.errors import KnowledgeError
from agentkernel_kb.evaluation.overlap import Overlap, overlaps
from agentkernel_kb.evaluation.questions import QuestionFile, read_questions
from agentkernel_kb.evaluation.results import Evaluation, Transcript
from agentkernel_kb.evaluation.routing import Answerer, baseline, calls_of, evaluate

_MODEL_SECONDS = 120.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, eval)


def eval(
    run: Run,
    questions: Annotated[
        Path | None, typer.Argument(metavar="[QUESTIONS]", help="The file of labelled questions; none with --corpus.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help=f"Put them to this model, as ask does. Default: what {MODEL_VARIABLE} names, else the baseline.",
        ),
    ] = None,
    by_words: Annotated[
        bool,
        typer.Option("--baseline", help="Put them to the baseline, which routes by words, whatever the environment names."),
    ] = False,
    least: Annotated[
        float,
        typer.Option(
            "--min-accuracy", metavar="SHARE", min=0.0, max=1.0, help="End with 1 where fewer went to the right backend."
        ),
    ] = 0.0,
    least_operation: Annotated[
        float,
        typer.Option(
            "--min-operation", metavar="SHARE", min=0.0, max=1.0, help="The same of those that label an operation and got it."
        ),
    ] = 0.0,
    least_answer: Annotated[
        float,
        typer.Option(
            "--min-answer", metavar="SHARE", min=0.0, max=1.0, help="The same of those that label an answer and got it."
        ),
    ] = 0.0,
    corpus: Annotated[
        Path | None,
        typer.Option(
            "--corpus", metavar="FOLDER", help="Measure how well this labelled collection is searched: corpus, queries, qrels."
        ),
    ] = None,
    mode: Annotated[
        list[str] | None, typer.Option("--mode", metavar="MODE", help="With --corpus: keyword, vector, hybrid; all by default.")
    ] = None,
    embedder: Annotated[
        list[str] | None,
        typer.Option("--embedder", metavar="KIND[:PATH]", help="With --corpus: hash, or a model such as onnx:models/minilm."),
    ] = None,
    chunker: Annotated[
        list[str] | None,
        typer.Option(
            "--chunker", metavar="NAME[:SIZE]", help="With --corpus: recursive, tokens, headings; with a size if wanted."
        ),
    ] = None,
    k: Annotated[int, typer.Option("--k", metavar="N", min=1, max=1_000, help="With --corpus: places that count.")] = 10,
    least_ndcg: Annotated[
        float,
        typer.Option("--min-ndcg", metavar="SHARE", min=0.0, max=1.0, help="With --corpus: end with 1 where none reaches it."),
    ] = 0.0,
) -> Code:
    r"""Measure how many questions find the right knowledge base, or how well a corpus is searched.

    Each question names its backend (or none), and perhaps the operation and what the answer contains. Printed are the shares
    that were right, which backend was taken for which, tokens and time, and backends whose descriptions say the same.

    With --corpus, a folder with corpus.jsonl, queries.jsonl and qrels.tsv is searched in each mode with each embedder and
    chunker, and nDCG, recall, precision, reciprocal rank and time stand side by side. It needs no configuration.

    \b
    Examples:
      agentkernel-kb eval questions.yaml
      agentkernel-kb eval questions.yaml --min-accuracy 0.8 --min-operation 0.9 --json
      agentkernel-kb eval questions.yaml --model gpt-4.1-mini --agent Support_Agent
      agentkernel-kb eval --corpus cranfield/ --embedder hash --embedder onnx:models/minilm
    """
    if corpus is not None:
        if questions is not None:
            raise CommandError("Give QUESTIONS or --corpus, not both.", Code.USAGE)
        from agentkernel_kb.cli.retrieval import evaluated  # Managed knowledge, which no other command has to wait for.

        ways = {"modes": mode or (), "embedders": embedder or (), "splitters": chunker or ()}
        return evaluated(run, corpus, **ways, k=k, least=least_ndcg)
    if mode or embedder or chunker or least_ndcg:
        raise CommandError("--mode, --embedder, --chunker and --min-ndcg go with --corpus.", Code.USAGE)
    if questions is None:
        raise CommandError("Name a file of labelled questions, or a collection with --corpus.", Code.USAGE)
    if model and by_words:
        raise CommandError("Give --model or --baseline, not both.", Code.USAGE)
    if not questions.is_file():
        raise CommandError(f"There is no file {questions} of questions.", Code.USAGE)
    named = "" if by_words else (model or os.environ.get(MODEL_VARIABLE, "")).strip()
    with opened(run) as knowledge:
        backends = {backend.backend_name: backend.get_description() for backend in knowledge.builder.backends}
        try:
            asked = read_questions(questions, knowledge.configuration.backends, knowledge.configuration.agents)
        except ConfigurationError as error:
            return show_faults(run, error, f"{questions} can't be read, so that nothing was asked.")
        for warning in asked.warnings:
            run.out.warning(f"{warning}")
        run.out.note(f"Questions for {f'the model {named!r}' if named else 'the baseline'}: {len(asked.questions)}.")
        with run.out.progress("Asking…"):
            done = _asked(run, knowledge, asked, named)
        return _show(run, done, overlaps(backends), {"accuracy": least, "operation": least_operation, "answer": least_answer})


def _asked(run: Run, knowledge: Opened, asked: QuestionFile, model: str) -> Evaluation:
    def of_agent(agent: str | None) -> Answerer:
        whose = agent or run.options.agent
        if model:
            return _modelled(run, knowledge, whose, model)
        configuration = knowledge.configuration
        return baseline(configuration.builder if whose is None else configuration.builder_for(whose), asked.examples)

    return evaluate(asked.questions, of_agent, by_agent=True)


def _modelled(run: Run, knowledge: Opened, agent: str | None, model: str) -> Answerer:
    """Return what lets a model answer one question, which remembers none of the others.

    Raises:
        CommandError: No model can be asked at all: the SDK, the adapter or the key is not there.
    """

    def made() -> ModelRouter:
        return ModelRouter(knowledge, agent, model, run.options.timeout or _MODEL_SECONDS)

    def respond(question: str) -> Transcript:
        with closing(made()) as router:
            try:
                turn = router.answer(question)
            except CommandError as error:
                raise KnowledgeError(error.sentence) from error
        read = len(question) + len(turn.answer) + sum(len(call.text) for call in turn.calls)
        return Transcript(calls_of(call.event for call in turn.calls if call.event), turn.answer, read)

    made().close()
    return respond


def _show(run: Run, done: Evaluation, overlapping: Sequence[Overlap], least: Mapping[str, float]) -> Code:
    missed = _missed(done, least)
    if run.options.as_json:
        asked = {f"min_{name}": share for name, share in least.items()}
        found = {**asked, **done.to_dict(), "overlaps": [each.to_dict() for each in overlapping]}
        run.out.json({"ok": not missed, "command": run.name, **found})
    else:
        _tables(run, done, overlapping)
    for sentence in missed:
        run.out.error(sentence)
    return Code.FAILED if missed else Code.OK


def _missed(done: Evaluation, least: Mapping[str, float]) -> list[str]:
    """Say of each share that is asked for how far it was missed; one of which no question is labelled is missed."""
    reached = {
        "accuracy": (done.backend_accuracy, "of the questions went to the right backend"),
        "operation": (done.operation_accuracy, "of those that label an operation got it"),
        "answer": (done.answer_accuracy, "of those that label an answer got it"),
    }
    missed: list[str] = []
    for name, (share, what) in reached.items():
        if least[name] and share is None:
            missed.append(f"No question is labelled for --min-{name}.")
        elif share is not None and share < least[name]:
            missed.append(f"{share:.3f} {what}; --min-{name} asks for {least[name]:.3f}.")
    return missed


def _tables(run: Run, done: Evaluation, overlapping: Sequence[Overlap]) -> None:
    figures = done.to_dict()
    run.out.heading("Accuracy")
    shares = [(name, "–" if share is None else f"{share:.3f}") for name, share in figures["accuracy"].items()]
    run.out.table(["What", "Right"], shares)
    run.out.heading("Labelled (down) and chosen (across)")
    confusion = done.confusion
    chosen = list(dict.fromkeys(choice for row in confusion.values() for choice in row))
    rows = [[label, *(row.get(choice, 0) or "·" for choice in chosen)] for label, row in confusion.items()]
    run.out.table(["", *chosen], rows if run.out.is_terminal else [["", *chosen], *rows])
    run.out.heading("Cost")
    tokens, times = figures["tokens"], figures["milliseconds"]
    reckoned = " (reckoned at four characters each)" if tokens["reckoned"] else ""
    run.out.table(
        ["What", "Amount"],
        [
            ("tokens", f"{tokens['total']:,}{reckoned}"),
            ("time, all", f"{times['total']:,.0f} ms"),
            ("time, median", f"{times['median']:,.1f} ms"),
        ],
    )
    wrong = [result for result in done.results if not result.right_backend]
    if wrong:
        run.out.heading("Wrong")
        cells = [(each.question.text, each.question.backend or "none", each.error or each.backend or "none") for each in wrong]
        run.out.table(["Question", "Labelled", "Chosen"], cells)
    if overlapping:
        run.out.heading("Descriptions that overlap")
        run.out.text("\n".join(each.advice for each in overlapping))
