"""``python -m tests.benchmarks [CASE]``: run one case, or all of them in order of name.

A case is a module of this package that does not begin with an underscore. Its ``main()`` takes
nothing, prints its figures, and returns 0 when they reach what the case demands, else 1.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence

from tests import benchmarks


def cases() -> list[str]:
    """Names of all cases."""
    names = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(name for name in names if not name.startswith("_"))


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 when every case that ran reached its figures, 2 for an unknown name."""
    known = cases()
    chosen = list(arguments) or known
    for name in chosen:
        if name not in known:
            print(f"There is no benchmark {name}. There are: {', '.join(known) or 'none'}.")
            return 2
    failed = []
    for name in chosen:
        print(f"== {name}", flush=True)
        if importlib.import_module(f"tests.benchmarks.{name}").main():
            failed.append(name)
    if failed:
        print(f"Below what is demanded: {', '.join(failed)}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
