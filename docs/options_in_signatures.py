"""A griffe extension for the API reference, listed in mkdocs.yml.

mkdocstrings reads the source, where a learner is ``fit(X, y, sample_weight, options)`` and an
estimator's ``__init__`` has no arguments. The page shows what callers see: the options as keywords
(see `jaxrules.learning.options`), as the imported functions have them. Examples, which would be
read as Markdown, become blocks of code.
"""

import importlib
import inspect
import re
from typing import Any

import griffe

LEARNER, CONSTRUCTOR = "jaxrules.learning.options.learner", "jaxrules.estimators._constructor"


class OptionsInSignatures(griffe.Extension):
    """Gives decorated functions the signature and the docstring that they have at run time."""

    def on_instance(self, *, obj: Any, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = _with_blocks(obj.docstring.value)

    def on_function_instance(self, *, func: Any, **kwargs: Any) -> None:
        decorators = {decorator.callable_path for decorator in func.decorators}
        if not decorators & {LEARNER, CONSTRUCTOR}:
            return
        called: Any = importlib.import_module(func.module.path)
        for name in func.path.removeprefix(func.module.path + ".").split("."):
            called = getattr(called, name)
        func.parameters = griffe.Parameters(
            *map(_parameter, inspect.signature(called).parameters.values())
        )
        text = inspect.getdoc(called) or ""
        if LEARNER in decorators:
            func.docstring.value = _with_blocks(text)
        else:  # the page shows the class, not its __init__
            func.parent.docstring.value += "\n\n" + text[text.index("Args:\n") :]


def _with_blocks(text: str) -> str:
    """Each example, which ends at an empty line, as a block of code."""
    example = r"^( *)>>> .*(?:\n.*\S.*)*"
    return re.sub(example, r"\1```pycon\n\g<0>\n\1```", text, flags=re.MULTILINE)


def _parameter(given: inspect.Parameter) -> griffe.Parameter:
    none = inspect.Parameter.empty
    return griffe.Parameter(
        given.name,
        annotation=None if given.annotation is none else str(given.annotation),
        kind=griffe.ParameterKind(given.kind.description),
        default=None if given.default is none else repr(given.default),
    )
