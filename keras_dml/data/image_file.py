"""Which files are opened as images, decided before any is decoded.

The content of a file decides what it is, not its name.
"""

import os
import stat
from typing import Any

# 256 MiB of RGB; above this limit Pillow warns of a decompression bomb.
MAX_PIXELS = 2**28 // 3
# What so many pixels take in RGB of 16 bits, without compression.
MAX_BYTES = 6 * MAX_PIXELS
# Pillow knows more, and starts Ghostscript for one of them.
IMAGE_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")


def open_image(file: Any) -> Any:
    """Opens an image of one of `IMAGE_FORMATS` with Pillow.

    Args:
        file: A path or a binary stream.

    Raises:
        OSError: If it is no image of these formats.
    """
    from PIL import Image

    return Image.open(file, formats=IMAGE_FORMATS)


def reason_unopened(path: str | os.PathLike[str]) -> str:
    """Says why a file must not be opened as an image; empty if it may be.

    Reading a pipe would wait forever, and a device never ends.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return "no such file"
    except (OSError, ValueError) as error:
        return f"it cannot be read ({getattr(error, 'strerror', error)})"
    if not stat.S_ISREG(status.st_mode):
        return "it is no regular file"
    if status.st_size > MAX_BYTES:
        return (
            f"it has {status.st_size:,} bytes, more than the limit of "
            f"{MAX_BYTES:,}"
        )
    return ""
