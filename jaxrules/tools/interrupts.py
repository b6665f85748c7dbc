"""How the operating system can interfere with a fit: by Ctrl-C, and by forks of the process."""

from __future__ import annotations

import contextlib
import contextvars
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

from jaxrules.tools.contexts import within

_ENCLOSING: contextvars.ContextVar[Interrupt | None] = contextvars.ContextVar(
    "enclosing", default=None
)
_UNHEARD: contextvars.ContextVar[bool] = contextvars.ContextVar("unheard", default=False)


class Interrupt:
    """Ctrl-C during a fit. Each Ctrl-C is one of these:

    - **deferred**: the first one. It is remembered; the fit ends when it next asks (`pressed`),
      with its best model so far.
    - **raised**: a later one, inside a `block`. KeyboardInterrupt leaves the current step at once,
      and the caller of `block` swallows it.
    - **without effect**: a later one where raising would do harm. Outside of blocks (while data are
      prepared, or the result is assembled), and while a block is entered or left, nothing would
      swallow it. An import or a compilation that the fit has started would remain half done for the
      whole process.
    - **forgotten**: the first one, if nothing asks any more because the fit is complete and about
      to return.
    - **not received**: the user has a handler of SIGINT, or the shell started the process with
      SIGINT ignored; that stays in force. A fit in another thread receives none either (Python
      delivers signals to the main thread), unless its caller passes them on by `enclosing`.

    A fit inside another one, in a progress callback say, leaves signals to the outer one, whose
    Ctrl-C counts for both. docs/certificates.md explains all this to users.
    """

    def __init__(self) -> None:
        self.taken = False
        self._blocks = 0
        self._outer: Interrupt | None = None
        if _UNHEARD.get():
            return
        if threading.current_thread() is threading.main_thread():
            # A fit around this one, in the main thread, has made itself the handler.
            handler = signal.getsignal(signal.SIGINT)
            self._outer = handler if isinstance(handler, Interrupt) else None
        else:
            self._outer = _ENCLOSING.get()

    @property
    def pressed(self) -> bool:
        """Whether the fit is to end."""
        return self.taken or (self._outer is not None and self._outer.pressed)

    def __call__(self, signal_number: int, frame: FrameType | None) -> None:
        """Handle SIGINT."""
        if self.taken and self._blocks and not _keeps_order(frame) and not _is_loading(frame):
            raise KeyboardInterrupt
        self.taken = True

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """The context in which this receives signals instead of Python's own handler."""
        ours = threading.current_thread() is threading.main_thread()
        ours = ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if ours:
            signal.signal(signal.SIGINT, self)
        try:
            yield
        finally:
            if ours and signal.getsignal(signal.SIGINT) is self:  # else a callback has set its own
                signal.signal(signal.SIGINT, signal.default_int_handler)

    def enclosing(self) -> contextlib.AbstractContextManager[None]:
        """The context in which fits of this thread, if it is not the main one, end once this is
        `pressed`.
        """
        return within(_ENCLOSING, self)

    @staticmethod
    def unheard() -> contextlib.AbstractContextManager[None]:
        """The context in which fits ignore the Ctrl-C of the fit around them: for a little
        work that finds rules for a fit which was interrupted before it had any.
        """
        return within(_UNHEARD, True)

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """The context in which a later Ctrl-C raises; its caller must swallow KeyboardInterrupt."""
        # The outer fit receives the signals, so its count must know of this block.
        with self.deferred() if self._outer is None else self._outer.block():
            self._blocks += 1
            try:
                yield
            finally:
                self._blocks -= 1


@contextlib.contextmanager
def whole_imports() -> Iterator[None]:
    """A context for imports: Ctrl-C is raised only after them. A package whose import was
    interrupted, JAX say, cannot be imported again in the same process.
    """
    interrupt = Interrupt()
    with interrupt.deferred():
        yield
    if interrupt.taken:
        raise KeyboardInterrupt


_ORDERLY = (__name__, "jaxrules.tools.runs", "jaxrules.tools.contexts", "contextlib")
"""The modules whose code enters and leaves blocks."""
_LOADERS = ("importlib", "_frozen_importlib", "numba", "llvmlite", "jax", "jaxlib")
"""The packages that import and compile."""
_CALLS = ("jaxrules.learning.guard", "jaxrules.learning.options")
"""The modules that call every fit. Their callers, for example an import in the user's program, do
not matter to the fit.
"""


def _keeps_order(frame: FrameType | None) -> bool:
    """Whether a block is being entered or left."""
    return frame is not None and frame.f_globals.get("__name__") in _ORDERLY


def _is_loading(frame: FrameType | None) -> bool:
    """Whether the fit waits for an import or a compilation."""
    while frame is not None:
        # From the innermost frame outwards, as far as the call of the fit.
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] in _LOADERS:
            return True
        frame = None if module in _CALLS else frame.f_back
    return False


class _Fork:
    """Whether this process was forked from one in which JAX had started. There, JAX waits for
    threads that do not exist.
    """

    def __init__(self) -> None:
        self.is_child = self._started = False
        if hasattr(os, "register_at_fork"):  # Windows has no fork
            os.register_at_fork(before=self._before, after_in_child=self._after)

    def _before(self) -> None:
        # Only a private module of JAX reveals this. A release without it counts as started: a fit
        # in the child is then refused instead of hanging (tests/test_interrupts.py notices).
        bridge = sys.modules.get("jax._src.xla_bridge")
        self._started = getattr(bridge, "backends_are_initialized", lambda: True)()

    def _after(self) -> None:
        self.is_child = self.is_child or self._started


_FORK = _Fork()


def refuse_forks() -> None:
    """Refuse to run in a process where a fit would hang.

    Raises:
        RuntimeError: in a process forked from one that has used JAX.
    """
    if _FORK.is_child:
        raise RuntimeError(
            "this process was forked after JAX had started, and JAX does not work in such a "
            "process; start "
            'workers with multiprocessing.get_context("spawn") or joblib (loky), or fork before '
            "JAX is used"
        )
