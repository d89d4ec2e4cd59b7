"""Embeds the images of a pattern on any runner of Apache Beam.

    python -m keras_dml.embed.beam_job --model RUN --images PATTERN \\
        --output PREFIX [--root PREFIX] [options of the runner]

writes `PREFIX-*.parquet` with the columns `id` and `embedding`, and
`PREFIX.bad-*.csv` with the id and the reason of each image that cannot be
decoded.
"""

import argparse
from collections.abc import Sequence

import apache_beam as beam
import pyarrow
from apache_beam.options.pipeline_options import PipelineOptions

from keras_dml.embed.beam import MAX_PIXELS, EmbedImages, ReadImages
from keras_dml.files import csv_text

SCHEMA = pyarrow.schema(
    [("id", pyarrow.string()), ("embedding", pyarrow.list_(pyarrow.float32()))]
)


def run(arguments: Sequence[str] | None = None) -> None:
    """Runs the job and waits for its end.

    Args:
        arguments: Strings, the options of the command line and of the runner.
            Defaults to `None`, the arguments of this process.
    """
    known, others = _parser().parse_known_args(arguments)
    with beam.Pipeline(options=PipelineOptions(others)) as pipeline:
        images = pipeline | "Images" >> ReadImages(known.images, known.root)
        result = images | "Embeddings" >> EmbedImages(
            known.model, known.batch_size, known.max_pixels
        )
        (
            result.embedded
            | "Rows" >> beam.Map(_row)
            | "Write"
            >> beam.io.WriteToParquet(
                known.output,
                SCHEMA,
                file_name_suffix=".parquet",
                num_shards=known.shards,
            )
        )
        (
            result.bad
            | "Lines" >> beam.Map(_line)
            | "List"
            >> beam.io.WriteToText(
                f"{known.output}.bad",
                file_name_suffix=".csv",
                num_shards=1,
                header="id,reason",
            )
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="All other options go to the runner.",
    )
    parser.add_argument(
        "--model", required=True, help="run folder or exported SavedModel"
    )
    parser.add_argument(
        "--images", required=True, help="pattern, such as gs://shop/**.jpg"
    )
    parser.add_argument(
        "--output", required=True, help="what the names of files start with"
    )
    parser.add_argument(
        "--root", default="", help="what to cut off names to make ids"
    )
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--max-pixels", type=int, default=MAX_PIXELS)
    parser.add_argument(
        "--shards", type=int, default=0, help="files; 0 lets Beam choose"
    )
    return parser


def _row(item):
    name, embedding = item
    return {"id": name, "embedding": embedding.tolist()}


def _line(item):
    return csv_text([item]).removesuffix("\n")


if __name__ == "__main__":
    run()
