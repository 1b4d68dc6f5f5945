"""Palimpsest, the chat."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def _take_the_name_compression() -> None:
    """Make `compression` the name of the package beside this one.

    Python 3.14 has a package of the same name. A server or test runner that imports `gzip` before
    the project's folder is on the path has imported that one. Here it becomes ours, in place, with
    the library's modules after ours. Every entry point imports `chatapp` before `compression`.
    """
    import compression

    place = Path(__file__).resolve().parent.parent / "compression" / "__init__.py"
    if compression.__file__ is not None and Path(compression.__file__).resolve() == place:
        return
    spec = spec_from_file_location("compression", place)
    assert spec is not None
    assert spec.loader is not None
    # Modules that have imported it keep the same object; only its search path changes.
    vars(compression).update(vars(module_from_spec(spec)))
    spec.loader.exec_module(compression)


_take_the_name_compression()
