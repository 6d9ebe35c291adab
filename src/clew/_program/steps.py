"""Functions that run in steps (generators, coroutines) in regions: each step is one of its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["in_steps"]

_Region = Callable[[], AbstractContextManager[Any]]


def in_steps(function: Callable[..., Any], region: _Region) -> Callable[..., Any] | None:
    """A generator function or coroutine function whose steps run in regions.

    Args:
        function: any callable.
        region: makes the context of a step.
    Returns:
        None where the function does not run in steps.
    """
    if inspect.isgeneratorfunction(function):
        return lambda *args, **kwargs: _generator(function(*args, **kwargs), region)
    if inspect.iscoroutinefunction(function):

        async def run(*args: Any, **kwargs: Any) -> Any:
            return await _Stepped(function(*args, **kwargs), region)

        return run
    if inspect.isasyncgenfunction(function):
        return lambda *args, **kwargs: _async_generator(function(*args, **kwargs), region)
    return None


def _generator(inner: Generator[Any, Any, Any], region: _Region) -> Generator[Any, Any, Any]:
    """Between two steps no region is open."""
    step: Callable[[], Any] = functools.partial(next, inner)
    try:
        while True:
            with region():
                try:
                    given = step()
                except StopIteration as end:  # no error that the region should see
                    return end.value
            try:
                step = functools.partial(inner.send, (yield given))
            except GeneratorExit:
                raise
            except BaseException as error:
                step = functools.partial(inner.throw, error)
    finally:
        inner.close()


class _Stepped:
    """A coroutine whose steps are regions."""

    def __init__(self, inner: Any, region: _Region) -> None:
        self._inner, self._region = inner, region

    def __await__(self) -> Generator[Any, Any, Any]:
        return _generator(self._inner.__await__(), self._region)


async def _async_generator(
    inner: AsyncGenerator[Any, Any], region: _Region
) -> AsyncGenerator[Any, Any]:
    given: Any = None
    try:
        while True:
            try:
                value = await _Stepped(inner.asend(given), region)
            except StopAsyncIteration:
                return
            given = yield value
    finally:
        await inner.aclose()
