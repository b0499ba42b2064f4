"""Reads several generations at once."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from mtplx_engine.events import Event
from mtplx_engine.runtime.generation import Generation

Burst = tuple[int, list[Event]]


async def bursts(generations: Sequence[Generation]) -> AsyncIterator[Burst]:
    """What the generations say, as it comes, each with its number; ends when all have ended.

    Raises:
        EngineError: Of the first generation that fails.
    """
    if len(generations) == 1:
        while events := await generations[0].burst():
            yield 0, events
        return
    reading = {_read(at, each): at for at, each in enumerate(generations)}
    try:
        while reading:
            done, _ = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=reading.__getitem__):
                at = reading.pop(task)
                if events := task.result():
                    reading[_read(at, generations[at])] = at
                    yield at, events
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


def _read(at: int, generation: Generation) -> asyncio.Task[list[Event]]:
    return asyncio.create_task(generation.burst(), name=f"answer {at}")
