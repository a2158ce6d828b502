# bash completion of hermes-sandbox(1)                                        -*- shell-script -*-
# shellcheck shell=bash

# The profiles in force, one a line. Quick, and nothing where the configuration cannot be read.
_hermes_sandbox_profiles() {
	echo default
	command hermes-sandbox config show 2>/dev/null </dev/null |
		sed -n '/^profiles:/,/^[a-z]/s/^  "\([a-z0-9_-]*\)":.*/\1/p'
}

# The caller's sessions, and the ids of his commands. Quick, and nothing where no manager answers.
_hermes_sandbox_sessions() { command hermes-sandbox session list 2>/dev/null </dev/null | sed '1d; s/ .*//'; }
_hermes_sandbox_ids() { command hermes-sandbox ps 2>/dev/null </dev/null | sed '1d; s/ .*//'; }

# _hermes_sandbox_value OPTION CUR COMMAND: what may stand behind it. 1: it takes no value.
_hermes_sandbox_value() {
	case $3,$1 in
	kill,-s | kill,--signal) mapfile -t COMPREPLY < <(compgen -W 'TERM INT HUP QUIT KILL USR1 USR2 STOP CONT' -- "$2") && return ;;
	logs,-n | logs,--lines) COMPREPLY=() && return ;;
	audit,--session) COMPREPLY=() && return ;;
	setup,--user) return 1 ;;
	setup,--network) mapfile -t COMPREPLY < <(compgen -W 'none bridge' -- "$2") && return ;;
	setup,--read-only) mapfile -t COMPREPLY < <(compgen -W 'true false' -- "$2") && return ;;
	setup,--add-user) mapfile -t COMPREPLY < <(compgen -u -- "$2") && return ;;
	setup,--pool-size | setup,--memory | setup,--memory-reserve | setup,--cpus | setup,--image) COMPREPLY=() && return ;;
	image,--flavour) mapfile -t COMPREPLY < <(compgen -W 'base dev hermes' -- "$2") && return ;;
	image,--suite) mapfile -t COMPREPLY < <(compgen -W 'bookworm trixie' -- "$2") && return ;;
	image,--name | image,--package | image,--mirror) COMPREPLY=() && return ;;
	ssh,--listen | ssh,--ttl | ssh,--name) COMPREPLY=() && return ;;
	logs,-[a-z] | ls,-[a-z] | rm,-[a-z] | cp,-[a-z]) return 1 ;;
	esac
	case $1 in
	--socket | --script | --log | --trail | --manager | --pid-file | --engine-socket) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	--config-dir | --root | --tmp | --cache) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
	--session) mapfile -t COMPREPLY < <(compgen -W "$(_hermes_sandbox_sessions)" -- "$2") ;;
	--mount) mapfile -t COMPREPLY < <(compgen -d -S : -- "$2") && compopt -o nospace 2>/dev/null ;;
	--offset | --stdout-offset | --stderr-offset) mapfile -t COMPREPLY < <(compgen -W 'end' -- "$2") ;;
	--profile) mapfile -t COMPREPLY < <(compgen -W "$(_hermes_sandbox_profiles)" -- "$2") ;;
	--user | --account) mapfile -t COMPREPLY < <(compgen -u -- "$2") ;;
	--since | --until) mapfile -t COMPREPLY < <(compgen -W 'today yesterday' -- "$2") ;;
	-e | --env) mapfile -t COMPREPLY < <(compgen -v -- "$2") ;;
	-w | --workdir | --timeout | --exec | --ttl | --label | --max-size | --grace) COMPREPLY=() ;;
	-u | --memory | --cpus | --pids-limit | --shm-size | --tmpfs) COMPREPLY=() ;;
	*) return 1 ;;
	esac
	case $1 in --socket | --script | --log | --trail | --manager | --pid-file | --engine-socket | --config-dir | --root | --tmp | --cache) compopt -o filenames 2>/dev/null ;; esac
	return 0
}

_hermes_sandbox_options() {
	case $1 in
	'') echo '--help -h --version --socket' ;;
	exec)
		echo '--help -h --profile --session --open -d --detach -e --env -w --workdir -i --stdin -t --tty --script'
		echo '--timeout -u --user --json'
		;;
	session)
		case $2 in
		open)
			echo '--help -h --profile --ttl --label --mount -e --env -w --workdir -u --user --memory --cpus'
			echo '--pids-limit --shm-size --tmpfs --no-network --json'
			;;
		list) echo '--help -h --all --json' ;;
		stop) echo '--help -h --grace --json' ;;
		start | close | inspect) echo '--help -h --json' ;;
		*)
			echo '--help -h --profile --ttl --label --mount -e --env -w --workdir -u --user --memory --cpus'
			echo '--pids-limit --shm-size --tmpfs --no-network --grace --all --json'
			;;
		esac
		;;
	ps) echo '--help -h --all --json' ;;
	attach) echo '--help -h --offset --stdout-offset --stderr-offset --json' ;;
	kill) echo '--help -h -s --signal' ;;
	cp) echo '--help -h -r --max-size --timeout' ;;
	cat) echo '--help -h --timeout' ;;
	ls) echo '--help -h -l -a' ;;
	rm) echo '--help -h -r -f' ;;
	status | stats | wait) echo '--help -h --json' ;;
	top) echo '--help -h --once --all --json' ;;
	metrics) echo '--help -h --http' ;;
	logs) echo '--help -h -f --follow -n --lines' ;;
	start | stop) echo '--help -h --no-systemd' ;;
	setup)
		echo '--help -h --version --pool-size --memory --memory-reserve --cpus --network --read-only --image --profile'
		echo '--user --add-user --install-scripts --no-systemd --no-start --dry-run --yes --config-dir --socket --pid-file'
		;;
	image)
		case $2 in
		pull) echo '--help -h' ;;
		list | verify) echo '--help -h --json' ;;
		build | remove) echo '--help -h --flavour --suite --name --package --mirror --tmp --cache --engine-socket --verbose' ;;
		*) echo '--help -h --json --flavour --suite --name --package --mirror --tmp --cache --engine-socket --verbose' ;;
		esac
		;;
	config) echo '--help -h --config-dir' ;;
	audit)
		echo '--help -h --since --until --user --session --key --exec --failed --summary --json --full --verify'
		echo '--log --trail --account --manager'
		;;
	ssh)
		case $2 in
		enable) echo '--help -h --listen --no-systemd' ;;
		disable) echo '--help -h --no-systemd' ;;
		add-key) echo '--help -h --profile --ttl --name' ;;
		list-keys) echo '--help -h --json' ;;
		status | remove-key) echo '--help -h' ;;
		*) echo '--help -h --listen --no-systemd --profile --ttl --name --json' ;;
		esac
		;;
	doctor) echo '--help -h --json --root --socket' ;;
	*) echo '--help -h' ;;
	esac
}

