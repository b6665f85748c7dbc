"""What the operating system does to a fit: Ctrl-C, and forks of the process."""

from __future__ import annotations

import contextlib
import contextvars
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

_ENCLOSING: contextvars.ContextVar[Interrupt | None] = contextvars.ContextVar(
    "enclosing", default=None
)


class Interrupt:
    """Ctrl-C, during a fit. Every one of them is one of these:

    - **deferred**: the first. It is remembered; the fit ends when it next asks (`pressed`),
      with its best model so far.
    - **raised**: a later one, inside a `block`. KeyboardInterrupt leaves the current step at once,
      and the caller of `block` swallows it.
    - **without effect**: a later one where raising would do harm. Outside of blocks (data
      are prepared, the result is put together) nothing would swallow it, nor while a block
      is entered or left. An import or a compilation that the fit has begun would stay half
      done for the whole process.
    - **forgotten**: the first, if nobody asks any more, because the fit is
      complete and about to return.
    - **not heard**: the user has a handler of SIGINT, or the shell lets it be ignored; that stays
      in force. Nor does a fit in another thread hear any (Python hands signals to the main thread),
      unless its caller hands one on by `enclosing`.

    A fit inside another one, in a progress callback say, leaves the signals to the outer one: its
    Ctrl-C counts for both. The user's words for all this are in docs/certificates.md.
    """

    def __init__(self) -> None:
        self.taken = False
        self._blocks = 0
        self._outer: Interrupt | None = None
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            self._outer = handler if isinstance(handler, Interrupt) else None
        else:
            self._outer = _ENCLOSING.get()

    @property
    def pressed(self) -> bool:
        """Whether the fit is to end."""
        return self.taken or (self._outer is not None and self._outer.pressed)

    def __call__(self, signal_number: int, frame: FrameType | None) -> None:
        """As the handler of SIGINT."""
        if self.taken and self._blocks and not _keeps_order(frame) and not _is_loading(frame):
            raise KeyboardInterrupt
        self.taken = True

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """While it takes the signals, in the place of Python's own handler."""
        ours = threading.current_thread() is threading.main_thread()
        ours = ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if ours:
            signal.signal(signal.SIGINT, self)
        try:
            yield
        finally:
            if ours and signal.getsignal(signal.SIGINT) is self:  # else a callback has set its own
                signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextlib.contextmanager
    def enclosing(self) -> Iterator[None]:
        """While the fits of this thread, if it is not the main one, end when this is `pressed`."""
        token = _ENCLOSING.set(self)
        try:
            yield
        finally:
            _ENCLOSING.reset(token)

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """While a later Ctrl-C raises; whoever enters it swallows KeyboardInterrupt."""
        with self.deferred() if self._outer is None else self._outer.block():
            self._blocks += 1
            try:
                yield
            finally:
                self._blocks -= 1


@contextlib.contextmanager
def whole_imports() -> Iterator[None]:
    """While modules are imported: Ctrl-C is raised after them. A package that was interrupted half
    way, JAX say, cannot be imported again in the same process.
    """
    interrupt = Interrupt()
    with interrupt.deferred():
        yield
    if interrupt.taken:
        raise KeyboardInterrupt


_ORDERLY = (__name__, "jaxrules.runs", "contextlib")
"""The modules whose code enters and leaves blocks."""
_LOADERS = ("importlib", "_frozen_importlib", "numba", "llvmlite", "jax", "jaxlib")
"""The packages that import and compile."""
_CALLS = ("jaxrules.guard", "jaxrules.options")
"""The modules that call every fit. What called them, say an import of the user's program,
is no concern of the fit.
"""


def _keeps_order(frame: FrameType | None) -> bool:
    """Whether a block is being entered or left."""
    return frame is not None and frame.f_globals.get("__name__") in _ORDERLY


def _is_loading(frame: FrameType | None) -> bool:
    """Whether the fit waits for an import or a compilation."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] in _LOADERS:
            return True
        frame = None if module in _CALLS else frame.f_back
    return False


class _Fork:
    """Whether this process was forked off one in which JAX had started: JAX waits there
    for threads that are not.
    """

    def __init__(self) -> None:
        self.is_child = self._started = False
        if hasattr(os, "register_at_fork"):  # Windows has no fork
            os.register_at_fork(before=self._before, after_in_child=self._after)

    def _before(self) -> None:
        # JAX says this in a private module alone. A release that does not have it counts as
        # started: a fit in the child is then refused, and does not hang
        # (tests/test_interrupts.py notices).
        bridge = sys.modules.get("jax._src.xla_bridge")
        self._started = getattr(bridge, "backends_are_initialized", lambda: True)()

    def _after(self) -> None:
        self.is_child = self.is_child or self._started


_FORK = _Fork()


def refuse_forks() -> None:
    """Do nothing, but in a process where a fit would wait for ever.

    Raises:
        RuntimeError: in a process forked off one that has used JAX.
    """
    if _FORK.is_child:
        raise RuntimeError(
            "this process was forked after JAX had started, and JAX does not work in such a "
            "process; start "
            'workers with multiprocessing.get_context("spawn") or joblib (loky), or fork before '
            "JAX is used"
        )
