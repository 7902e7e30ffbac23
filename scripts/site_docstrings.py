"""Show docstrings as ``help`` does where a class is given its docstring when it is imported."""

from __future__ import annotations

import inspect
from typing import Any

import griffe


class ImportedDocstrings(griffe.Extension):
    """Take docstrings with a place to be filled in from the imported class."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the text that stands in the source."""
        if cls.docstring is not None and "<parameters>" in cls.docstring.value:
            cls.docstring.value = inspect.getdoc(griffe.dynamic_import(cls.path)) or ""
