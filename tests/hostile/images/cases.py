"""Folders and files of images that hurt, and how a command must end."""

import itertools
import os
import shutil
import subprocess

from tests.hostile.runner import Case

LEVELS = 24
EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 16 16
%%EndComments
(/tmp/keras_dml_ran) (w) file closefile
showpage
%%EOF
"""


def first_class(images):
    return sorted(images.iterdir())[0]


def loops(images):
    inside = first_class(images)
    (images / "loop").symlink_to(images / "loop")
    (images / "again").symlink_to(images)
    (inside / "above").symlink_to(images)
    (inside / "self.png").symlink_to("self.png")


def doubling_links(images):
    """24 folders of two links each: 2**24 ways to the last of them."""
    levels = [images.parent / f"level{number}" for number in range(LEVELS)]
    for folder, target in itertools.pairwise(levels):
        folder.mkdir()
        for name in "ab":
            (folder / name).symlink_to(target)
    shutil.copytree(first_class(images), levels[-1])
    (images / "links").symlink_to(levels[0])


def deep(images):
    """Folders in each other, whose path is longer than a path may be."""
    script = (
        "import os\nfor _ in range(25):\n"
        " os.mkdir('d' * 200); os.chdir('d' * 200)"
    )
    subprocess.run(["python3", "-c", script], cwd=images, check=True)


def pipe(images):
    os.mkfifo(first_class(images) / "pipe.png")


def device(images):
    (first_class(images) / "zero.png").symlink_to("/dev/zero")


def huge(images):
    """A whole terabyte, of which the disk holds nothing."""
    with open(first_class(images) / "huge.png", "wb") as file:
        file.truncate(2**40)


def bad_names(images):
    folder = images / os.fsdecode(b"caf\xe9")
    shutil.copytree(first_class(images), folder)
    first = sorted(folder.iterdir())[0]
    first.rename(folder / os.fsdecode(b"\xff\xfe.png"))


def odd_names(images):
    folder = images / "new\nline\x1b[31m"
    shutil.copytree(first_class(images), folder)
    first = sorted(folder.iterdir())[0]
    first.rename(folder / " %s {0} `k`\t\u202e.png")


def postscript(images):
    (first_class(images) / "eps.jpg").write_bytes(EPS)


def unreadable(images):
    """Files of other formats that Pillow knows, under the name of a JPEG."""
    from PIL import Image

    picture = Image.new("RGB", (16, 16))
    for kind in ("PPM", "TGA", "ICO", "PDF", "PCX"):
        picture.save(first_class(images) / f"{kind}.jpg", kind)


def folders_as_images(images):
    (first_class(images) / "folder.png").mkdir()


def only_bad(images):
    for path in images.glob("*/*.png"):
        path.write_bytes(b"no image")


def pipe_in_a_list(images):
    pipe(images)
    (images / "list.csv").write_text("path\nclass_00/pipe.png\nno.png\n")


EMBED = ("embed", "<run>", "<images>", "--output", "<out>")
FIT = (
    *("fit", "<images>", "--output", "<out>", "--backbone", "small_cnn"),
    *("--set", "sampling.steps_per_epoch=1", "--epochs", "1"),
    *("--no-export", "--no-report"),
)
SKIPPED = "Skipped 1 images|1 bad"


def _case(name, command, harm, message="", code=0, **options):
    return Case(
        f"{name}: {command[0]}", command, message, code, harm, **options
    )


CASES = [
    _case("links that loop", FIT, loops, "528 in 44 classes"),
    _case("links that loop", EMBED, loops, apart=True),
    _case("links that double", EMBED, doubling_links, "more than 100 ways", 2),
    _case("folders too deep", EMBED, deep, "must be readable", 2),
    _case("a pipe", EMBED, pipe, SKIPPED, apart=True, quick=True),
    _case("a pipe", FIT, pipe),
    _case("a device", EMBED, device, SKIPPED, apart=True),
    _case("a device", FIT, device),
    _case("a terabyte", EMBED, huge, SKIPPED, apart=True),
    _case("a terabyte", FIT, huge, "more than the limit of", apart=True),
    _case("names that are no UTF-8", EMBED, bad_names),
    _case("names that are no UTF-8", FIT, bad_names),
    _case("names with control characters", EMBED, odd_names),
    _case("names with control characters", FIT, odd_names),
    _case("EPS named .jpg", EMBED, postscript, SKIPPED),
    _case("EPS named .jpg", FIT, postscript, "not an image of a known format"),
    _case("other formats named .jpg", EMBED, unreadable, "5 bad"),
    _case("a folder named .png", EMBED, folders_as_images),
    _case("a folder named .png", FIT, folders_as_images),
    _case("no image at all", EMBED, only_bad, "None of the", 1),
    _case("no image at all", FIT, only_bad, "may be unreadable", 2),
    Case(
        "a list of a pipe and of nothing: embed",
        ("embed", "<run>", "<images>/list.csv", "--output", "<out>"),
        "None of the 2 images",
        1,
        pipe_in_a_list,
        apart=True,
    ),
    Case(
        "a pipe to search for",
        ("search", "<run>", "<images>/class_00/pipe.png"),
        "it is no regular file",
        2,
        pipe,
        apart=True,
    ),
    Case(
        "a device to search for",
        ("search", "<run>", "/dev/zero"),
        "it is no regular file",
        apart=True,
    ),
    Case(
        "a device as a source",
        ("embed", "<run>", "/dev/zero", "--output", "<out>"),
        "no known data set",
    ),
]
