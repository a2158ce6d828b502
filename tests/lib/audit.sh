# shellcheck shell=bash
# A kernel audit trail for the tests: the machine's auditd where one runs, else one of our own.

# audit_begin DIR: AUDIT_LOG is the trail's file; AUDIT_PID is our auditd, empty where it is not ours.
audit_begin() {
	local dir=$1 pid
	AUDIT_PID=
	pid=$(auditctl -s | awk '$1 == "pid" { print $2 }')
	if [ "${pid:-0}" -gt 0 ]; then
		AUDIT_LOG=$(audit_log_of "$pid")
		return 0
	fi
	install -d -m 0700 "$dir"
	AUDIT_LOG=$dir/audit.log
	# The same lines as auditd's own default, but for the places and the size.
	cat >"$dir/auditd.conf" <<-END
		local_events = yes
		write_logs = yes
		log_file = $AUDIT_LOG
		log_group = root
		log_format = ENRICHED
		flush = INCREMENTAL_ASYNC
		freq = 50
		max_log_file = 512
		num_logs = 2
		max_log_file_action = ROTATE
		space_left = 75
		space_left_action = IGNORE
		admin_space_left = 50
		admin_space_left_action = IGNORE
		disk_full_action = IGNORE
		disk_error_action = IGNORE
		plugin_dir = $dir/plugins.d
		end_of_event_timeout = 2
	END
	chmod 0640 "$dir/auditd.conf"
	mkdir -m 0750 "$dir/plugins.d"
	AUDIT_WAS=$(auditctl -s | awk '$1 == "enabled" { print $2 }')
	auditd -n -c "$dir" >"$dir/out" 2>&1 &
	AUDIT_PID=$!
	if ! wait_for 15 test -s "$AUDIT_LOG"; then
		cat "$dir/out" >&2
		return 1
	fi
	auditctl -b 8192 >/dev/null
}

# The file that a running auditd writes to: what it has open says so, whatever its config is.
audit_log_of() {
	local fd
	for fd in "/proc/$1/fd"/*; do
		case $(readlink "$fd") in */audit.log) readlink "$fd" && return 0 ;; esac
	done
	echo /var/log/audit/audit.log
}

audit_end() {
	[ -n "${AUDIT_PID:-}" ] || return 0
	end_process "$AUDIT_PID" 10 || true
	auditctl -e "${AUDIT_WAS:-0}" >/dev/null 2>&1 || true
}
