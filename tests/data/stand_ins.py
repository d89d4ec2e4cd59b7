"""Small stand-ins of the data sets in the formats they are published in."""

import numpy as np
import scipy.io
from PIL import Image


def write_image(path, shade=128, size=(12, 10), **options):
    """Writes a small picture whose left half is darker."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((*size, 3), shade, dtype=np.uint8)
    pixels[:, : size[1] // 2] //= 2
    Image.fromarray(pixels).save(path, **options)
    return path


def write_classes(root, counts, suffix=".jpg"):
    """Writes a folder of class folders with so many images each."""
    for label, (name, count) in enumerate(counts.items()):
        (root / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            shade = 20 + 30 * label % 200 + number
            write_image(root / name / f"{number}{suffix}", shade)
    return root


def write_empty_files(folder, count):
    """Writes empty files 0.jpg, 1.jpg, ... and returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{number}.jpg" for number in range(count)]
    for name in names:
        (folder / name).touch()
    return names


def spread(total, classes):
    """Divides images among classes as evenly as possible."""
    return [
        total // classes + (label < total % classes) for label in range(classes)
    ]


def linked_names(root, sub_folders, files_per_folder):
    """Names of images in folders that are all links to one folder.

    So a set of 120,000 images exists at the price of a few hundred files.
    """
    files = write_empty_files(root / "linked", files_per_folder)
    names = []
    for folder in sub_folders:
        link = root / folder
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(root / "linked", target_is_directory=True)
        names += [f"{folder}/{file}" for file in files]
    return names


def write_cub200(root, names, classes, missing_label=False):
    """Writes the three lists of CUB-200-2011; classes count from 1."""
    root.mkdir(parents=True, exist_ok=True)
    numbers = range(1, len(names) + 1)
    rows = list(zip(numbers, names, classes, strict=True))
    (root / "images.txt").write_text(
        "".join(f"{number} {name}\n" for number, name, _ in rows)
    )
    (root / "image_class_labels.txt").write_text(
        "".join(
            f"{number} {label}\n" for number, _, label in rows[missing_label:]
        )
    )
    (root / "bounding_boxes.txt").write_text(
        "".join(f"{number} 1.0 2.0 30.0 40.0\n" for number, _, _ in rows)
    )


def _annotations(names, classes, columns):
    """A structure of scalars, one per image, as MATLAB writes it."""
    kinds = {name: object for name in columns}
    rows = np.zeros((1, len(names)), dtype=list(kinds.items()))
    for row, (name, label) in enumerate(zip(names, classes, strict=True)):
        values = {
            "bbox_x1": 1,
            "bbox_y1": 2,
            "bbox_x2": 30,
            "bbox_y2": 40,
            "class": label,
            "test": row % 2,
            "relative_im_path": name,
            "fname": name,
        }
        for column in columns:
            rows[0, row][column] = values[column]
    return rows


BOX = ["bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2"]


def write_cars_annos(root, names, classes):
    """Writes `cars_annos.mat`, where the path comes first."""
    root.mkdir(parents=True, exist_ok=True)
    columns = ["relative_im_path", *BOX, "class", "test"]
    scipy.io.savemat(
        root / "cars_annos.mat",
        {"annotations": _annotations(names, classes, columns)},
    )


def write_cars_kit(root, train, test):
    """Writes the kit's two lists, where the name comes last."""
    (root / "devkit").mkdir(parents=True, exist_ok=True)
    columns = [*BOX, "class", "fname"]
    for file, (names, classes) in (
        ("cars_train_annos", train),
        ("cars_test_annos_withlabels", test),
    ):
        scipy.io.savemat(
            root / "devkit" / f"{file}.mat",
            {"annotations": _annotations(names, classes, columns)},
        )


def write_sop(root, train, test):
    """Writes both lists; each part is (names, classes from 1)."""
    root.mkdir(parents=True, exist_ok=True)
    number = 0
    for part, (names, classes) in (("train", train), ("test", test)):
        lines = ["image_id class_id super_class_id path"]
        for name, label in zip(names, classes, strict=True):
            number += 1
            lines.append(f"{number} {label} {label % 12 + 1} {name}")
        text = "\n".join(lines) + "\n"
        (root / f"Ebay_{part}.txt").write_text(text)


def write_inshop(root, names, items, statuses):
    """Writes the list of In-Shop, aligned by white space."""
    (root / "Eval").mkdir(parents=True, exist_ok=True)
    lines = [str(len(names)), "image_name item_id evaluation_status"]
    lines += [
        f"{name}    {item}   {status}"
        for name, item, status in zip(names, items, statuses, strict=True)
    ]
    text = "\n".join(lines) + "\n"
    (root / "Eval" / "list_eval_partition.txt").write_text(text)
