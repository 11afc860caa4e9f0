#!/usr/bin/env python3
"""Computes the entropy tables for the compression of small objects.

Trains a Zstandard dictionary with the objects in tests/recordings, as the catalog stores them, and writes its header to
src/catalog/entropy_tables.bin: the magic number, an id of 0, the entropy tables and the first offsets. The catalog adds
its own content to this header. Needs the program `zstd`. Run it in the root folder of the repository.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

RECORDINGS = pathlib.Path("tests/recordings")
OUTPUT = pathlib.Path("src/catalog/entropy_tables.bin")
UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# The offsets at the end of the header. The content of a dictionary follows them.
OFFSETS = b"".join(offset.to_bytes(4, "little") for offset in (1, 4, 8))


def objects(value):
    """Returns the Kubernetes objects in a JSON value."""
    if isinstance(value, list):
        return [found for item in value for found in objects(item)]
    if not isinstance(value, dict):
        return []
    if isinstance(value.get("kind"), str) and isinstance(value.get("metadata"), dict):
        return [value]
    return [found for item in value.values() for found in objects(item)]


def packed(item):
    """Returns the JSON text of an object, with packed UUIDs, as src/catalog/uuids.rs writes it."""
    text = json.dumps(item, separators=(",", ":"), ensure_ascii=False).encode()
    return UUID.sub(lambda uuid: b"\xff" + bytes.fromhex(uuid[0].replace(b"-", b"").decode()), text)


def main():
    recordings = sorted(RECORDINGS.rglob("*.jsonl"))
    lines = [line for recording in recordings for line in recording.read_text().splitlines()]
    samples = sorted({packed(item) for line in lines for item in objects(json.loads(line))})
    with tempfile.TemporaryDirectory() as folder:
        for number, sample in enumerate(samples):
            pathlib.Path(folder, f"{number:06}").write_bytes(sample)
        trained = pathlib.Path(folder, "trained")
        arguments = ["zstd", "-q", "-1", "--train", "-r", folder, "--maxdict=8192", "-o", str(trained)]
        subprocess.run(arguments, check=True)
        dictionary = trained.read_bytes()
    header = dictionary[: dictionary.index(OFFSETS) + len(OFFSETS)]
    # With another id, each compressed object would contain it.
    OUTPUT.write_bytes(header[:4] + bytes(4) + header[8:])
    print(f"{OUTPUT}: {len(header)} bytes from {len(samples)} objects", file=sys.stderr)


if __name__ == "__main__":
    main()
