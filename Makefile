# hermes-sandbox. `make try` and `make check` are all that a newcomer needs; README.md has the rest.
#
# What a program links is its privilege story: the table of programs below is the whole of it.

CC ?= cc
MUSL_CC ?= musl-gcc
PREFIX ?= /usr
SYSCONFDIR ?= /etc
DESTDIR ?=
BUILD ?= build
LIBEXEC := $(PREFIX)/libexec/hermes-sandbox
VERSION := $(shell sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
BUILD_YEAR := $(shell sed -n '/^ -- /{s/.*, .. ... \([0-9]\{4\}\) .*/\1/p;q}' debian/changelog)

UNITDIR ?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user

CFLAGS ?= -O2 -g
CPPFLAGS ?=
LDFLAGS ?=
WERROR ?= -Werror
WARN := -Wall -Wextra $(WERROR) -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
        -Wimplicit-fallthrough -Wundef -Wpointer-arith -Wwrite-strings
BASE := -std=gnu17 -D_GNU_SOURCE -Isrc -DVERSION='"$(VERSION)"' -DLIBEXEC='"$(LIBEXEC)"' -DBUILD_YEAR=$(BUILD_YEAR) \
        -MMD -MP $(WARN)
HARDEN := -fstack-protector-strong -fstack-clash-protection -ftrivial-auto-var-init=zero
# clang before 16 takes the same flag only with this one beside it.
HARDEN += $(shell $(CC) --version 2>/dev/null | grep -qE 'clang version 1[0-5]\.' && \
        echo -enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang)
GLIBC_FLAGS := $(BASE) $(HARDEN) -fPIE
# Behind the environment's flags, which may hold another level already.
FORTIFY := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
GLIBC_LINK := -fPIE -pie -Wl,-z,relro,-z,now,-z,noexecstack,--as-needed
# Agent and CLI: a start costs what the dynamic loader costs, so there is none.
# musl-gcc does not see the kernel's own headers (linux/*): a folder of links brings these and no others.
KERNEL_HEADERS := $(BUILD)/kernel-headers
MUSL_FLAGS := $(BASE) $(HARDEN) -ffunction-sections -fdata-sections -fPIE -isystem $(KERNEL_HEADERS)
# musl-gcc's specs know no -static-pie: it links a program that wants musl's loader, which no image has.
# Hence by hand: static, position independent, and musl's own start file for that.
MUSL_LIB ?= /usr/lib/$(patsubst %-linux-gnu,%-linux-musl,$(shell $(MUSL_CC) -print-multiarch 2>/dev/null))
MUSL_LINK := -static -fPIE -pie -nostartfiles -Wl,-pie,--no-dynamic-linker,-z,text,-z,relro,-z,now,-z,noexecstack \
        -Wl,--gc-sections,--build-id $(addprefix $(MUSL_LIB)/,rcrt1.o crti.o crtn.o)
# musl-gcc brings specs of its own, and its C library was built without LTO.
unfit_for_musl := -specs=% -flto% -ffat-lto-objects
MUSL_CFLAGS = $(filter-out $(unfit_for_musl),$(CFLAGS))
MUSL_LDFLAGS = $(filter-out $(unfit_for_musl),$(LDFLAGS))

# A sanitizer build keeps its objects apart, and builds agent and CLI with glibc: musl has no ASan.
ifdef SANITIZE
FORTIFY :=
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
GLIBC_FLAGS := $(BASE) -fPIE $(SANFLAGS)
GLIBC_LINK := -pie $(SANFLAGS)
MUSL_CC := $(CC)
MUSL_FLAGS := $(GLIBC_FLAGS) -DHAVE_SANITIZER=1
MUSL_LINK := $(GLIBC_LINK)
endif

pkg = $(shell pkg-config --$(1) $(2) 2>/dev/null)

# program        folder of its own sources   others it takes            libraries
PROGRAMS := hermes-sandboxd hermes-engined hermes-sandbox-config hermes-sandbox-audit hermes-sandbox-doctor \
        hermes-sandbox-image hermes-docker-enable supervisor agent hermes-sandbox hermes-sandbox-setup docker \
        hermes-sandbox-ssh hermes-sandbox-ssh-gateway

hermes-sandboxd_LIBS       = $(call pkg,libs,yaml-0.1 audit libsystemd nettle)
hermes-engined_LIBS        = $(call pkg,libs,libcurl yaml-0.1 jansson libsystemd nettle)
hermes-sandbox-config_LIBS = $(call pkg,libs,yaml-0.1 nettle)
# The one that a caller can make run as root: these two, and nothing of ours but its own folder.
hermes-docker-enable_LIBS  = $(call pkg,libs,audit libcap-ng)
hermes-sandbox-audit_LIBS  = $(call pkg,libs,auparse nettle)
hermes-sandbox-doctor_LIBS = $(call pkg,libs,libcurl jansson yaml-0.1 audit auparse nettle)
hermes-sandbox-setup_LIBS  = $(call pkg,libs,yaml-0.1 jansson nettle)
# Root's: it reaches the engine itself.
hermes-sandbox-image_LIBS  = $(call pkg,libs,libcurl yaml-0.1 jansson nettle)

.PHONY: all check check-hermes check-unit check-it check-priv check-long check-pkg check-vm asan asan-run lint format fuzz fuzzers fuzzers-here bench deb try install clean
all: $(PROGRAMS:%=$(BUILD)/%)

# --- objects: build/glibc/** and build/musl/** -------------------------------------------------------
$(BUILD)/glibc/%.o: src/%.c Makefile debian/changelog
	@mkdir -p $(@D)
	$(CC) $(GLIBC_FLAGS) $(CPPFLAGS) $(CFLAGS) $(FORTIFY) -c -o $@ $<
$(KERNEL_HEADERS):
	@mkdir -p $@
	ln -sfn /usr/include/linux /usr/include/asm-generic $@
	ln -sfn /usr/include/$$($(CC) -print-multiarch)/asm $@
$(BUILD)/musl/%.o: src/%.c Makefile debian/changelog | $(KERNEL_HEADERS)
	@mkdir -p $(@D)
	$(MUSL_CC) $(MUSL_FLAGS) $(CPPFLAGS) $(MUSL_CFLAGS) -c -o $@ $<

glibc_objs = $(patsubst src/%.c,$(BUILD)/glibc/%.o,$(wildcard $(addsuffix /*.c,$(addprefix src/,$(1)))))
musl_objs = $(patsubst src/%.c,$(BUILD)/musl/%.o,$(wildcard $(addsuffix /*.c,$(addprefix src/,$(1)))))
# Everything of a folder but main.c, for the tests.
lib_objs = $(filter-out %/main.c.o %/main.o,$(call glibc_objs,$(1)))

COMMON_MUSL := $(call musl_objs,common)
COMMON_GLIBC := $(call glibc_objs,common)

$(BUILD)/hermes-sandboxd: $(call glibc_objs,manager config) $(COMMON_GLIBC)
	$(CC) $(GLIBC_LINK) $(LDFLAGS) -o $@ $^ $(hermes-sandboxd_LIBS)
$(BUILD)/hermes-engined: $(call glibc_objs,engine config) $(COMMON_GLIBC)
	$(CC) $(GLIBC_LINK) $(LDFLAGS) -o $@ $^ $(hermes-engined_LIBS)
$(BUILD)/hermes-sandbox-config: $(call glibc_objs,cli/config config) $(COMMON_GLIBC)
	$(CC) $(GLIBC_LINK) $(LDFLAGS) -o $@ $^ $(hermes-sandbox-config_LIBS)
$(BUILD)/hermes-docker-enable: $(call glibc_objs,helper)
	$(CC) $(GLIBC_LINK) $(LDFLAGS) -o $@ $^ $(hermes-docker-enable_LIBS)
$(BUILD)/hermes-sandbox-audit: $(call glibc_objs,cli/audit) $(COMMON_GLIBC)
	$(CC) $(GLIBC_LINK) $(LDFLAGS) -o $@ $^ $(hermes-sandbox-audit_LIBS)
$(BUILD)/hermes-sandbox-doctor: $(call glibc_objs,cli/doctor config) $(COMMON_GLIBC)
	$(CC) $(GLIBC_LINK) $(LDFLAGS) -o $@ $^ $(hermes-sandbox-doctor_LIBS)
$(BUILD)/hermes-sandbox-setup: $(call glibc_objs,cli/setup config) $(BUILD)/glibc/cli/cli_spawn.o $(COMMON_GLIBC)
	$(CC) $(GLIBC_LINK) $(LDFLAGS) -o $@ $^ $(hermes-sandbox-setup_LIBS)
$(BUILD)/hermes-sandbox-image: $(call glibc_objs,cli/image config) $(COMMON_GLIBC)
	$(CC) $(GLIBC_LINK) $(LDFLAGS) -o $@ $^ $(hermes-sandbox-image_LIBS)
$(BUILD)/supervisor: $(call glibc_objs,supervisor) $(BUILD)/glibc/common/errmsg.o
	$(CC) $(GLIBC_LINK) $(LDFLAGS) -o $@ $^
# Sorted: what the agent writes to all the time stands together (agent/agent.h).
$(BUILD)/agent: $(call musl_objs,agent) $(COMMON_MUSL)
	$(MUSL_CC) $(MUSL_LINK) -Wl,--sort-section=name $(MUSL_LDFLAGS) -o $@ $^
# What a one-shot exec runs stands together, with what it takes of libc: few pages are touched.
CLI_HOT := $(addprefix $(BUILD)/musl/cli/,main.o cli.o cli_exec.o cli_exec_args.o cli_opts.o cli_conn.o cli_run.o \
        cli_outcome.o cli_write.o cli_input.o cli_say.o cli_exec_send.o) $(addprefix $(BUILD)/musl/common/,errmsg.o frame.o proto.o wire.o)
$(BUILD)/hermes-sandbox: $(call musl_objs,cli cli/files) $(COMMON_MUSL)
	$(MUSL_CC) $(MUSL_LINK) $(MUSL_LDFLAGS) -o $@ $(CLI_HOT) -lc $(filter-out $(CLI_HOT),$^)
# The same beginning but for the words, and the same libc behind it. docker run asks for more, once.
DOCKER_HOT := $(addprefix $(BUILD)/musl/cli/docker/,main.o docker.o docker_exec.o docker_words.o) \
        $(filter-out %/main.o %/cli.o %/cli_exec.o %/cli_exec_args.o %/cli_opts.o,$(CLI_HOT))
$(BUILD)/docker: $(call musl_objs,cli/docker) $(addprefix $(BUILD)/musl/cli/,cli_ask.o cli_conn.o cli_disarm.o \
        cli_exec_send.o cli_input.o cli_mount.o cli_opts.o cli_outcome.o cli_run.o cli_say.o cli_tty.o cli_words.o cli_write.o) $(COMMON_MUSL)
	$(MUSL_CC) $(MUSL_LINK) $(MUSL_LDFLAGS) -o $@ $(DOCKER_HOT) -lc $(filter-out $(DOCKER_HOT),$^)
# The admin's words, which run sshd, ssh-keygen and systemctl; and what sshd runs for a login.
CLI_PARTS := $(filter-out %/cli/main.o,$(call musl_objs,cli cli/files)) $(COMMON_MUSL)
$(BUILD)/hermes-sandbox-ssh: $(call glibc_objs,cli/ssh) $(addprefix $(BUILD)/glibc/cli/,cli_opts.o cli_spawn.o cli_sshkey.o) $(COMMON_GLIBC)
	$(CC) $(GLIBC_LINK) $(LDFLAGS) -o $@ $^
$(BUILD)/hermes-sandbox-ssh-gateway: $(call musl_objs,cli/gateway) $(CLI_PARTS)
	$(MUSL_CC) $(MUSL_LINK) $(MUSL_LDFLAGS) -o $@ $^

# --- tests -------------------------------------------------------------------------------------------
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))
TEST_LIBS = $(call pkg,libs,cmocka libcurl yaml-0.1 jansson libsystemd audit auparse nettle libcap-ng)
TEST_OBJS = $(call lib_objs,common config engine manager agent cli cli/docker cli/files cli/audit cli/doctor cli/image cli/setup \
        cli/gateway cli/ssh supervisor helper)
$(BUILD)/libundertest.a: $(TEST_OBJS)
	@rm -f $@
	ar rcs $@ $^
$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libundertest.a
	@mkdir -p $(@D)
	$(CC) $(GLIBC_FLAGS) -Itests $(CPPFLAGS) $(CFLAGS) $(FORTIFY) $(GLIBC_LINK) $(LDFLAGS) -o $@ $< $(BUILD)/libundertest.a $(TEST_LIBS)

FUZZ := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
# A fuzz target is one LLVMFuzzerTestOneInput(); with replay.c as its main() it is a plain program that
# runs the files that it is given.
$(BUILD)/fuzz/%: tests/fuzz/%.c tests/lib/replay.c $(BUILD)/libundertest.a
	@mkdir -p $(@D)
	$(CC) $(GLIBC_FLAGS) -Itests $(CPPFLAGS) $(CFLAGS) $(FORTIFY) $(GLIBC_LINK) $(LDFLAGS) -o $@ \
		tests/fuzz/$*.c tests/lib/replay.c $(BUILD)/libundertest.a $(TEST_LIBS)

# And with libFuzzer in the place of replay.c: clang's, under its ASan and UBSan, with objects of their own.
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzzer/%,$(wildcard tests/fuzz/fuzz_*.c))
$(BUILD)/fuzzer/%: tests/fuzz/%.c $(BUILD)/libundertest.a
	@mkdir -p $(@D)
	$(CC) $(GLIBC_FLAGS) -Itests $(CPPFLAGS) $(CFLAGS) $(GLIBC_LINK) -fsanitize=fuzzer $(LDFLAGS) -o $@ \
		$< $(BUILD)/libundertest.a $(TEST_LIBS)
fuzzers:
	$(MAKE) SANITIZE=1 CC=clang CFLAGS='-O1 -g -fsanitize=fuzzer-no-link' BUILD=$(BUILD)/fuzzing fuzzers-here
fuzzers-here: $(FUZZERS)

export BUILD
RUN := tests/run

# As many compilers as processors, unless the caller has said how many.
JOBS := $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
check: | packages-check
	$(MAKE) $(JOBS) all $(UNIT) $(FUZZ) fuzzers
	$(RUN) cases unit fuzz fuzzing it priv package
check-unit: $(UNIT)
	$(RUN) unit
check-it: all
	$(RUN) it
check-priv: all
	$(RUN) priv
# The same scripts with the counts and sizes of cases.md, and ten minutes of fuzzing a target.
check-long: | packages-check
	$(MAKE) all fuzzers
	HST_LONG=1 FUZZ_SECONDS=600 $(RUN) fuzzing it
# And in a virtual machine with Debian 13: cgroup v2, AppArmor, systemd, a newer engine.
check-vm: | packages-vm
	tests/vm/run
	tests/vm/run pkg
# The package, built and installed on booted Debian 12 and 13, in containers of systemd-nspawn.
check-pkg: | packages-pkg
	tests/pkg/run
# Under a real Hermes Agent, whose tree is the folder HERMES_SRC.
check-hermes:
	+HERMES_SRC="$(HERMES_SRC)" MAKE="$(MAKE)" tests/hermes/run
# The same tests under ASan and UBSan, with objects of their own.
asan: | packages-check
	$(MAKE) SANITIZE=1 BUILD=$(BUILD)/asan asan-run
# Freed memory is not kept for long: a test bounds the manager's.
asan-run: export ASAN_OPTIONS := quarantine_size_mb=1
asan-run: all $(UNIT) $(FUZZ)
	$(RUN) unit fuzz it
# New inputs with libFuzzer: FUZZ_SECONDS (30) a target.
fuzz: | packages-check
	$(MAKE) fuzzers
	$(RUN) fuzzing
lint: | packages-lint
	tests/lint.sh
format:
	clang-format -i $(wildcard src/*/*.[ch] src/*/*/*.[ch] tests/*.h tests/*/*.[ch] bench/*.c)
# The installed package against sh, docker and bwrap: docs/performance.md. ROWS="latency rate …": some rows only.
bench: | packages-bench
	bench/run $(ROWS)
packages-%:
	@tests/lib/packages.sh $*

# --- installation and package ------------------------------------------------------------------------
# Needs no root and sets no setuid bit: both are the package's.
install: all
	install -d $(addprefix $(DESTDIR),$(addprefix $(PREFIX)/,bin sbin lib/sysusers.d lib/tmpfiles.d \
		$(addprefix share/,hermes-sandbox bash-completion/completions zsh/vendor-completions fish/vendor_completions.d \
		man/man1 man/man5 man/man7 man/man8)) $(LIBEXEC) $(UNITDIR) $(USERUNITDIR) \
		$(addprefix $(SYSCONFDIR)/,hermes-sandbox/sandbox.d apparmor.d audit/rules.d))
	install -m 0755 $(BUILD)/hermes-sandbox $(BUILD)/hermes-sandbox-setup $(DESTDIR)$(PREFIX)/bin/
	install -m 0755 $(BUILD)/hermes-docker-enable $(DESTDIR)$(PREFIX)/sbin/
	install -m 0755 $(addprefix $(BUILD)/,$(filter-out hermes-sandbox hermes-sandbox-setup hermes-docker-enable,$(PROGRAMS))) $(DESTDIR)$(LIBEXEC)/
	ln -sfn ../../bin/hermes-sandbox-setup $(DESTDIR)$(LIBEXEC)/hermes-sandbox-setup
	install -m 0755 -D -t $(DESTDIR)$(PREFIX)/share/hermes-sandbox/scripts $(wildcard scripts/*.sh)
	install -m 0644 etc/ssh/sshd_config $(DESTDIR)$(PREFIX)/share/hermes-sandbox/
	install -m 0644 sudoers.d/hermes-docker $(DESTDIR)$(PREFIX)/share/hermes-sandbox/hermes-docker.sudoers
	install -m 0644 etc/apparmor.d/hermes-docker-enable $(DESTDIR)$(SYSCONFDIR)/apparmor.d/
	install -m 0644 etc/sandbox.yaml $(DESTDIR)$(SYSCONFDIR)/hermes-sandbox/
	install -m 0644 etc/sandbox.d/10-hermes.yaml $(DESTDIR)$(SYSCONFDIR)/hermes-sandbox/sandbox.d/
	install -m 0644 $(wildcard systemd/*.service systemd/*.socket) $(DESTDIR)$(UNITDIR)/
	install -m 0644 $(wildcard systemd/user/*.service systemd/user/*.socket) $(DESTDIR)$(USERUNITDIR)/
	install -m 0644 systemd/hermes-sandbox.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/hermes-sandbox.conf
	install -m 0644 systemd/hermes-sandbox.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/hermes-sandbox.conf
	install -m 0644 etc/audit/50-hermes-sandbox.rules $(DESTDIR)$(SYSCONFDIR)/audit/rules.d/
	install -m 0644 completions/hermes-sandbox.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/hermes-sandbox
	install -m 0644 completions/_hermes-sandbox $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/
	install -m 0644 completions/hermes-sandbox.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/
	ln -sfn hermes-sandbox $(DESTDIR)$(PREFIX)/share/bash-completion/completions/hermes-sandbox-setup
	ln -sfn hermes-sandbox.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/hermes-sandbox-setup.fish
	for n in 1 5 7 8; do install -m 0644 man/*.$$n $(DESTDIR)$(PREFIX)/share/man/man$$n/ || exit 1; done

# Built in a copy, as dpkg writes beside the tree that it builds.
deb:
	rm -rf dist
	mkdir -p dist/src
	tar -c --exclude=./build --exclude=./dist --exclude=./.git . | tar -x -C dist/src
	cd dist/src && env -u BUILD -u MAKEFLAGS -u MFLAGS dpkg-buildpackage -b -us -uc
	ln -f dist/hermes-sandbox_$(VERSION)_*.deb dist/hermes-sandbox.deb
	rm -rf dist/src

# From a clone on a bare Debian machine, as root, to a command that ran in a warm sandbox.
try:
	tests/try.sh

clean:
	rm -rf build dist
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