# Sessions with a colon behind them, for cp and its like, whose paths follow at once.
_hermes_sandbox_remote() {
	mapfile -t COMPREPLY < <(compgen -S : -W "$(_hermes_sandbox_sessions)" -- "$1")
	compopt -o nospace 2>/dev/null
}

_hermes_sandbox() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' operand=0 i
	local commands='exec session ps attach wait kill cp cat ls rm status top stats metrics logs start stop setup image config ssh audit doctor version help'

	COMPREPLY=()
	# bash breaks --option=value into three words.
	if [[ $cur == = ]]; then
		cur=''
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--)
			operand=$((i + 1))
			break
			;;
		-*)
			if [[ ${COMP_WORDS[i + 1]-} == = ]]; then
				i=$((i + 2))
			elif _hermes_sandbox_value "${COMP_WORDS[i]}" '' "$command"; then
				i=$((i + 1))
			fi
			;;
		*)
			if [[ -z $command ]]; then
				command=${COMP_WORDS[i]}
			elif [[ $operand -eq 0 ]]; then
				operand=$i
				# Options may stand behind the operands of all others.
				[[ $command != exec ]] || break
			fi
			;;
		esac
	done
	COMPREPLY=()
	if [[ $operand -eq 0 || $command != exec ]]; then
		if _hermes_sandbox_value "$prev" "$cur" "$command"; then
			return
		fi
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_hermes_sandbox_options "$command" "${COMP_WORDS[operand]}")" -- "$cur")
			return
		fi
	fi
	case $command in
	'') mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur") ;;
	exec)
		# The command's own completion, as that of sudo. It is this machine's and not the sandbox's.
		if declare -F _command_offset >/dev/null; then
			_command_offset $((operand > 0 ? operand : COMP_CWORD))
		elif [[ $operand -eq 0 || $operand -eq $COMP_CWORD ]]; then
			mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		else
			compopt -o default 2>/dev/null
		fi
		;;
	config)
		if [[ $operand -eq 0 || $operand -eq $COMP_CWORD ]]; then
			mapfile -t COMPREPLY < <(compgen -W 'check show' -- "$cur")
		else
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	image)
		if [[ $operand -eq 0 || $operand -eq $COMP_CWORD ]]; then
			mapfile -t COMPREPLY < <(compgen -W 'list pull verify build remove' -- "$cur")
		elif [[ ${COMP_WORDS[operand]} == pull || ${COMP_WORDS[operand]} == verify ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_hermes_sandbox_profiles)" -- "$cur")
		fi
		;;
	ssh)
		if [[ $operand -eq 0 || $operand -eq $COMP_CWORD ]]; then
			mapfile -t COMPREPLY < <(compgen -W 'enable disable status add-key remove-key list-keys' -- "$cur")
		elif [[ ${COMP_WORDS[operand]} == add-key ]]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	session)
		if [[ $operand -eq 0 || $operand -eq $COMP_CWORD ]]; then
			mapfile -t COMPREPLY < <(compgen -W 'open list inspect stop start close' -- "$cur")
		elif [[ ${COMP_WORDS[operand]} =~ ^(inspect|stop|start|close)$ ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_hermes_sandbox_sessions)" -- "$cur")
		fi
		;;
	ps) mapfile -t COMPREPLY < <(compgen -W "$(_hermes_sandbox_sessions)" -- "$cur") ;;
	attach | wait | kill) mapfile -t COMPREPLY < <(compgen -W "$(_hermes_sandbox_ids)" -- "$cur") ;;
	cp)
		_hermes_sandbox_remote "$cur"
		mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur")
		compopt -o filenames 2>/dev/null
		;;
	cat | ls | rm) _hermes_sandbox_remote "$cur" ;;
	help) mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur") ;;
	esac
}

# hermes-sandbox-setup is hermes-sandbox setup.
_hermes_sandbox_setup() {
	COMP_WORDS=(hermes-sandbox setup "${COMP_WORDS[@]:1}")
	COMP_CWORD=$((COMP_CWORD + 1))
	_hermes_sandbox
}

complete -F _hermes_sandbox hermes-sandbox
complete -F _hermes_sandbox_setup hermes-sandbox-setup
