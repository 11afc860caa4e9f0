#!/usr/bin/env python3
"""Writes an OCI image archive without a container engine: a static binary and CA certificates on an empty base. The same input gives
the same bytes.

    image.py --out dist/portcullis-0.1.0-image.tar --name portcullis:0.1.0 --version 0.1.0 --revision COMMIT --source URL \\
        --created 1700000000 --certificates /etc/ssl/certs/ca-certificates.crt linux/amd64=target/.../portcullis
"""

import argparse
import datetime
import gzip
import hashlib
import io
import json
import pathlib
import struct
import tarfile

MEDIA = "application/vnd.oci.image."
MACHINES = {"amd64": 62, "arm64": 183}
PT_INTERP = 3
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("out", "name", "version", "revision", "source"):
        arguments.add_argument(f"--{name}", required=True)
    arguments.add_argument("--created", type=int, default=0, help="seconds since 1970: the time of the commit")
    arguments.add_argument("--certificates", type=pathlib.Path, help="CA certificates of the web, PEM")
    arguments.add_argument("binaries", nargs="+", metavar="PLATFORM=FILE")
    given = arguments.parse_args()
    blobs = {}
    manifests = [image(given, blobs, *binary.split("=", 1)) for binary in given.binaries]
    names = {"org.opencontainers.image.ref.name": given.version, "io.containerd.image.name": qualified(given.name)}
    index = {"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": manifests}
    top = dict(put(blobs, MEDIA + "index.v1+json", encoded(index)), annotations=names)
    files = {
        "oci-layout": encoded({"imageLayoutVersion": "1.0.0"}),
        "index.json": encoded({"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": [top]}),
    }
    files.update({f"blobs/sha256/{digest}": data for digest, data in sorted(blobs.items())})
    pathlib.Path(given.out).write_bytes(tar(given, [(name, data, 0o644) for name, data in files.items()]))
    print(f"{given.out} sha256:{hashlib.sha256(pathlib.Path(given.out).read_bytes()).hexdigest()}")


def qualified(name):
    """containerd wants a registry in front of the name."""
    first = name.split("/", 1)[0]
    has_registry = "/" in name and ("." in first or ":" in first or first == "localhost")
    return name if has_registry else f"docker.io/{name if '/' in name else 'library/' + name}"


def encoded(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def put(blobs, media_type, data):
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def image(given, blobs, platform, path):
    system, arch = platform.split("/", 1)
    binary = pathlib.Path(path).read_bytes()
    check_static(path, binary, arch)
    entries = [("portcullis", binary, 0o755)]
    entries.append(("etc/passwd", b"nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n", 0o644))
    if given.certificates:
        entries.append((CERTIFICATES, given.certificates.read_bytes(), 0o644))
    layer = tar(given, entries)
    compressed = gzip.compress(layer, 9, mtime=0)
    created = datetime.datetime.fromtimestamp(given.created, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "portcullis",
        "org.opencontainers.image.description": "Admission control for composed configuration",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.source": given.source,
        "org.opencontainers.image.version": given.version,
        "org.opencontainers.image.revision": given.revision,
    }
    config = {
        "architecture": arch, "os": system, "created": created,
        "config": {
            "User": "65532:65532", "Entrypoint": ["/portcullis"], "Cmd": ["serve"], "WorkingDir": "/",
            "ExposedPorts": {"9443/tcp": {}, "8080/tcp": {}}, "Labels": labels,
            "Env": [f"SSL_CERT_FILE=/{CERTIFICATES}"] if given.certificates else [],
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created": created, "created_by": "make image-archive"}],
    }
    manifest = {
        "schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json",
        "config": put(blobs, MEDIA + "config.v1+json", encoded(config)),
        "layers": [put(blobs, MEDIA + "layer.v1.tar+gzip", compressed)],
    }
    described = put(blobs, MEDIA + "manifest.v1+json", encoded(manifest))
    return dict(described, platform={"architecture": arch, "os": system})


def check_static(path, binary, arch):
    """A dynamically linked binary does not start on an empty base."""
    if binary[:6] != b"\x7fELF\x02\x01":
        raise SystemExit(f"{path}: not a 64-bit ELF binary")
    (machine,) = struct.unpack_from("<H", binary, 18)
    if machine != MACHINES.get(arch):
        raise SystemExit(f"{path}: not a binary for {arch}")
    (offset,) = struct.unpack_from("<Q", binary, 32)
    size, count = struct.unpack_from("<HH", binary, 54)
    if any(struct.unpack_from("<I", binary, offset + at * size)[0] == PT_INTERP for at in range(count)):
        raise SystemExit(f"{path}: dynamically linked; build it for a musl target, or with -C target-feature=+crt-static")


def tar(given, entries):
    raw = io.BytesIO()
    folders = sorted({str(parent) for name, _, _ in entries for parent in pathlib.PurePosixPath(name).parents if str(parent) != "."})
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in folders:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, given.created
            archive.addfile(entry)
        for name, data, mode in entries:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), mode, given.created
            archive.addfile(entry, io.BytesIO(data))
    return raw.getvalue()


if __name__ == "__main__":
    main()
