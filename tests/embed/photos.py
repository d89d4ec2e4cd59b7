"""What is embedded of the photos of `conftest`, and why others are not."""

from keras_dml.embed.embedder import ImageEmbedder

BAD = {
    "cut.jpg": "JPEG",
    "empty.jpg": "the file is empty",
    "large.png": "it has 810,000 pixels, more than the limit of 800,000",
    "letter, sent.jpg": "it is not an image of a known format",
}


def expected(run, photos):
    """One image at a time."""
    embedder = ImageEmbedder(run, max_pixels=800_000)
    found = {}
    for path in sorted(photos.rglob("*.*g")):
        (result,) = embedder.embed_bytes([path.read_bytes()])
        found[path.relative_to(photos).as_posix()] = result
    return found
