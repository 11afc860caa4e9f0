"""The build backend of pyproject.toml: a wheel without files, which requires the wheel with the binary in the version of Cargo.toml.

pre-commit runs `pip install .` in a checkout, so its hook needs no Rust compiler. Nothing has to be installed to build this wheel.
"""

import pathlib
import re

import packages

NAME = "portcullis_pre_commit"
CARGO = packages.HERE.parent.parent / "Cargo.toml"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version = re.search(r'^version = "(.*)"$', CARGO.read_text(), re.MULTILINE)[1]
    requirement = f"{packages.project(packages.WHEEL)}=={version}"
    path = pathlib.Path(wheel_directory) / f"{NAME}-{version}-py3-none-any.whl"
    packages.write_wheel(path, NAME, version, ["py3-none-any"], f"Requires-Dist: {requirement}\n", [])
    return path.name
