"""Let links from the documents to files outside ``docs/`` lead to the repository.

On a disk and on GitHub ``../data/README.md`` leads to the file; on the site there is no such page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_OUTSIDE = re.compile(r"\]\(((?:\.\./|examples/|notebooks/|results/)[^)\s]*)\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Replace the targets of such links; a file that is not there is an error."""
    root = Path(config["docs_dir"]).parent

    def to_repository(match: re.Match[str]) -> str:
        path = (root / "docs" / Path(page.file.src_uri).parent / match[1]).resolve()
        if not path.exists():
            raise FileNotFoundError(f"{page.file.src_uri} links to {match[1]}, which does not exist")
        kind = "tree" if path.is_dir() else "blob"
        return f"]({config['repo_url']}/{kind}/main/{path.relative_to(root.resolve()).as_posix()})"

    return _OUTSIDE.sub(to_repository, markdown)
