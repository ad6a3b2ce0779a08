"""Prints the size of the package of each function that `sam build` made.

Fails if a program is not for arm64.
"""

import io
import pathlib
import struct
import sys
import zipfile

# `e_machine` of an ELF file for arm64.
ARM64 = 183


def size(folder):
    """Bytes of the folder as a zip."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(it for it in folder.rglob("*") if it.is_file()):
            archive.write(file, file.relative_to(folder))
    return len(packed.getvalue())


def machine(program):
    """The machine of an ELF file."""
    with open(program, "rb") as file:
        head = file.read(20)
    return struct.unpack_from("<H", head, 18)[0] if head[:4] == b"\x7fELF" else None


def main(built):
    programs = sorted(pathlib.Path(built).glob("*/bootstrap"))
    faults = [] if programs else [f"{built} has no functions"]
    for program in programs:
        name = program.parent.name
        print(f"{name:<22} {program.stat().st_size:>10} bytes, packed {size(program.parent):>9}")
        if machine(program) != ARM64:
            faults.append(f"{name} is for another machine than arm64")
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
