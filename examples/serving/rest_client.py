"""Embeds image files, or finds their neighbors, by TensorFlow Serving's REST.

    python rest_client.py photo.jpg
    python rest_client.py --k 5 photo.jpg other.png

Needs nothing but Python. `--k` asks a model exported `--with-index`; with
`--manifest EXPORT/manifest.json` an image whose neighbors are all too far is
said to match none.
"""

import argparse
import base64
import json
import urllib.error
import urllib.request


def make_request(images, k=None):
    """The endpoint's name and the body of a request for image files' bytes."""
    instances = []
    for content in images:
        encoded = base64.b64encode(content).decode("ascii")
        instance = {"image_bytes": {"b64": encoded}}
        if k is not None:
            # One for each image, so that a server may join requests.
            instance["k"] = k
        instances.append(instance)
    name = "serve_image_bytes" if k is None else "neighbors"
    body = {"signature_name": name, "instances": instances}
    return name, json.dumps(body).encode("ascii")


def predict(url, images, k=None, model="embedder", timeout=30.0):
    """One dict for each image: "embedding", or "ids", "labels" and "scores".

    Each also has "ok".
    """
    _, body = make_request(images, k)
    request = urllib.request.Request(
        f"{url}/v1/models/{model}:predict",
        body,
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)["predictions"]
    except urllib.error.HTTPError as error:
        try:
            message = json.load(error).get("error", error.reason)
        except ValueError:
            # A page of something between here and the server.
            message = f"{error.code} {error.reason}"
        raise SystemExit(f"The server refused: {message}") from error
    except (urllib.error.URLError, TimeoutError) as error:
        reason = getattr(error, "reason", error)
        raise SystemExit(f"No server answers at {url}: {reason}") from error


def read_threshold(path):
    """The score that a match reaches, or `None` where the run has none."""
    with open(path, encoding="utf-8") as file:
        threshold = json.load(file)["threshold"]
    return None if threshold is None else threshold["score"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", nargs="+", help="image files")
    parser.add_argument("--url", default="http://localhost:8501")
    parser.add_argument("--model", default="embedder")
    parser.add_argument("--k", type=int, help="find that many neighbors")
    parser.add_argument(
        "--manifest", help="manifest.json of the export: tells what matches"
    )
    arguments = parser.parse_args()
    least = read_threshold(arguments.manifest) if arguments.manifest else None
    contents = []
    for path in arguments.images:
        try:
            with open(path, "rb") as file:
                contents.append(file.read())
        except OSError as error:
            raise SystemExit(
                f"{path} cannot be read: {error.strerror}."
            ) from error
    answers = predict(
        arguments.url, contents, arguments.k, model=arguments.model
    )
    for path, answer in zip(arguments.images, answers, strict=True):
        if not answer["ok"]:
            print(f"{path}: no image that can be decoded")
        elif arguments.k is None:
            print(path, answer["embedding"])
        else:
            unknown = least is not None and answer["scores"][0] < least
            print(f"{path}: no match" if unknown else path)
            columns = (answer[key] for key in ("ids", "labels", "scores"))
            found = zip(*columns, strict=True)
            for one, label, score in list(found)[: arguments.k]:
                # Lower than any score: fewer references than asked for.
                if score > -1e30:
                    print(f"  {score:.4f}  {label}  {one}")


if __name__ == "__main__":
    main()
