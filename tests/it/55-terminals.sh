#!/bin/bash
# exec -it on a real terminal: size, keys, job control, and the caller's terminal as it was, however it ends.
# shellcheck disable=SC2016 # what stands in single quotes is for the shell in the sandbox
# shellcheck disable=SC2317 # the cases are called by it_case
. "${0%/*}/../lib/it.sh"
# shellcheck source=tests/lib/caller.sh
. "${0%/*}/../lib/caller.sh"

it_config <<END
pool:
  size: 2
  max_sandboxes: 20
limits:
  timeout: 3m
END
it_start
install -m 0644 tests/it/terminals.py "$HST_DIR/"

# on_terminal CASE: tests/it/terminals.py has them.
on_terminal() {
	local rc=0
	as "$CALLER" env --default-signal=INT,QUIT python3 "$HST_DIR/terminals.py" "$1" "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock" || rc=$?
	hs session close terminals 2>/dev/null || true
	return $rc
}

in_session() {
	hs session open terminals >/dev/null
	on_terminal "$1"
}

it_case "the size and the name of the terminal are there before the first byte" on_terminal size
it_case "another size is told at once" in_session resize
it_case "^C and ^\\ end what is in the foreground" in_session interrupt
it_case "^Z, jobs, bg, fg" in_session jobs
it_case "^D ends cat, and then the shell" in_session end_of_file
it_case "exit codes are those of exec" in_session codes
it_case "every key arrives and every byte of the output" in_session bytes
it_case "two terminals in one session" in_session two
it_case "the caller's terminal is as it was, whatever ends the program" in_session restored
it_case "-t alone: the input is at its end, ^C is a signal" on_terminal output_only
it_case "the shell on this side: stopped, and brought back" in_session suspended
it_case "top has a screen of its own" on_terminal top

hang_up() {
	hs session open terminals >/dev/null
	as "$CALLER" env --default-signal=INT,QUIT python3 "$HST_DIR/terminals.py" hang_up "$HST_RUN/bin/hermes-sandbox" --socket "$HST_DIR/run/pool.sock"
	wait_for 10 none_left 7506 7507 7508 || expect_gone 7506 7507 7508
	expect_eq here "$(hs exec --session terminals 'echo here')"
	hs session close terminals
}
it_case "a terminal that is hung up takes the command's whole tree with it" hang_up

no_terminal() {
	expect_rc 64 hs exec -it true 2>"$HST_DIR/err" </dev/null
	expect_eq "hermes-sandbox: exec: -it: stdin is no terminal: give -i alone to pass it on, or -t alone for a terminal that nobody types into" \
		"$(cat "$HST_DIR/err")"
	expect_eq "0 0 yes" "$(hs exec -t 'echo $(stty size) $(test -t 0 && echo yes)' </dev/null | tr -d '\r')"
}
it_case "without a terminal on this side" no_terminal
