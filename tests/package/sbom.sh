#!/bin/sh
# sbom.sh BUILD VERSION: the bill of materials of what is released, as SPDX 2.3 in JSON on stdout: the
# programs and the library of BUILD with their hashes, and the Debian package of every library that
# one of them, or one of those, needs.
set -eu

build=$1
version=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
made='bin/taskmqd bin/taskctl bin/taskmq-gateway lib/libtaskmq.so.0'

# needed FILE: the files of the libraries that it names.
needed ()
{
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r name; do
        for directory in "$build/lib" "/lib/$(gcc -print-multiarch)" "/usr/lib/$(gcc -print-multiarch)" \
            /lib64; do
            if [ -e "$directory/$name" ]; then
                printf '%s/%s\n' "$directory" "$name"
                break
            fi
        done
    done
}

# Every library below FILE..., once.
for file in $made; do
    needed "$build/$file"
done | sort -u >"$scratch/all"
cp "$scratch/all" "$scratch/new"
while [ -s "$scratch/new" ]; do
    while read -r library; do
        needed "$library"
    done <"$scratch/new" | sort -u | comm -13 "$scratch/all" - >"$scratch/next"
    sort -u -o "$scratch/all" "$scratch/all" "$scratch/next"
    mv "$scratch/next" "$scratch/new"
done

# Debian's files may be recorded with or without /usr.
grep -vF "$build/" "$scratch/all" | xargs realpath >"$scratch/real"
sed 's,^/usr/,/,' "$scratch/real" | sort -u "$scratch/real" - >"$scratch/recorded"
{ xargs dpkg-query -S <"$scratch/recorded" 2>/dev/null || :; } |
    sed 's/: .*//; s/,.*//' | sort -u >"$scratch/packages"

created=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)
sum=$(for file in $made; do sha256sum <"$build/$file"; done | sha256sum | cut -c 1-32)
cat <<END
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "taskmq-$version",
  "documentNamespace": "urn:taskmq:sbom:$version:$sum",
  "creationInfo": {"created": "$created", "creators": ["Tool: taskmq-dev-sbom"]},
  "documentDescribes": ["SPDXRef-taskmq"],
  "packages": [
    {
      "SPDXID": "SPDXRef-taskmq",
      "name": "taskmq",
      "versionInfo": "$version",
      "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false,
      "licenseConcluded": "MPL-2.0",
      "licenseDeclared": "MPL-2.0",
      "copyrightText": "NOASSERTION"
    }
END
while read -r package; do
    # shellcheck disable=SC2016 # fields of dpkg
    dpkg-query -W -f '${binary:Package} ${Package} ${Version} ${Architecture} ${source:Package}\n' \
        "$package"
done <"$scratch/packages" >"$scratch/rows"
while read -r _ name release architecture origin; do
    escaped=$(printf '%s' "$release" | sed 's/+/%2B/g; s/:/%3A/g')
    cat <<END
    ,{
      "SPDXID": "SPDXRef-deb-$(printf '%s' "$name" | tr -c 'A-Za-z0-9.-' '-')",
      "name": "$name",
      "versionInfo": "$release",
      "supplier": "Organization: Debian",
      "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false,
      "licenseConcluded": "NOASSERTION",
      "licenseDeclared": "NOASSERTION",
      "copyrightText": "NOASSERTION",
      "sourceInfo": "Debian source package $origin",
      "externalRefs": [
        {
          "referenceCategory": "PACKAGE-MANAGER",
          "referenceType": "purl",
          "referenceLocator": "pkg:deb/debian/$name@$escaped?arch=$architecture"
        }
      ]
    }
END
done <"$scratch/rows"
printf '  ],\n  "files": [\n'
comma=
for file in $made; do
    cat <<END
    $comma{
      "SPDXID": "SPDXRef-file-$(basename "$file")",
      "fileName": "./$file",
      "checksums": [
        {"algorithm": "SHA1", "checksumValue": "$(sha1sum <"$build/$file" | cut -d ' ' -f 1)"},
        {"algorithm": "SHA256", "checksumValue": "$(sha256sum <"$build/$file" | cut -d ' ' -f 1)"}
      ],
      "licenseConcluded": "MPL-2.0",
      "copyrightText": "NOASSERTION"
    }
END
    comma=,
done
printf '  ],\n  "relationships": [\n'
cat <<END
    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
     "relatedSpdxElement": "SPDXRef-taskmq"}
END
for file in $made; do
    printf '    ,{"spdxElementId": "SPDXRef-taskmq", "relationshipType": "CONTAINS",\n'
    printf '     "relatedSpdxElement": "SPDXRef-file-%s"}\n' "$(basename "$file")"
done
while read -r _ name _; do
    printf '    ,{"spdxElementId": "SPDXRef-taskmq", "relationshipType": "DYNAMIC_LINK",\n'
    printf '     "relatedSpdxElement": "SPDXRef-deb-%s"}\n' \
        "$(printf '%s' "$name" | tr -c 'A-Za-z0-9.-' '-')"
done <"$scratch/rows"
printf '  ]\n}\n'
