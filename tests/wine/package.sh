#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The zip for Windows: package.sh WINE_SH BUILD_FOLDER. What is in it, what the DLL and the program
# import and export, their version resources, and that the program runs from where it was unpacked.
set -uo pipefail
wine=$1 build=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/softnd-package.XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
    echo "FAILED: $*"
    failed=1
}
command -v zip >/dev/null || {
    echo "skipped: no zip (scripts/deps-windows.sh installs it)"
    exit 77
}

zip=$("$root/scripts/package-windows.sh" "$build") || exit 1
(cd "$work" && cmake -E tar xf "$zip") || exit 1
top=$(echo "$work"/softnd-*-windows-x64)
version=${top##*/softnd-} version=${version%-windows-x64}
[[ -d $top && $(ls "$work" | wc -l) -eq 1 ]] || fail "the zip has more than one folder at its top"
for dir in km ndk; do
    diff -r "$root/include/$dir" "$top/include/$dir" || fail "other headers in include/$dir"
done
diff <(cd "$top" && find . -type f ! -path './include/km/*' ! -path './include/ndk/*' | sort) \
    - <<'LIST' || fail "other files than expected"
./LICENSE.txt
./README.txt
./bin/libsoftndk.dll
./bin/softnd.dll
./bin/softnd.exe
./include/nddef.h
./include/ndspi.h
./include/ndstatus.h
./include/ndsupport.h
./include/softnd.h
./include/win32/softnd_guiddef.h
./include/win32/softnd_winsockaddr.h
./include/win32/softnd_wintypes.h
./lib/libndutil.a
./lib/libsoftnd.dll.a
./lib/libsoftndk.dll.a
./windows.md
LIST

# What every Windows 10 has. Nothing of a compiler, nothing of ours.
system='^(advapi32|api-ms-win-[a-z0-9-]*|bcrypt|iphlpapi|kernel32|msvcrt|ntdll|ole32|winmm|ws2_32)\.dll$'
for file in softnd.dll libsoftndk.dll softnd.exe; do
    x86_64-w64-mingw32-objdump -p "$top/bin/$file" >"$work/headers" || fail "$file has no headers"
    imports=$(sed -n 's/^\tDLL Name: //p' "$work/headers" | tr A-Z a-z)
    [[ -n $imports ]] || fail "$file imports nothing"
    echo "$file imports" $imports
    other=$(grep -Ev "$system" <<<"$imports")
    [[ -z $other ]] || fail "$file imports" $other
    for word in ProductVersion "$version"; do
        printf '%s' "$word" | iconv -t UTF-16LE >"$work/word"
        LC_ALL=C grep -qaF -f "$work/word" "$top/bin/$file" || fail "$file says no $word"
    done
done
exports=$(x86_64-w64-mingw32-objdump -p "$top/bin/softnd.dll" |
    sed -n '/Ordinal\/Name Pointer/,/^$/p' | sed -n 's/^.*\] *\(.*+base\[[^]]*\] *[0-9a-f]* *\)\?//p' |
    awk '$NF != "Table" { print $NF }' | sort | xargs)
[[ $exports == "DllCanUnloadNow DllGetClassObject SoftNdQueryCounters SoftNdQueryTransport SoftNdVersion" ]] ||
    fail "softnd.dll exports $exports"
# A consumer against nothing but the zip.
cat >"$work/consumer.c" <<'C'
#include <ntddk.h>
#include <ndkpi.h>
DRIVER_INITIALIZE DriverEntry;
NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path) {
    (void)driver;
    (void)path;
    DbgPrint("the consumer is here\n");
    return STATUS_UNSUCCESSFUL;
}
C
x86_64-w64-mingw32-gcc -shared -I"$top/include/km" -I"$top/include/ndk" "$work/consumer.c" \
    -L"$top/lib" -lsoftndk -o "$work/consumer.dll" || fail "no consumer can be built with the zip"
"$wine" "$top/bin/softnd.exe" ndk-run "Z:${work//\//\\}\\consumer.dll" >"$work/ndk" 2>&1
grep -q "the consumer is here" "$work/ndk" || fail "softnd.exe ndk-run: $(cat "$work/ndk")"
unset SOFTND_PROVIDER
"$wine" "$top/bin/softnd.exe" info --json >"$work/info" 2>&1 || "$wine" "$top/bin/softnd.exe" info >"$work/info" 2>&1 ||
    fail "softnd.exe info: $(cat "$work/info")"
grep -q 127.0.0.1 "$work/info" || fail "softnd.exe info shows no loopback adapter"
exit "$failed"
