#!/usr/bin/env python3
"""check.py PROGRAM: files of NumPy and of safetensors' reference implementation go through PROGRAM (copy_file) and come
back the same, bit for bit; files that it is to refuse are refused."""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors
import safetensors.numpy

import make_samples

program = sys.argv[1]
checked = 0


def check(ok, what):
    global checked
    checked += 1
    if not ok:
        sys.exit(f"check.py: {what}")


def copy(source, target):
    return subprocess.run([program, source, target], capture_output=True, text=True)


def equal(a, b):
    return a.dtype.newbyteorder("=") == b.dtype and a.shape == b.shape and \
        np.ascontiguousarray(a.astype(b.dtype)).tobytes() == b.tobytes()


def check_npy(folder, name, array, version=None):
    source, target = folder / f"{name}.npy", folder / f"{name}.copy.npy"
    make_samples.write(source, array, version)
    result = copy(source, target)
    check(result.returncode == 0, f"{name}: {result.stderr}")
    read = np.load(target, allow_pickle=False)
    check(read.flags.c_contiguous and equal(array, read), f"{name}: came back as {read.dtype} {read.shape}")


def random_array(rng, kind, shape):
    bits = np.asarray(rng.integers(-2**63, 2**63 - 1, size=shape))
    if kind == "b1":
        return np.asarray(bits % 2 == 0)
    if kind == "f4":  # any bits, those of NaNs too
        return bits.astype("int32").view("float32")
    return bits.view("float64") if kind == "f8" else bits


def main():
    rng = np.random.default_rng(0)
    shapes = [(), (1,), (7,), (0,), (3, 0, 2), (2, 3), (5, 1, 4), (2, 3, 4, 5), (2, 1, 2, 1, 2, 1, 2, 3)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind in make_samples.DTYPES:
            for number, shape in enumerate(shapes):
                array = random_array(rng, kind, shape)
                for order in "CF":
                    for byte_order in "<>":
                        kept = np.asarray(array, dtype=np.dtype(byte_order + kind), order=order)
                        for version in ((1, 0), (2, 0), (3, 0)):
                            check_npy(folder, f"{kind}.{number}.{order}{'lb'[byte_order == '>']}{version[0]}", kept, version)
        for dtype in ("float16", "int32", "uint8", "complex64", "U3", "O"):
            source = folder / f"{dtype}.npy"
            np.save(source, np.zeros(3, dtype=dtype))
            result = copy(source, folder / "refused.npy")
            check(result.returncode == 1 and source.name in result.stderr and "dtype" in result.stderr,
                  f"{dtype}: {result.stderr}")

        tensors = {f"{kind}.{number}": random_array(rng, kind, shape)
                   for kind in make_samples.DTYPES for number, shape in enumerate(shapes)}
        metadata = {"step": "7", "naïve": "\"quoted\" \u2028 \U0001f600"}
        source, target = folder / "reference.safetensors", folder / "copy.safetensors"
        safetensors.numpy.save_file(tensors, source, metadata=metadata)
        result = copy(source, target)
        check(result.returncode == 0, result.stderr)
        read = safetensors.numpy.load_file(target)
        check(read.keys() == tensors.keys(), f"names: {sorted(read)}")
        for key, array in tensors.items():
            check(equal(array, read[key]), f"{key} came back as {read[key].dtype} {read[key].shape}")
        with safetensors.safe_open(target, framework="numpy") as file:
            check(file.metadata() == metadata, f"metadata: {file.metadata()}")
        safetensors.numpy.save_file({"w": np.zeros(3, dtype="float16")}, source)
        result = copy(source, target)
        check(result.returncode == 1 and '"w"' in result.stderr and "F16" in result.stderr, result.stderr)
    print(f"{checked} checks; NumPy {np.__version__}, safetensors {safetensors.__version__}")


main()
