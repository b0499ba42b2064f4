"""Failures in the words of this protocol: what the engine calls messages is the input here."""

from dataclasses import replace

from mtplx_client.wire.error import ErrorReply
from mtplx_server.errors import Problem
from mtplx_server.protocols.openai_error import error_reply


def in_words(problem: Problem) -> Problem:
    """The same failure, of a field that the request has."""
    return replace(problem, param="input") if problem.param == "messages" else problem


def error(problem: Problem, request_id: str) -> ErrorReply:
    """OpenAI's envelope around it."""
    return error_reply(in_words(problem), request_id)
