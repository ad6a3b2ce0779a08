"""Prints the size of the package of each function, and fails if one is larger than its limit.

It fails too if two functions have the sources of different builds.

usage: sizes.py FOLDER            of `sam build`; fails too if a program is not for arm64
       sizes.py FOLDER --here     of `cargo build --release`, for this machine

Lambda loads and maps a package at each cold start.
"""

import io
import pathlib
import re
import struct
import sys
import zipfile

# `e_machine` of an ELF file for arm64.
ARM64 = 183

# What a C compiler makes of `__DATE__`.
DATE = re.compile(rb"\0((?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d{4})\0")

# The sources of the skills in a program: their hashes are the identity of the build.
SOURCES = re.compile(rb"a2a-lambda-sources:[0-9a-f]{16}")

# The most bytes of a package, in MB. docs/performance.md says what is in them.
LIMITS = {
    "agent-card": 1.8,
    "authorizer": 3.2,
    "ops": 5.2,
    "push": 4.6,
    "relay": 2.8,
    "rpc": 6.8,
    "sweep": 5.0,
    "tasks-get": 5.3,
    "tasks-send": 6.8,
    "tasks-stream": 6.8,
    "worker": 6.2,
}


def function(name):
    """The name of a function: `RpcFunction` is `rpc`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name.removesuffix("Function")).lower()


def size(place):
    """Bytes of a folder or a program as a zip."""
    packed = io.BytesIO()
    files = [place] if place.is_file() else sorted(it for it in place.rglob("*") if it.is_file())
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.relative_to(place.parent))
    return len(packed.getvalue())


def machine(program):
    """The machine of an ELF file."""
    with open(program, "rb") as file:
        head = file.read(20)
    return struct.unpack_from("<H", head, 18)[0] if head[:4] == b"\x7fELF" else None


def main(built, here):
    built = pathlib.Path(built)
    if here:
        programs = sorted(it for it in (built / name for name in LIMITS) if it.is_file())
    else:
        programs = sorted(built.glob("*/bootstrap"))
    faults, builds = [], {}
    known = {function(it.name if here else it.parent.name): it for it in programs}
    for name in sorted(LIMITS.keys() - known.keys()):
        faults.append(f"{built} has no function {name}")
    for name, program in known.items():
        packed = size(program) if here else size(program.parent)
        print(f"{name:<14} {program.stat().st_size:>10} bytes, packed {packed:>9}, at most {LIMITS.get(name, 0)} MB")
        if packed > LIMITS.get(name, 0) * 1_000_000:
            faults.append(f"the package of {name} has {packed} bytes")
        # The C code of the allocator: `.cargo/config.toml` sets its date.
        if dates := set(DATE.findall(program.read_bytes())) - {b"Jan  1 1970"}:
            faults.append(f"{name} contains the date of its build: {dates}")
        if sources := frozenset(SOURCES.findall(program.read_bytes())):
            builds[name] = sources
        if not here and machine(program) != ARM64:
            faults.append(f"{name} is for another machine than arm64")
    # Those that serve an agent have its skills.
    if missing := LIMITS.keys() - builds.keys() - {"authorizer", "push", "relay"}:
        faults.append(f"no identity of the build is in {sorted(missing)}")
    if len(set(builds.values())) > 1:
        faults.append(f"the functions are of different builds: {builds}")
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(2)
    sys.exit(main(sys.argv[1], "--here" in sys.argv[2:]))
