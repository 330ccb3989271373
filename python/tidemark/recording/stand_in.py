"""Builds the stand-in for the CUDA runtime, and the environment of a process that is to use it.

Two C files beside this one answer what PyTorch needs an answer to. All else that its CUDA
libraries import from the runtime, cuBLAS and cuFFT answers 0, by functions that are made here from the
libraries' own lists. What would start kernels counts them. A third file, modes.c, keeps our dispatch
modes from changing what operators do.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from .errors import CaptureError

HERE = pathlib.Path(__file__).parent
LIBRARIES = ("libtorch_cuda.so", "libc10_cuda.so", "libtorch_python.so")
# Of the names with two underscores others register kernels, which the runtime itself does.
ANSWERED = ("cuda", "cublas", "cufft", "__cudaLaunchKernel")
STARTS_KERNELS = re.compile(
    r"gemm|gemv|dot|LtMatmul$|cufftXtExec|LaunchKernel|Memset|trsm|geqrf|getr[fs]|gels", re.IGNORECASE)


def torch_folder() -> pathlib.Path:
    """Where PyTorch is installed; nothing of it is loaded."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise CaptureError("no PyTorch in this Python: pip install torch (2.6 or newer, of Linux "
                           "with CUDA; no GPU is needed)")
    return pathlib.Path(found.origin).parent


def tool(name: str, package: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise CaptureError(f"no {name}: install a C compiler (apt install {package})")
    return path


def run(*command: object) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise CaptureError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")
    return done.stdout


def imported_names(libraries: list[pathlib.Path]) -> set[str]:
    names: set[str] = set()
    for library in libraries:
        for line in run(tool("nm", "binutils"), "-D", "--undefined-only", library).splitlines():
            names.add(line.split()[-1].split("@")[0])
    return {name for name in names if name.startswith(ANSWERED) and not name.startswith("cudaProfiler")}


def answers(names: set[str], written: str) -> str:
    """C functions that answer 0, for what is not written by hand."""
    lines = ["extern long stand_in_launches;"]
    for name in sorted(names):
        if f" {name}(" in written:
            continue
        count = "++stand_in_launches; " if STARTS_KERNELS.search(name) else ""
        lines.append(f"int {name}(void) {{ {count}return 0; }}")
    return "\n".join(lines) + "\n"


def header_folder(site: pathlib.Path) -> pathlib.Path:
    found = sorted(site.glob("nvidia/**/include/driver_types.h"))
    if not found:
        raise CaptureError(f"no CUDA headers in {site}/nvidia: this PyTorch is built without CUDA "
                           "(pip install torch on Linux brings them; no GPU is needed)")
    return found[0].parent


def runtime_version(headers: pathlib.Path) -> str:
    """As the runtime itself says it: 13020 for CUDA 13.2."""
    found = re.search(r"#define +CUDART_VERSION +(\d+)",
                      (headers / "cuda_runtime_api.h").read_text(encoding="utf-8"))
    if found is None:
        raise CaptureError(f"{headers}/cuda_runtime_api.h does not say its version")
    return found.group(1)


def build(folder: pathlib.Path) -> None:
    """libstand_in.so, which is preloaded, and libcuda.so.1, which PyTorch looks for by name."""
    torch = torch_folder()
    libraries = [torch / "lib" / name for name in LIBRARIES]
    if not libraries[0].exists():
        raise CaptureError(f"{torch} is built without CUDA: pip install torch on Linux brings a "
                           "build with it; no GPU is needed")
    headers = header_folder(torch.parent)
    source = HERE / "stand_in.c"
    rest = folder / "answers.c"
    rest.write_text(answers(imported_names(libraries), source.read_text()))
    flags = ["-shared", "-fPIC", "-O1", "-w", f"-I{headers}",
             f"-DSTAND_IN_VERSION={runtime_version(headers)}"]
    compiler = tool("cc", "gcc")
    run(compiler, *flags, source, HERE / "modes.c", rest, "-ldl", "-o", folder / "libstand_in.so")
    run(compiler, *flags, HERE / "driver.c", "-o", folder / "libcuda.so.1")


def cache_folder() -> pathlib.Path:
    """One per PyTorch and source, so that the libraries are built once."""
    torch = torch_folder()
    key = hashlib.sha256()
    for part in (HERE / "stand_in.c", HERE / "modes.c", HERE / "driver.c", pathlib.Path(__file__),
                 torch / "version.py"):
        key.update(part.read_bytes() if part.exists() else b"")
    key.update(str(torch).encode())
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "tidemark" / f"stand-in-{key.hexdigest()[:16]}"


def built() -> pathlib.Path:
    """The folder with both libraries. They are made aside and renamed: two may start at once."""
    folder = cache_folder()
    if folder.exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = pathlib.Path(tempfile.mkdtemp(dir=folder.parent))
    except OSError as error:
        raise CaptureError(f"cannot write {folder.parent}: {error.strerror} (XDG_CACHE_HOME names "
                           "another folder)") from error
    try:
        build(aside)
        try:
            aside.rename(folder)
        except OSError:  # another process was first
            pass
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def has_gpu() -> bool:
    return any(pathlib.Path("/dev").glob("nvidia[0-9]*")) or os.path.exists("/dev/nvidiactl")


def environment(capability: int, multiprocessors: int | None = None, memory: int | None = None,
                name: str | None = None) -> dict[str, str]:
    """For a process whose CUDA device is the stand-in. Memory and name are told, and limit nothing."""
    folder = built()
    ours = dict(LD_PRELOAD=str(folder / "libstand_in.so"), LD_LIBRARY_PATH=str(folder),
                TIDEMARK_STAND_IN="ready", STAND_IN_SM=str(capability), CUDA_VISIBLE_DEVICES="0")
    said = dict(MULTIPROCESSORS=multiprocessors, MEMORY=memory, NAME=name)
    ours.update((f"STAND_IN_{key}", str(value)) for key, value in said.items() if value is not None)
    for key in ("LD_PRELOAD", "LD_LIBRARY_PATH"):
        if os.environ.get(key):
            ours[key] += ":" + os.environ[key]
    # What the shell says of PyTorch's allocator is for a real device. The variable has another name
    # since PyTorch 2.9, which warns of the older one even where that says nothing.
    ours_alone = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    return {**{key: text for key, text in os.environ.items() if key not in ours_alone}, **ours}
