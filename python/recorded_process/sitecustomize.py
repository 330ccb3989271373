"""What a recorded process runs before its own code: the user's sitecustomize, then a hook that, once
PyTorch uses a GPU, lets its allocator remember what it does; at the end that is left as a file beside
the recording. Nothing here may fail loudly or change what the program does."""

import os as _os
import sys as _sys

_HERE = _os.path.dirname(_os.path.abspath(__file__))
_MOST_EVENTS = 1_000_000  # of the allocator: a ring of the last ones
_MOST_MARKS = 1_000_000


def _run_the_users():
    import importlib.machinery
    import importlib.util

    _sys.path[:] = [path for path in _sys.path if _os.path.abspath(path or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", _sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    _sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


class _Torch:
    """What is recorded of PyTorch in this process."""

    def __init__(self, torch, folder):
        self.torch = torch
        self.pid = _os.getpid()
        self.base = _os.path.join(folder, str(self.pid))
        self.marks = []  # when the first optimizer ended its steps, in nanoseconds since 1970
        self.optimizer = None
        torch.cuda._lazy_call(self.start)

    def start(self):
        """Runs when PyTorch first uses a GPU."""
        try:
            import atexit

            atexit.register(self.finish)
            self.torch.cuda.memory._record_memory_history(max_entries=_MOST_EVENTS,
                                                          stacks="python")
        except Exception as error:
            self.note(f"PyTorch's memory is not recorded: {error}")
        try:
            from torch.optim.optimizer import register_optimizer_step_post_hook

            register_optimizer_step_post_hook(self.mark)
        except Exception as error:
            self.note(f"steps of the optimizer are not recorded: {error}")
        try:
            self.answer_signals()
        except Exception as error:
            self.note(f"a signal ends the program without PyTorch's memory history: {error}")

    def answer_signals(self):
        """What would end the program at once leaves the history first. Should the interpreter not get
        to the handler, because C code holds the main thread, the recorder ends the program."""
        import ctypes
        import signal
        import threading

        if threading.current_thread() is not threading.main_thread():
            return
        self.recorder = ctypes.CDLL(_os.environ["CUDA_INJECTION64_PATH"])
        answered = []
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_DFL:
                continue
            signal.signal(number, self.end_by)
            if self.recorder.tidemark_let_handler_answer(int(number)):
                answered.append(number)
            else:
                signal.signal(number, signal.SIG_DFL)

        def leave():  # a child is not recorded and ends as always
            for number in answered:
                if signal.getsignal(number) == self.end_by:
                    signal.signal(number, signal.SIG_DFL)

        _os.register_at_fork(after_in_child=leave)

    def end_by(self, number, frame):
        import signal

        self.finish()
        self.recorder.tidemark_end_by_signal(int(number))
        signal.signal(number, signal.SIG_DFL)
        _os.kill(_os.getpid(), number)

    def mark(self, optimizer, args, kwargs):
        if self.torch.compiler.is_compiling():
            return
        if self.optimizer is None:
            self.optimizer = id(optimizer)
        if self.optimizer == id(optimizer) and len(self.marks) < _MOST_MARKS:
            import time

            self.marks.append(time.time_ns())

    def finish(self):
        if _os.getpid() != self.pid:  # a fork of it
            return
        try:
            import array

            with open(self.base + ".marks", "wb") as file:
                array.array("Q", self.marks).tofile(file)
            self.torch.cuda.memory._dump_snapshot(self.base + ".pickle")
        except Exception as error:
            self.note(f"PyTorch's memory history was not written: {error}")

    def note(self, text):
        try:
            with open(self.base + ".notes", "a", encoding="utf-8") as file:
                file.write(" ".join(text.split()) + "\n")
        except OSError:
            pass


def _watch_torch(folder):
    """Calls _Torch after the first import of torch, whoever imports it."""
    import importlib.abc

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name != "torch":
                return None
            for finder in _sys.meta_path:  # also asked by those who only want to know whether it is there
                spec = None if finder is self else finder.find_spec(name, path, target)
                if spec is not None:
                    if spec.loader is not None:
                        _call_afterwards(spec.loader, self, folder)
                    return spec
            return None

    _sys.meta_path.insert(0, Finder())


def _call_afterwards(loader, finder, folder):
    run_module = loader.exec_module

    def exec_module(module):
        run_module(module)
        if finder in _sys.meta_path:
            _sys.meta_path.remove(finder)
        try:
            _Torch(module, folder)
        except Exception:  # a PyTorch without CUDA, or something else of that name
            pass

    loader.exec_module = exec_module


if "TIDEMARK_RUN_FOLDER" in _os.environ:
    _watch_torch(_os.environ["TIDEMARK_RUN_FOLDER"])
_run_the_users()
