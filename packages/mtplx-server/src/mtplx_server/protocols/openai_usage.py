"""Token counts as Chat Completions and Completions write them."""

from mtplx_client.wire.usage import CompletionTokensDetails, PromptTokensDetails, Usage
from mtplx_server.protocols.report import Counts


def usage(counts: Counts) -> Usage:
    """The token counts of all answers together."""
    return Usage(
        prompt_tokens=counts.prompt,
        completion_tokens=counts.completion,
        total_tokens=counts.prompt + counts.completion,
        prompt_tokens_details=PromptTokensDetails(cached_tokens=counts.cached),
        completion_tokens_details=CompletionTokensDetails(reasoning_tokens=counts.reasoning),
    )
