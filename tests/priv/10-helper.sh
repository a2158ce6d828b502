#!/bin/bash
# What hermes-docker-enable does, for whom, and what it says where it cannot.
. "${0%/*}/../lib/priv.sh"

first() {
	helper 0 "$NOW"
	enabled
	local group
	group=$(stat -c %i /etc/group)
	helper 0 "$ALREADY"
	expect_eq "$group" "$(stat -c %i /etc/group)"
	expect_eq 1 "$(id -nG _hermes-engine | tr ' ' '\n' | grep -cx docker)"
}
it_case "a member puts the account into the group; again is a success and runs nothing" first

by_root() {
	fresh
	chmod 0755 $HELPER
	helper 0 "$NOW" $HELPER
	enabled
}
it_case "root may, without the setuid bit" by_root

others() {
	fresh
	gpasswd -a "$STRANGER" docker
	helper 0 "$NOW"
	expect_eq "$STRANGER,_hermes-engine" "$(members /etc/group)"
	expect_eq "$STRANGER,_hermes-engine" "$(members /etc/gshadow)"
}
it_case "other members of the group stay" others

# gpasswd reads before it locks, and would lose the one that comes in between.
joined_meanwhile() {
	local pid
	fresh
	python3 - <<-'END' &
		import fcntl, re, time
		lock = open('/etc/.pwd.lock', 'r+')
		fcntl.lockf(lock, fcntl.LOCK_EX)
		time.sleep(1)
		text = open('/etc/group').read()
		open('/etc/group', 'w').write(re.sub(r'(?m)^(docker:.*:)$', r'\1daemon', text))
	END
	pid=$!
	wait_for 5 grep -q "POSIX.*:$(stat -c %i /etc/.pwd.lock) " /proc/locks
	helper 0 "$NOW"
	wait $pid
	expect_eq daemon,_hermes-engine "$(members /etc/group)"
}
it_case "who joins the group while it waits for the lock stays, too" joined_meanwhile

hundred() {
	local i
	fresh
	for i in {1..100}; do
		login caller $HELPER >"$HST_DIR/out.$i" 2>&1 </dev/null || echo "status $?" >>"$HST_DIR/out.$i" &
	done
	wait
	expect_eq "" "$(cat "$HST_DIR"/out.* | grep -vxF -e "$NOW" -e "$ALREADY")"
	expect_eq 100 "$(cat "$HST_DIR"/out.* | wc -l)"
	rm "$HST_DIR"/out.*
	enabled
}
it_case "a hundred at once: each succeeds, one membership, every file whole" hundred

arguments() {
	local line='hermes-docker-enable: it takes no argument'
	fresh
	helper 64 "$line" login caller $HELPER ""
	helper 64 "$line" login caller $HELPER --help
	helper 64 "$line" login caller $HELPER _hermes-engine docker
	helper 64 "$line" $HELPER root
	unchanged
}
it_case "any argument is refused" arguments

strangers() {
	fresh
	expect_rc 126 login stranger $HELPER 2>"$HST_DIR/err"
	chmod 4755 $HELPER
	helper 77 'hermes-docker-enable: only root and group hermes-sandbox may run it' login stranger $HELPER
	# In the group by name, but not by what this login has got.
	helper 77 '*only root*' setpriv --reuid "$CALLER" --regid "$CALLER" --clear-groups -- env $HELPER
	unchanged
}
it_case "who is not in the group is refused: by the file's mode, and where that is open, by the helper" strangers

powerless() {
	local line='hermes-docker-enable: it does not run as root here: use sudo'
	fresh
	chmod 0755 $HELPER
	helper 77 "$line" login caller $HELPER
	chmod 4750 $HELPER
	helper 77 "$line" login caller setpriv --no-new-privs $HELPER
	mount -o remount,bind,nosuid /usr/sbin
	helper 77 "$line"
	mount -o remount,bind,suid /usr/sbin
	unchanged
}
it_case "without root's rights (no setuid bit, no_new_privs, nosuid) it says so" powerless

