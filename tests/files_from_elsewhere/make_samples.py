#!/usr/bin/env python3
"""make_samples.py FOLDER: writes the sample files with NumPy and the reference implementation of safetensors.

Each holds values[i] = i for whole numbers and i / 4 - 1 for others, counted in row-major order, and i % 2 == 0 for
bool, so that a reader in another language knows what to expect. Names say dtype, byte order, memory order, version.
"""
import pathlib
import sys

import numpy as np
import safetensors.numpy

DTYPES = {"f4": "float32", "f8": "float64", "i8": "int64", "b1": "bool"}


def values(kind, shape):
    counted = np.arange(int(np.prod(shape)))
    if kind == "b1":
        counted = counted % 2 == 0
    elif kind != "i8":
        counted = counted / 4 - 1
    return counted.reshape(shape).astype(DTYPES[kind])


def write(path, array, version=None):
    with open(path, "wb") as file:
        np.lib.format.write_array(file, array, version=version)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for kind in DTYPES:
        array = values(kind, (2, 3, 4))
        for order in "CF":
            for byte_order, word in (("<", "little"), (">", "big")):
                if kind == "b1" and byte_order == ">":
                    continue
                kept = np.asarray(array.astype(byte_order + kind), order=order)
                write(folder / f"{kind}.{word}.{order}.npy", kept)
    for version in (1, 2, 3):
        write(folder / f"f4.version{version}.npy", values("f4", (2, 3)), (version, 0))
    write(folder / "f8.scalar.npy", values("f8", ()))
    write(folder / "i8.one.npy", values("i8", (5,)))
    write(folder / "f4.empty.npy", values("f4", (2, 0, 3)))
    write(folder / "f2.unsupported.npy", values("f4", (2,)).astype("float16"))
    write(folder / "fields.unsupported.npy", np.zeros(2, dtype=[("a", "f4"), ("b", "i8")]))
    tensors = {f"tensor.{kind}": values(kind, (2, 3, 4)) for kind in DTYPES}
    tensors["scalar"] = values("f8", ())
    tensors["empty"] = values("f4", (2, 0, 3))
    tensors["naïve \"name\""] = values("i8", (5,))
    safetensors.numpy.save_file(tensors, folder / "reference.safetensors", metadata={"made by": "safetensors", "é": "ü"})


if __name__ == "__main__":
    main()
