"""Reads several generations at once."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from mtplx_engine.events import Event
from mtplx_engine.runtime.generation import Generation

Burst = tuple[int, list[Event]]
_Heard = asyncio.Queue[tuple[int, list[Event] | Exception]]


async def bursts(generations: Sequence[Generation]) -> AsyncIterator[Burst]:
    """What the generations say, as it comes, each with its number; ends when all have ended.

    Raises:
        EngineError: Of the first generation that fails.
    """
    if len(generations) == 1:
        while events := await generations[0].burst():
            yield 0, events
        return
    heard = _Heard(maxsize=1)  # what comes while nobody listens makes longer bursts
    readers = [asyncio.create_task(_read(at, each, heard)) for at, each in enumerate(generations)]
    speaking = len(readers)
    try:
        while speaking:
            at, said = await heard.get()
            if isinstance(said, Exception):
                raise said
            if said:
                yield at, said
            else:
                speaking -= 1
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def _read(at: int, generation: Generation, heard: _Heard) -> None:
    """Pass on all bursts of a generation, an empty one at its end, or what went wrong."""
    try:
        while events := await generation.burst():
            await heard.put((at, events))
        await heard.put((at, []))
    except Exception as error:
        await heard.put((at, error))
