#!/bin/bash
# Every linter over every file that it knows, one line each, the output of those that complain, and as last
# line "N passed, N failed, N skipped". A tool that is missing is a skip, and a failure when STRICT=1.
set -u
cd "$(dirname "$0")/.." || exit 1
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C.UTF-8

passed=0 failed=0 skipped=0
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# files PATTERN…: what git would commit of them.
files() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ -f "$f" ] && echo "$f"; done; }

# lint NAME TOOL COMMAND…
lint() {
	local name=$1 tool=$2
	shift 2
	if ! command -v "$tool" >/dev/null; then
		if [ "${STRICT:-0}" = 1 ]; then
			echo "FAIL  $name ($tool is missing, and STRICT=1)"
			failed=$((failed + 1))
		else
			echo "skip  $name: $tool is missing"
			skipped=$((skipped + 1))
		fi
	elif "$@" >"$out/log" 2>&1; then
		echo "ok    $name"
		passed=$((passed + 1))
	else
		echo "FAIL  $name"
		head -n 60 "$out/log" | sed 's/^/      /'
		failed=$((failed + 1))
	fi
}

mapfile -t c_files < <(files 'src/*.c' 'tests/*.c')
mapfile -t h_files < <(files 'src/*.h' 'tests/*.h')
mapfile -t sh_files < <(
	files '*.sh' tests/run tests/hermes/run tests/vm/run tests/vm/guest bench/run .ci/run 'completions/*.bash'
	files 'debian/*.postinst' 'debian/*.prerm' 'debian/*.postrm' 'debian/*.preinst'
	files tests/pkg/run debian/tests/package image/ssh/hermes-ssh
)
mapfile -t man_files < <(files 'man/*.[1-8]')

# Without optimisation, which hides the code's own shape from it. GCC 12 calls leaked what is stored behind a
# pointer: leaks are found by the sanitizer's run of the tests (make asan).
analyze() {
	local f rc=0
	for f in "${c_files[@]}"; do
		case $f in src/*) ;; *) continue ;; esac
		gcc -std=gnu17 -D_GNU_SOURCE -Isrc -DVERSION='""' -DLIBEXEC='""' -DBUILD_YEAR=2026 -O0 -fanalyzer \
			-Wno-analyzer-malloc-leak -Wno-analyzer-mismatching-deallocation -Werror -c -o /dev/null "$f" || rc=1
	done
	return $rc
}

with_clang() {
	local f rc=0 format=()
	for f in "${c_files[@]}"; do
		# As the Makefile compiles src.
		format=()
		case $f in src/*) format=(-Wformat=2) ;; esac
		clang -std=gnu17 -D_GNU_SOURCE -Isrc -Itests -DVERSION='""' -DLIBEXEC='""' -DBUILD_YEAR=2026 -Wall -Wextra -Werror \
			"${format[@]}" -fsyntax-only "$f" || rc=1
	done
	return $rc
}

# The programs that a unit starts are not installed here: only the units themselves are judged.
unit_copies() {
	local from dir unit
	for from in systemd systemd/user; do
		dir=$out/units/$from
		mkdir -p "$dir"
		for unit in "$from"/*.service; do
			sed 's#^\(Exec[A-Za-z]*\)=/usr/\(libexec/hermes-sandbox\|bin/hermes-sandbox\|sbin/sshd\).*#\1=/bin/true#' "$unit" >"$dir/${unit##*/}"
		done
		cp "$from"/*.socket "$dir/"
	done
}

units() {
	local rc=0
	unit_copies
	systemd-analyze verify --man=no "$out/units/systemd"/*.s* || rc=1
	XDG_RUNTIME_DIR=$out systemd-analyze verify --user --man=no "$out/units/systemd/user"/*.s* || rc=1
	return $rc
}

# The overall exposure of the system's units, in tenths. sshd becomes another user, over the network.
exposure() {
	local rc=0 unit most
	unit_copies
	for unit in "$out/units/systemd"/*.service; do
		most=15
		[ "${unit##*/}" != hermes-sandbox-ssh.service ] || most=40
		systemd-analyze security --offline=yes --threshold=$most --no-pager "$unit" >"$out/exposure" || { tail -n 1 "$out/exposure" && rc=1; }
	done
	return $rc
}

sizes() {
	local rc=0 f most
	for f in "${c_files[@]}"; do
		case $f in src/*) most=500 ;; *) most=600 ;; esac
		[ "$(wc -l <"$f")" -le $most ] || { echo "$f has over $most lines" && rc=1; }
	done
	return $rc
}

lint "format (clang-format)" clang-format clang-format --dry-run -Werror "${c_files[@]}" "${h_files[@]}"
lint "gcc -fanalyzer" gcc analyze
lint "clang" clang with_clang
# cppcheck does not read the system's headers: these two are sys/queue.h's.
lint "cppcheck" cppcheck cppcheck --quiet -D__x86_64__=1 '-DLIST_HEAD(n,t)=struct n{struct t*lh_first;}' \
	'-DLIST_ENTRY(t)=struct{struct t*le_next;struct t**le_prev;}' --std=c11 --language=c \
	--error-exitcode=1 --inline-suppr \
	--enable=warning,portability --suppress=missingIncludeSystem -Isrc -Itests src
lint "shellcheck" shellcheck shellcheck -x -P SCRIPTDIR -P . "${sh_files[@]}"
lint "codespell" codespell codespell -L nd src debian etc man docs sudoers.d systemd completions image k8s tests/*.sh tests/lib tests/it tests/priv README.md Makefile
lint "sudoers (visudo)" visudo visudo -cf sudoers.d/hermes-docker
lint "AppArmor profile" apparmor_parser apparmor_parser --skip-kernel-load --skip-cache etc/apparmor.d/hermes-docker-enable
lint "units (systemd-analyze verify)" systemd-analyze units
lint "units (systemd-analyze security)" systemd-analyze exposure
[ ${#man_files[@]} -eq 0 ] || lint "manual pages (mandoc)" mandoc mandoc -Tlint -Wwarning "${man_files[@]}"
lint "sizes of files" wc sizes
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
