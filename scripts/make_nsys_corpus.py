"""Writes tests/fuzz/corpus/nsys: exports of Nsight Systems as small as they can be, whole and wrong.

usage: scripts/make_nsys_corpus.py      (needs nothing but Python)
"""

import pathlib
import sqlite3

tests = pathlib.Path(__file__).resolve().parent.parent / "tests"
corpus = tests / "fuzz/corpus/nsys"
step = (tests / "reference/nsys/step.sql").read_text()

texts = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES (1, '_Z1fv');"
kernels = ("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT,"
           " correlationId INT, globalPid INT, shortName INT);")
kernel = kernels + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7, 1, 0x1000000, 1);"
memory = ("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INT, deviceId INT, address INT, bytes INT,"
          " memoryOperationType INT);")
ranges = ("CREATE TABLE NVTX_EVENTS (start INT, end INT, text TEXT, globalTid INT, textId INT);"
          "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, globalTid INT, correlationId INT);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (5, 0x1000001, 1);")

copies = ("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId INT, copyKind INT,"
          " srcKind INT, dstKind INT);")
graphs = ("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT, streamId INT,"
          " graphId INT);")
untimed = kernels + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 0, 0, 7, 1, 1, 1), (0, 0, 0, 7, 1, 1, 1);"


def reference(number: int) -> str:
    """The name that a mangled name has for its numbered part."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return "S" + (digits[(number - 1) // 36].replace("0", "") + digits[(number - 1) % 36] if number else "") + "_"


# Forty pairs, each of two of the pair before: readable, that is 12 TiB.
pairs = "_ZN5flash4copyI1PIiiE" + "".join(reference(2) + "I" + 2 * reference(i + 3) + "E" for i in range(40)) + "EEvv"

databases = {
    "step": step,
    "kernel": texts + kernel,
    "no_kernels": texts + kernels,
    "no_column": texts + "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, deviceId INT);",
    "other": "CREATE TABLE urls (id INTEGER);",
    "view": "CREATE VIEW StringIds AS SELECT 1 AS id;",
    "text_for_a_number": texts + kernels + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
                         " (10, 'x', 0, 7, 1, 1, 1);",
    "number_for_a_text": "CREATE TABLE StringIds (id INTEGER, value BLOB);"
                         "INSERT INTO StringIds VALUES (1, 5);" + kernel,
    "ends_before": texts + kernels + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (9, 8, 0, 7, 1, 1, 1);",
    "far_apart": texts + kernels + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
                 " (1, 1 << 60, 0, 7, 1, 1, 1);",
    "no_time": texts + kernels + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
               " (0, 1 << 62, 0, 7, 1, 1, 1);",
    "not_timed": texts + untimed + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7, 1, 1, 1);",
    "copies": texts + copies + "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 2, 0, 7, 1, 0, 2),"
              " (3, 4, 0, 7, 8, 2, 2), (5, 6, 0, 7, 99, 1, 1), (7, 8, 0, 8, -1, NULL, NULL);",
    "graph": texts + graphs + "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, 2, 0, 7, 3), (3, 4, 0, 7, NULL);",
    "mangled": texts + f"INSERT INTO StringIds VALUES (2, '{pairs}'), (3, '_Zno'), (4, 'void f(int)');" + kernels +
               "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 1, 1, 1), (3, 4, 0, 7, 1, 1, 2),"
               " (5, 6, 0, 7, 1, 1, 3), (7, 8, 0, 7, 1, 1, 4);",
    "memory": texts + kernel + memory + "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES"
              " (1, 0, 4096, 512, 0), (2, 0, 8192, 512, 1), (30, 0, 4096, 512, 1), (3, 0, 4096, 1, 0);",
    "negative_size": texts + kernel + memory + "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES"
                     " (1, 0, 4096, -1, 0);",
    "much_memory": texts + kernel + memory + "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
                   " FROM n WHERE i < 20) INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS SELECT i, 0, i,"
                   " 1 << 48, 0 FROM n;",
    "ranges": texts + kernel + ranges + "INSERT INTO NVTX_EVENTS VALUES"
              " (1, 9, 'backward', 0x1000001, NULL), (2, 8, NULL, 0x1000001, 1),"
              " (3, NULL, 'optimizer', 0x1000001, NULL);",
}


def database(statements: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.executescript("PRAGMA page_size=512;" + statements)
    return connection.serialize()


corpus.mkdir(parents=True, exist_ok=True)
for name, statements in databases.items():
    (corpus / f"{name}.sqlite").write_bytes(database(statements))
whole = database(texts + kernel)
(corpus / "cut_off.sqlite").write_bytes(whole[: len(whole) // 2])
(corpus / "text.sqlite").write_bytes(b"no database\n")


def interior(child: int) -> bytes:
    """A page of a table with eighty children, all of them one page."""
    count, size = 80, 512
    cell = child.to_bytes(4, "big") + bytes([1])
    at = (size - len(cell)).to_bytes(2, "big")
    head = bytes([5, 0, 0]) + count.to_bytes(2, "big") + at + bytes([0]) + child.to_bytes(4, "big")
    return (head + at * count).ljust(size - len(cell), b"\0") + cell


def many_times(file: bytes, page: int, levels: int) -> bytes:
    """The leaf of a table moves behind so many such pages: 80 times as many rows with each."""
    pages = [file[i : i + 512] for i in range(0, len(file), 512)]
    leaf, pages[page] = pages[page], interior(len(pages) + 1)
    pages += [interior(len(pages) + i + 2) for i in range(levels - 1)] + [leaf]
    pages[0] = pages[0][:28] + len(pages).to_bytes(4, "big") + pages[0][32:]
    return b"".join(pages)


# Three thousand million rows in four kilobytes: of texts, and of numbers alone.
(corpus / "endless.sqlite").write_bytes(many_times(whole, 1, 5))
(corpus / "much_work.sqlite").write_bytes(many_times(database(texts + untimed), 2, 5))
