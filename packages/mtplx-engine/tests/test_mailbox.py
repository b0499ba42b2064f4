"""The mailbox: nothing lost, nobody kept waiting, whatever the reader does."""

import asyncio
import threading

import pytest

from mtplx_engine.errors import EngineFailed
from mtplx_engine.runtime.mailbox import Mailbox, Piece


def test_what_waits_comes_in_one_piece() -> None:
    mailbox = Mailbox()
    for text in "abc":
        mailbox.put(Piece((text,)))
    assert mailbox.take() == Piece(("a", "b", "c"))


def test_an_error_is_raised_after_what_came_before_it() -> None:
    mailbox = Mailbox()
    mailbox.put(Piece(("a",)))
    mailbox.put(EngineFailed("gone"))
    assert mailbox.take() == Piece(("a",))
    with pytest.raises(EngineFailed, match="gone"):
        mailbox.take()


def test_waits_that_are_given_up_lose_nothing() -> None:
    """As a server's keep-alive does it: many short waits while another thread writes."""
    mailbox = Mailbox()
    total = 3000

    def write() -> None:
        for number in range(total):
            mailbox.put(Piece((str(number),)))

    async def read() -> list[str]:
        seen: list[str] = []
        while len(seen) < total:
            try:
                async with asyncio.timeout(0.0002):
                    seen += (await mailbox.take_async()).texts  # type: ignore[union-attr]
            except TimeoutError:
                continue
        return seen

    writer = threading.Thread(target=write)
    writer.start()
    assert asyncio.run(read()) == [str(number) for number in range(total)]
    writer.join()


def test_a_reader_whose_loop_has_ended_does_not_harm_the_writer() -> None:
    mailbox = Mailbox()

    async def leave() -> None:
        waiting = asyncio.create_task(mailbox.take_async())
        await asyncio.sleep(0)
        waiting.cancel()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    loop.close()
    mailbox.put(Piece(("late",)))
    assert mailbox.take() == Piece(("late",))