missing() {
	fresh
	sed -i /^docker:/d /etc/group
	helper 69 '*no group docker*'
	fresh
	sed -i /^_hermes-engine:/d /etc/passwd
	helper 69 '*no account _hermes-engine*'
	fresh
	rm /usr/sbin/usermod
	helper 69 '*cannot execute /usr/sbin/usermod*'
	unchanged
	fresh
	rm /etc/gshadow
	helper 0 "$NOW"
	expect_eq _hermes-engine "$(members /etc/group)"
	fresh
	sed -i /^hermes-sandbox:/d /etc/group
	chmod 4755 $HELPER
	helper 77 '*only root and group hermes-sandbox*'
}
it_case "no group, no account, no tool: 69, and no gshadow is no fault" missing

read_only() {
	fresh
	mount -o remount,bind,ro /etc
	helper 71 '*cannot write in /etc: Read-only file system'
	mount -o remount,bind,rw /etc
	unchanged
}
it_case "a read-only /etc: 71" read_only

untrusted() {
	local file how plain='it must be a plain file of root that only root can write' why
	for file in group gshadow passwd; do
		for how in "chmod g+w" "chmod o+w" "chown $CALLER" "ln"; do
			fresh
			if [ "$how" = ln ]; then
				mv "/etc/$file" "/etc/$file.real"
				ln -s "$file.real" "/etc/$file"
			else
				$how "/etc/$file"
			fi
			# gshadow is looked at where group says yes.
			[ $file != gshadow ] || sed -i '/^docker:/s/$/_hermes-engine/' /etc/group
			why=$plain
			# Which root without CAP_DAC_OVERRIDE cannot even read.
			[ "$file $how" != "gshadow chown $CALLER" ] || why='Permission denied'
			helper 71 "hermes-docker-enable: /etc/$file: $why"
			expect_eq "" "$(members /etc/gshadow)"
		done
		fresh
		rm "/etc/$file"
		# A fifo in the place of the other two would hold up this shell's own tools.
		if [ $file = gshadow ]; then mkfifo /etc/gshadow; else mknod "/etc/$file" c 1 3; fi
		[ $file != gshadow ] || sed -i '/^docker:/s/$/_hermes-engine/' /etc/group
		helper 71 "hermes-docker-enable: /etc/$file: $plain"
	done
	fresh
	sed -i 's/^\(hermes-sandbox:[^:]*\):[0-9]*:/\1::/' /etc/group
	helper 71 '*/etc/group: Bad message'
	sed -i 's/^\(hermes-sandbox:[^:]*\)::/\1:4294967295:/' /etc/group
	helper 71 '*/etc/group: Bad message'
}
it_case "a symlinked, foreign, writable or otherwise strange group, gshadow or passwd is refused" untrusted

half_done() {
	fresh
	sed -i '/^docker:/s/$/_hermes-engine/' /etc/group
	helper 0 "$NOW"
	enabled
}
it_case "a membership that only one of the two files has is completed" half_done

large() {
	local n
	fresh
	for n in {100000..132000}; do echo "hstest$n:x:$n:"; done >"$HST_DIR/lines"
	sed -i "/^docker:/{
		r $HST_DIR/lines
		N
	}" /etc/group
	helper 0 "$NOW"
	grep -v '^hstest[0-9]' /etc/group >"$HST_DIR/group"
	expect_eq _hermes-engine "$(members "$HST_DIR/group")"
	expect_eq 32001 "$(grep -c '^hstest[0-9]' /etc/group)"
	helper 0 "$ALREADY"
}
it_case "a group file of 32,000 lines" large

wide() {
	local n list
	fresh
	list=$(for n in {1..60000}; do printf 'hstest%d,' "$n"; done)
	printf '/^docker:/s/$/%s/\n' "${list%,}" >"$HST_DIR/wide.sed"
	sed -i -f "$HST_DIR/wide.sed" /etc/group /etc/gshadow
	helper 0 "$NOW"
	expect_eq 60001 "$(members /etc/group | tr , '\n' | sort -u | wc -l)"
	expect_eq "$list"_hermes-engine "$(members /etc/group)"
	expect_eq "$list"_hermes-engine "$(members /etc/gshadow)"
	helper 0 "$ALREADY"
}
it_case "a group of 60,000 members" wide
