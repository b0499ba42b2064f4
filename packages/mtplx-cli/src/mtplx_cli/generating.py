"""Running one prompt: text to stdout as it comes, everything else to stderr."""

import json
import sys
from dataclasses import asdict, dataclass

from rich.console import Console

from mtplx_cli.console import status_console
from mtplx_cli.opening import open_engine
from mtplx_engine import (
    ChatRequest,
    ChatResult,
    EngineOptions,
    Finished,
    Generation,
    ReasoningDelta,
    TextDelta,
)


@dataclass(frozen=True, slots=True)
class Output:
    """What to write.

    Attributes:
        show_reasoning: Reasoning goes to stderr even if that is not a terminal.
        stats: A summary goes to stderr at the end.
        as_json: One JSON object goes to stdout instead of streamed text.
    """

    show_reasoning: bool
    stats: bool
    as_json: bool


def generate(request: ChatRequest, options: EngineOptions, output: Output) -> None:
    """Open an engine, answer the request and write the answer.

    Raises:
        EngineError: The model cannot be loaded or the request cannot be answered.
        KeyboardInterrupt: Ctrl-C; the generation is cancelled.
    """
    console = status_console()
    with open_engine(options, console, verbose=console.is_terminal) as engine:
        generation = engine.submit(request)
        try:
            if output.as_json:
                result = generation.result()
                print(_as_json(engine.model.id, result))  # noqa: T201
                finished = result.finished
            else:
                finished = _stream(generation, console, output)
        finally:
            generation.cancel()
    if output.stats:
        for line in _summary(finished):
            console.print(line, markup=False)


def _stream(generation: Generation, console: Console, output: Output) -> Finished:
    reasoning = output.show_reasoning or console.is_terminal
    thinking = False
    for event in generation:
        match event:
            case ReasoningDelta(text) if reasoning:
                console.print(text, end="", style="dim", markup=False)
                thinking = True
            case TextDelta(text):
                if thinking:
                    console.print()
                    thinking = False
                sys.stdout.write(text)
                sys.stdout.flush()
            case Finished():
                sys.stdout.write("\n")
                sys.stdout.flush()
                return event
    raise AssertionError("a generation ended without Finished")


def _as_json(model: str, result: ChatResult) -> str:
    finished = result.finished
    content = {
        "model": model,
        "text": result.text,
        "reasoning": result.reasoning,
        "finish_reason": finished.reason,
        "stop_sequence": finished.stop_sequence,
        "usage": asdict(finished.usage),
        "speculation": asdict(finished.speculation),
        "timings": asdict(finished.timings),
        "kv": None if finished.kv is None else str(finished.kv),
    }
    return json.dumps(content)


def _summary(finished: Finished) -> list[str]:
    usage, timings, speculation = finished.usage, finished.timings, finished.speculation
    # The first token comes with the prompt, so decoding made one token less.
    decoded = usage.completion_tokens - 1
    speed = f"{decoded / timings.decode_s:.1f} tok/s" if timings.decode_s > 0 else "-"
    lines = [
        f"{usage.prompt_tokens} prompt tokens in {timings.prefill_s:.2f} s,"
        f" {usage.completion_tokens} tokens in {timings.decode_s:.2f} s ({speed})"
    ]
    if speculation.mode == "plain":
        return [*lines, f"plain decoding, {speculation.rounds} rounds"]
    per_round = f"{decoded / speculation.rounds:.2f} tokens a round" if speculation.rounds else "-"
    rates = (
        f"{accepted / drafted:.0%} of {drafted}" if drafted else "-"
        for drafted, accepted in zip(speculation.drafted, speculation.accepted, strict=True)
    )
    lines += [
        f"{speculation.mode}, {speculation.acceptance}, {speculation.rounds} rounds, {per_round}",
        f"accepted by position: {', '.join(rates) or '-'}; depth {speculation.depth} at the end",
    ]
    if speculation.copied:
        lines.append(f"copied: {speculation.copies_accepted} of {speculation.copied} accepted")
    return lines
