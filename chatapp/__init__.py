"""Palimpsest, the chat."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def _take_the_name_compression() -> None:
    """Make the package `compression` beside this one the one of that name.

    Python 3.14 has one of its own. A server or a test runner that imports `gzip` before the
    project's folder is on the path has imported that one; here it becomes ours, in place, with the
    library's modules behind ours. Every entrance imports `chatapp` before `compression`.
    """
    import compression

    place = Path(__file__).resolve().parent.parent / "compression" / "__init__.py"
    if compression.__file__ is not None and Path(compression.__file__).resolve() == place:
        return
    spec = spec_from_file_location("compression", place)
    assert spec is not None
    assert spec.loader is not None
    # Those who hold the module keep it: only where it looks for its parts changes.
    vars(compression).update(vars(module_from_spec(spec)))
    spec.loader.exec_module(compression)


_take_the_name_compression()
