#!/bin/bash
# packages.sh check|hermes|lint|build|bench|vm|pkg: installs what is missing of the Debian packages that the tests, the
# linters, the build, the bench, the virtual machine or the package's containers need. "COMMAND=PACKAGE" is there when the command is, whoever brought it.
# packages.sh names SET: prints the packages and installs nothing.
set -eu

build="build-essential pkg-config musl-gcc=musl-tools libaudit-dev libauparse-dev libcap-ng-dev
	libcurl4-gnutls-dev libjansson-dev libsystemd-dev libyaml-dev nettle-dev"
declare -A sets=(
	[build]=$build
	[check]="$build libcmocka-dev dockerd=docker.io auditd=auditd mmdebstrap=mmdebstrap jq=jq
		setpriv=util-linux python3=python3 docker-registry=docker-registry
		clang=clang sudo=sudo zsh=zsh fish=fish systemd-nspawn=systemd-container
		ssh=openssh-client sshd=openssh-server rsync=rsync npm=npm"
	[lint]="$build libcmocka-dev clang=clang clang-format=clang-format cppcheck=cppcheck
		shellcheck=shellcheck codespell=codespell mandoc=mandoc visudo=sudo
		apparmor_parser=apparmor"
	[bench]="gcc=gcc auditd=auditd jq=jq bwrap=bubblewrap dockerd=docker.io ssh=openssh-client sshd=openssh-server"
	[hermes]="$build dockerd=docker.io auditd=auditd mmdebstrap=mmdebstrap jq=jq setpriv=util-linux ssh=openssh-client
		sshd=openssh-server python3-requests python3-yaml python3-pytest python3-dotenv python3-psutil"
	[pkg]="mmdebstrap=mmdebstrap systemd-nspawn=systemd-container"
	[vm]="mmdebstrap=mmdebstrap qemu-system-x86_64=qemu-system-x86 mke2fs=e2fsprogs"
)
PATH=$PATH:/usr/sbin:/sbin

if [ "$1" = names ]; then
	for item in ${sets[$2]}; do echo "${item#*=}"; done
	exit 0
fi
missing=()
for item in ${sets[$1]}; do
	package=${item#*=}
	if [ "$item" = "$package" ]; then
		dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q ' installed$' ||
			missing+=("$package")
	else
		command -v "${item%%=*}" >/dev/null || missing+=("$package")
	fi
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "packages are missing; run as root: apt-get install --no-install-recommends ${missing[*]}" >&2
	exit 1
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
