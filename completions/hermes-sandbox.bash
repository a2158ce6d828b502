# bash completion of hermes-sandbox(1)                                        -*- shell-script -*-
# shellcheck shell=bash

# The profiles in force, one a line. Quick, and nothing where the configuration cannot be read.
_hermes_sandbox_profiles() {
	echo default
	command hermes-sandbox config show 2>/dev/null </dev/null |
		sed -n '/^profiles:/,/^[a-z]/s/^  "\([a-z0-9_-]*\)":.*/\1/p'
}

# _hermes_sandbox_value OPTION CUR: what may stand behind it. 1: it takes no value.
_hermes_sandbox_value() {
	case $1 in
	--socket | --script | --log | --trail | --manager) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	--config-dir) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
	--profile) mapfile -t COMPREPLY < <(compgen -W "$(_hermes_sandbox_profiles)" -- "$2") ;;
	--user | --account) mapfile -t COMPREPLY < <(compgen -u -- "$2") ;;
	--since | --until) mapfile -t COMPREPLY < <(compgen -W 'today yesterday' -- "$2") ;;
	-e | --env) mapfile -t COMPREPLY < <(compgen -v -- "$2") ;;
	-w | --workdir | --timeout | --session | --exec) COMPREPLY=() ;;
	*) return 1 ;;
	esac
	case $1 in --socket | --script | --log | --trail | --manager | --config-dir) compopt -o filenames 2>/dev/null ;; esac
	return 0
}

_hermes_sandbox_options() {
	case $1 in
	'') echo '--help -h --version --socket' ;;
	exec) echo '--help -h --profile -e --env -w --workdir -i --stdin --script --timeout --json' ;;
	status) echo '--help -h --json' ;;
	start | stop) echo '--help -h --no-systemd' ;;
	config) echo '--help -h --config-dir' ;;
	audit)
		echo '--help -h --since --until --user --session --exec --failed --summary --json --full --verify'
		echo '--log --trail --account --manager'
		;;
	*) echo '--help -h' ;;
	esac
}

_hermes_sandbox() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' operand=0 i
	local commands='exec status start stop config audit version help'

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
			elif _hermes_sandbox_value "${COMP_WORDS[i]}" ''; then
				i=$((i + 1))
			fi
			;;
		*)
			if [[ -n $command ]]; then
				operand=$i
				break
			fi
			command=${COMP_WORDS[i]}
			;;
		esac
	done
	COMPREPLY=()
	if [[ $operand -eq 0 ]] && _hermes_sandbox_value "$prev" "$cur"; then
		return
	fi
	if [[ $operand -eq 0 && $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_hermes_sandbox_options "$command")" -- "$cur")
		return
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
	help) mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur") ;;
	esac
}

complete -F _hermes_sandbox hermes-sandbox
