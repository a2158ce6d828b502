#!/bin/bash
# What Hermes Agent asks of a docker program, in its words and in its order: tests/it/hermes-driver.py, first with the
# genuine program, so that what it expects is what that one does, then with the shim, as a caller who is in the group
# hermes-sandbox and reaches no docker.sock. HST_LONG: the genuine program also does what takes it long.
. "${0%/*}/../lib/it.sh"

FILES=$HST_DIR/files
SHIM=$HST_RUN/bin/docker

# driver OPTIONS… PROGRAM IMAGE PART…: its checks count as cases of this script.
driver() {
	PATH=/usr/bin:/bin python3 -B "$TOP/tests/it/hermes-driver.py" --engine "$HST_ENGINE" --mounts "$FILES" \
		--caller "$(id -u "$CALLER"):$(id -g "$CALLER")" "$@" && return
	it_failed=$((it_failed + 1))
	it_logs
}

install -d -m 0755 "$FILES"
DOCKER_HOST=unix://$HST_ENGINE driver --against genuine /usr/bin/docker "$HST_IMAGE" old new ${HST_LONG:+takes}

# The package's own profile, but for its image: this machine has no other.
install -m 0644 "$TOP/etc/sandbox.d/10-hermes.yaml" "$HST_DIR/etc/sandbox.d/10-hermes.yaml"
it_config <<END
pool:
  size: 1
profiles:
  hermes:
    image: $HST_IMAGE
allowed_file_paths:
  - $FILES
END
it_start

# The driver is root, as it looks at files and ends containers from outside; what it calls is the caller's.
cat >"$HST_DIR/docker" <<END
#!/bin/sh
export HERMES_SANDBOX_SOCKET=$HST_DIR/run/pool.sock
exec setpriv --reuid $CALLER --regid $CALLER --init-groups --inh-caps=-all --bounding-set=-all --no-new-privs -- $SHIM "\$@"
END
chmod 0755 "$HST_DIR/docker"
driver --against shim "$HST_DIR/docker" "$HST_IMAGE" old new takes
