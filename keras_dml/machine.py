"""The memory of this machine."""

import os
import sys
from pathlib import Path

# The limit of a container, where there is one.
CONTAINER = Path("/sys/fs/cgroup/memory.max")


def machine_memory() -> int:
    """Returns the bytes of memory that this process may use."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows.
        return sys.maxsize
    limit = CONTAINER.read_text().strip() if CONTAINER.is_file() else "max"
    return found if limit == "max" else min(found, int(limit))
