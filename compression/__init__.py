"""Compression of conversations, a reusable Django app.

From Python 3.14 on, the standard library has a package of this name, which its `gzip`, `bz2` and
`lzma` need. Modules that are not found here are therefore looked for there.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
