#!/usr/bin/env python3
"""Writes packages from the release archives in a folder: wheels, a krew manifest with its archives, a Homebrew formula, and a
registry entry for mise and aqua. All of them come from platforms.json. The same archives give the same bytes.

    packages.py --version 0.1.0 --repository OWNER/portcullis --dist dist
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import pathlib
import tarfile
import zipfile

HERE = pathlib.Path(__file__).parent
NAME = "portcullis"
# The name on PyPI. The command is portcullis.
WHEEL = "portcullis_admission"
SUMMARY = "Admission control for composed Kubernetes configuration"
EPOCH = (1980, 1, 1, 0, 0, 0)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--version", required=True)
    arguments.add_argument("--repository", required=True, help="OWNER/NAME on GitHub")
    arguments.add_argument("--dist", type=pathlib.Path, default=pathlib.Path("dist"))
    given = arguments.parse_args()
    platforms = json.loads((HERE / "platforms.json").read_text())
    found = [dict(platform, **archive(given, platform)) for platform in platforms if path_of(given, platform).is_file()]
    if not found:
        raise SystemExit(f"{given.dist}: no archive {NAME}-{given.version}-TARGET.tar.gz; run `make dist` first")
    for platform in found:
        wheel(given, platform)
        krew_archive(given, platform)
    write(given, f"{NAME}-krew.yaml", krew(given, found))
    write(given, f"{NAME}.rb", formula(given, found))
    write(given, f"{NAME}-aqua.yaml", aqua(given, found))


def path_of(given, platform):
    return given.dist / f"{NAME}-{given.version}-{platform['target']}.tar.gz"


def archive(given, platform):
    path = path_of(given, platform)
    with tarfile.open(path) as tar:
        binary = tar.extractfile(NAME).read()
    url = f"https://github.com/{given.repository}/releases/download/v{given.version}/{path.name}"
    return {"binary": binary, "url": url, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def write(given, name, text):
    (given.dist / name).write_text(text)
    print(given.dist / name)


def wheel(given, platform):
    """A wheel whose only content is the binary, in the folder of scripts."""
    tags = [f"py3-none-{tag}" for tag in platform["wheel"].split(".")]
    binary = (f"{WHEEL}-{given.version}.data/scripts/{NAME}", platform["binary"], 0o755)
    path = given.dist / f"{WHEEL}-{given.version}-py3-none-{platform['wheel']}.whl"
    write_wheel(path, WHEEL, given.version, tags, f"Home-page: https://github.com/{given.repository}\n", [binary])
    print(path)


def project(name):
    """The name on PyPI."""
    return name.replace("_", "-")


def write_wheel(path, name, version, tags, fields, files):
    """Writes a wheel with these files, and these fields in its metadata."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {project(name)}\nVersion: {version}\nSummary: {SUMMARY}\n"
    metadata += f"License: Apache-2.0\nRequires-Python: >=3.8\n{fields}"
    files = files + [
        (f"{info}/METADATA", metadata.encode(), 0o644),
        (f"{info}/WHEEL", ("Wheel-Version: 1.0\nGenerator: packages.py\nRoot-Is-Purelib: false\n"
                           + "".join(f"Tag: {tag}\n" for tag in tags)).encode(), 0o644),
    ]
    record = "".join(f"{file},sha256={digest(data)},{len(data)}\n" for file, data, _ in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, data, mode in files:
            entry = zipfile.ZipInfo(file, EPOCH)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def krew_archive(given, platform):
    """krew requires the license in the archive."""
    path = given.dist / f"kubectl-{NAME}-{given.version}-{platform['os']}-{platform['arch']}.tar.gz"
    license_text = (HERE.parent.parent / "LICENSE").read_bytes()
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, data, mode in ((f"kubectl-{NAME}", platform["binary"], 0o755), ("LICENSE", license_text, 0o644)):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    path.write_bytes(gzip.compress(raw.getvalue(), 9, mtime=0))
    platform["krew"] = {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    print(path)


def krew(given, platforms):
    text = f"""apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: {NAME}
spec:
  version: v{given.version}
  homepage: https://github.com/{given.repository}
  shortDescription: Check composed configuration before you apply it
  description: |
    Checks manifests, kustomize trees, Landscaper Installations and Crossplane Compositions
    with the rules of the admission webhook, and explains decisions.
  platforms:
"""
    for platform in platforms:
        base = platform["url"].rsplit("/", 1)[0]
        text += f"""    - selector:
        matchLabels: {{os: {platform['os']}, arch: {platform['arch']}}}
      uri: {base}/{platform['krew']['name']}
      sha256: {platform['krew']['sha256']}
      bin: kubectl-{NAME}
"""
    return text


def formula(given, platforms):
    text = f"""class Portcullis < Formula
  desc "{SUMMARY}"
  homepage "https://github.com/{given.repository}"
  version "{given.version}"
  license "Apache-2.0"

"""
    names = {("darwin", "arm64"): "OS.mac? && Hardware::CPU.arm?", ("linux", "amd64"): "OS.linux? && Hardware::CPU.intel?",
             ("linux", "arm64"): "OS.linux? && Hardware::CPU.arm?"}
    for platform in platforms:
        text += f"""  if {names[(platform['os'], platform['arch'])]}
    url "{platform['url']}"
    sha256 "{platform['sha256']}"
  end
"""
    return text + f"""
  def install
    bin.install "{NAME}"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/{NAME} --version")
  end
end
"""


def aqua(given, platforms):
    owner, name = given.repository.split("/", 1)
    text = f"""packages:
  - type: github_release
    repo_owner: {owner}
    repo_name: {name}
    asset: {NAME}-{{{{trimV .Version}}}}-{{{{.Arch}}}}-{{{{.OS}}}}.tar.gz
    format: tar.gz
    replacements: {{amd64: x86_64, arm64: aarch64, linux: unknown-linux-musl, darwin: apple-darwin}}
    checksum: {{type: github_release, asset: SHA256SUMS, algorithm: sha256}}
    supported_envs: [{', '.join(f"{platform['os']}/{platform['arch']}" for platform in platforms)}]
    files: [{{name: {NAME}}}]
"""
    return text


if __name__ == "__main__":
    main()
