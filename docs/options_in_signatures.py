"""A griffe extension for the API reference, listed in mkdocs.yml.

mkdocstrings reads the source, where a learner is ``fit(X, y, sample_weight, options)`` and an
estimator's ``__init__`` has no arguments. The page shows what callers see: the options as keywords
(see `jaxrules.options`), as the imported functions have them.
"""

import importlib
import inspect
from typing import Any

import griffe

LEARNER, CONSTRUCTOR = "jaxrules.options.learner", "jaxrules.estimators._constructor"


class OptionsInSignatures(griffe.Extension):
    """Gives decorated functions the signature and the docstring that they have at run time."""

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
            func.docstring.value = text
        else:  # the page shows the class, not its __init__
            func.parent.docstring.value += "\n\n" + text[text.index("Args:\n") :]


def _parameter(given: inspect.Parameter) -> griffe.Parameter:
    none = inspect.Parameter.empty
    return griffe.Parameter(
        given.name,
        annotation=None if given.annotation is none else str(given.annotation),
        kind=griffe.ParameterKind(given.kind.description),
        default=None if given.default is none else repr(given.default),
    )
