"""Whether a small file system can be mounted here, for tests of what a full disk does."""

from __future__ import annotations

import shutil
import subprocess
import tempfile

MOUNT, UMOUNT = (shutil.which(name) or name for name in ("mount", "umount"))


def why_not() -> str:
    """Return why no small file system can be mounted here, or nothing."""
    with tempfile.TemporaryDirectory() as place:
        try:
            subprocess.run(
                [MOUNT, "-t", "tmpfs", "-o", "size=64k", "tmpfs", place],
                check=True,
                capture_output=True,
                text=True,
            )
        except OSError as error:
            return str(error)
        except subprocess.CalledProcessError as error:
            return str(error.stderr).strip()
        subprocess.run([UMOUNT, place], check=True)
    return ""
