"""Prints the functions in groups, a line each. The functions of a group use the same features of the runtime.

cargo gives the packages of one build the features of all of them. In a group these are the
features that each has alone, so cargo may build the group at once, on several cores. All other
crates have the same features in all groups: a test of tests/template compares them.
"""

import pathlib
import tomllib

groups = {}
root = pathlib.Path(__file__).resolve().parents[2]
for manifest in sorted(root.glob("functions/*/Cargo.toml")):
    package = tomllib.loads(manifest.read_text())
    features = frozenset(package["dependencies"]["a2a-lambda"]["features"])
    groups.setdefault(features, []).append(package["package"]["name"])
for functions in groups.values():
    print(*functions)
