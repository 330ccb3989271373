"""`python -m tidemark compare …`: the program of the package, as it is."""

from __future__ import annotations

import os
import sys

from .errors import TidemarkError
from .program import program


def main() -> int:
    # Captures run in the Python that has the package, and perhaps PyTorch.
    if sys.prefix != sys.base_prefix:
        os.environ.setdefault("VIRTUAL_ENV", sys.prefix)
    try:
        path = program()
    except TidemarkError as error:
        print(f"tidemark: {error}", file=sys.stderr)
        return 1
    os.execv(path, ["tidemark", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
