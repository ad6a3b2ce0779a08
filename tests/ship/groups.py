"""Prints the functions in groups, a line each. The functions of a group have the same dependencies.

cargo gives the packages of one build the features of all of them. In a group these are the
features that each has alone, so cargo may build the group at once, on several cores.
"""

import pathlib
import tomllib

groups = {}
root = pathlib.Path(__file__).resolve().parents[2]
for manifest in sorted(root.glob("functions/*/Cargo.toml")):
    package = tomllib.loads(manifest.read_text())
    groups.setdefault(repr(package["dependencies"]), []).append(package["package"]["name"])
for functions in groups.values():
    print(*functions)
