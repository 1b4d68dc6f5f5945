#!/bin/sh
# Makes the fonts of this folder from TeX Gyre Pagella. Needs pyftsubset (PyPI: fonttools and brotli),
# and the fonts, as Debian's fonts-texgyre and fonts-texgyre-math install them.
set -eu
TEXT=${1:-/usr/share/texmf/fonts/opentype/public/tex-gyre}
MATH=${2:-/usr/share/texmf/fonts/opentype/public/tex-gyre-math}
HERE=$(dirname "$0")

LATIN="U+0020-007E,U+00A0-00A9,U+00AB-00AC,U+00AE-00FF,U+0131,U+0152-0153,U+2010-2014,U+2018-201A,\
U+201C-201E,U+2020-2022,U+2026,U+2032-2033,U+2039-203A,U+20AC,U+2122,U+2190-2193,U+2212"
MORE="U+0100-0107,U+010C-0113,U+0116-011B,U+011E-011F,U+0122-0123,U+012A-012B,U+012E-012F,U+0130,\
U+0136-0137,U+0139-013E,U+0141-0148,U+014C-014D,U+0150-0151,U+0154-0155,U+0158-015B,U+015E-0165,\
U+016A-016B,U+016E-0173,U+0179-017E,U+0218-021B,U+1E9E"
BRACKETS="U+0020,U+0028-0029,U+005B-005D,U+007B-007D,U+2016,U+2308-230B,U+27E8-27E9,U+221A"

# A changed font must not bear the old name, so its names are removed.
make() {
  pyftsubset "$1" --unicodes="$2" --layout-features="$3" --drop-tables="$4" --output-file="$HERE/$5" \
    --flavor=woff2 --no-hinting --name-IDs=1,2 --obfuscate-names
}

make "$TEXT/texgyrepagella-regular.otf" "$LATIN,$MORE" kern,liga,locl,tnum FFTM serif.woff2
make "$TEXT/texgyrepagella-bold.otf" "$LATIN" kern,liga FFTM serif-bold.woff2
make "$TEXT/texgyrepagella-italic.otf" "$LATIN" liga FFTM serif-italic.woff2
# The brackets and the root that stretch, with the table of sizes that browsers read for MathML.
make "$MATH/texgyrepagella-math.otf" "$BRACKETS" "" GSUB,GPOS,FFTM brackets.woff2
