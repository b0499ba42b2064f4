"""Token counts and statistics of some answers to one request, for all protocols."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from mtplx_client.wire.usage import Report
from mtplx_engine.constraint import Grammar, JsonObject, JsonSchema, Lark, Regex
from mtplx_engine.events import Finished


@dataclass(frozen=True, slots=True)
class Asked:
    """What a report tells of the request.

    Attributes:
        request_id: The same as the `x-request-id` header.
        model: Id of the served model.
        requested_model: The name that the request used.
        ignored_fields: Request fields that had no effect.
        choices: Answers to each prompt.
        grammar: What gives the answers their form.
        effort: The level of thinking.
    """

    request_id: str
    model: str
    requested_model: str | None
    ignored_fields: list[str]
    choices: int = 1
    grammar: str | None = None
    effort: str | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Token counts of all answers to one request: one counter behind the usage of all protocols.

    Attributes:
        prompt: Of the prompts; one that several answers share is counted once.
        cached: Those of them that were not computed again.
        completion: Tokens drawn, end tokens and reasoning included.
        reasoning: Those of them that were reasoning.
    """

    prompt: int = 0
    cached: int = 0
    completion: int = 0
    reasoning: int = 0


def count(finished: Sequence[Finished], choices: int) -> Counts:
    """Count.

    Args:
        finished: The ends of all answers, in order.
        choices: Answers to each prompt.
    """
    return Counts(
        prompt=sum(each.usage.prompt_tokens for each in finished[::choices]),
        completion=sum(each.usage.completion_tokens for each in finished),
        reasoning=sum(each.usage.reasoning_tokens for each in finished),
    )


def form(grammar: Grammar | None) -> str | None:
    """The name of what gives an answer its form."""
    match grammar:
        case JsonObject():
            return "json_object"
        case JsonSchema():
            return "json_schema"
        case Lark():
            return "lark"
        case Regex():
            return "regex"
        case _:
            return None


def report(finished: Sequence[Finished], asked: Asked) -> Report:
    """Statistics of all answers together."""
    how, first = [each.speculation for each in finished], finished[0]
    counts = count(finished, asked.choices)
    rounds = sum(each.rounds for each in how)
    drafted = _by_position([each.drafted for each in how])
    accepted = _by_position([each.accepted for each in how])
    times = [each.timings for each in finished]
    queue, prefill = max(each.queue_s for each in times), max(each.prefill_s for each in times)
    decode = max(each.decode_s for each in times)
    calls = [each.calls for each in finished if each.calls is not None]
    # The first token of an answer comes with the prompt.
    decoded = sum(max(each.usage.completion_tokens - 1, 0) for each in finished)
    return Report(
        request_id=asked.request_id,
        model=asked.model,
        requested_model=asked.requested_model,
        mode=how[0].mode,
        depth=how[0].depth,
        acceptance=how[0].acceptance,
        rounds=rounds,
        drafted=drafted,
        accepted=accepted,
        acceptance_rate=_ratio(sum(accepted), sum(drafted)),
        tokens_per_round=_ratio(decoded, rounds),
        copied=sum(each.copied for each in how),
        copies_accepted=sum(each.copies_accepted for each in how),
        forced=sum(each.forced for each in how),
        prompt_tokens=counts.prompt,
        cached_tokens=counts.cached,
        completion_tokens=counts.completion,
        reasoning_tokens=counts.reasoning,
        queue_s=round(queue, 6),
        prefill_s=round(prefill, 6),
        decode_s=round(decode, 6),
        first_token_s=round(queue + prefill, 6),
        total_s=round(queue + prefill + decode, 6),
        prefill_tokens_per_s=_ratio(counts.prompt, prefill),
        tokens_per_s=_ratio(decoded, decode) if decoded > 0 else None,
        peak_memory=max(each.peak_memory for each in finished),
        kv=None if first.kv is None else str(first.kv),
        stop_sequence=first.stop_sequence,
        grammar=asked.grammar,
        effort=asked.effort,
        tool_dialect=calls[0].dialect if calls else None,
        tool_calls=sum(each.complete for each in calls),
        broken_calls=sum(each.broken for each in calls),
        dropped_calls=sum(each.dropped for each in calls),
        ignored_fields=asked.ignored_fields,
    )


def _by_position(counts: Sequence[tuple[int, ...]]) -> list[int]:
    return [sum(column) for column in zip_longest(*counts, fillvalue=0)]


def _ratio(value: float, of: float) -> float | None:
    return round(value / of, 3) if of > 0 else None
