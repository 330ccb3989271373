#!/usr/bin/env bash
# The .deb and the .tar.gz of `make package`: which files they hold, what the first depends on, and
# that the program in the second runs.
#   contents.sh CPACK_CONFIG VERSION FOLDER      (a FOLDER that is made anew)
set -euo pipefail
config=$1 version=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cpack --config "$config" -B "$folder" >/dev/null
cd "$folder"

machine=$(uname -m)
name=tidemark-$version-linux-$machine
diff - <(tar tzf "$name.tar.gz" | grep -v '/$' | sort) << EOF
$name/bin/tidemark
$name/share/doc/tidemark/CHANGELOG.md
$name/share/doc/tidemark/LICENSE
$name/share/doc/tidemark/README.md
$name/share/man/man1/tidemark.1
EOF
tar xzf "$name.tar.gz"
[[ $("$name/bin/tidemark" --version) == "tidemark $version" ]]
sha256sum --quiet --check "$name.tar.gz.sha256"

if ! command -v dpkg-deb >/dev/null; then echo "SKIPPED: the .deb: no dpkg-deb"; exit 0; fi
package=$(echo tidemark_"$version"_*.deb)
files=$(dpkg-deb --contents "$package")
grep -q 'root/root .* ./usr/bin/tidemark$' <<< "$files"
grep -q ' ./usr/share/man/man1/tidemark.1$' <<< "$files"
depends=$(dpkg-deb --field "$package" Depends)
newest=$(nm --dynamic "$name/bin/tidemark" | sed -n 's/.*@GLIBC_//p' | sort -V | tail -1)
if [[ $depends != "libc6 (>= $newest)" ]]; then
  echo "the program needs glibc $newest, the package says: $depends" >&2
  exit 1
fi
echo "both packages hold what they should"
