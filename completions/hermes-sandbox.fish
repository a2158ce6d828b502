# fish completion of hermes-sandbox(1)

# The profiles in force. Quick, and only the default where the configuration cannot be read.
function __hermes_sandbox_profiles
    echo default
    command hermes-sandbox config show 2>/dev/null </dev/null |
        sed -n '/^profiles:/,/^[a-z]/s/^  "\([a-z0-9_-]*\)":.*/\1/p'
end

# The words of the line before the cursor, from the command on, without options in front of it.
function __hermes_sandbox_words
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]; and string match -q -- '-*' $words[1]
        test $words[1] = --socket; and set -e words[1]
        set -e words[1]
    end
    set -q words[1]; and printf '%s\n' $words
end

# No command yet.
function __hermes_sandbox_bare
    test (count (__hermes_sandbox_words)) -eq 0
end

# The command is one of these, and its options go on: behind an operand of exec they are the operand's.
function __hermes_sandbox_is
    set -l words (__hermes_sandbox_words)
    set -q words[1]; and contains -- $words[1] $argv; or return 1
    test $words[1] = exec; or return 0
    not __hermes_sandbox_operands >/dev/null
end

# The command that exec runs, with its arguments. 1: there is none yet.
function __hermes_sandbox_operands
    set -l words (__hermes_sandbox_words)
    set -q words[1]; and test $words[1] = exec; or return 1
    set -e words[1]
    while set -q words[1]; and string match -q -- '-*' $words[1]
        if test $words[1] = --
            set -e words[1]
            break
        end
        contains -- $words[1] --profile -e --env -w --workdir --script --timeout; and set -e words[1]
        set -e words[1]
    end
    set -q words[1]; or return 1
    printf '%s\n' $words
end

function __hermes_sandbox_command
    set -l operands (__hermes_sandbox_operands)
    complete -C (string join -- ' ' (string escape -- $operands) (commandline -ct))
end

complete -c hermes-sandbox -f
complete -c hermes-sandbox -s h -l help -d 'help' -n '__hermes_sandbox_bare; or __hermes_sandbox_is exec status start stop config audit version help'
complete -c hermes-sandbox -n __hermes_sandbox_bare -l version -d 'print the version'
complete -c hermes-sandbox -n __hermes_sandbox_bare -l socket -rF -d 'socket of the manager'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a exec -d 'run a command in a sandbox'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a status -d 'what runs, and what is enforced'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a start -d 'start the manager and the engine broker (root)'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a stop -d 'stop them, and remove every sandbox (root)'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a config -d 'check the configuration, or show what is in force'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a audit -d 'who ran what, and what was refused; check the trails'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a version -d 'print the version'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a help -d 'the list of commands, or help for one'

complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -l profile -x -a '(__hermes_sandbox_profiles)' -d 'profile of the sandbox'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -s e -l env -x -a '(set -xn)' -d 'set a variable'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -s w -l workdir -x -d 'where the command starts'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -s i -l stdin -d 'pass standard input on'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -l script -rF -d 'the line for sh is in a file'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -l timeout -x -d 'end the command after that time'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -l json -d 'print one JSON object'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -a '(complete -C (commandline -ct))'
complete -c hermes-sandbox -n '__hermes_sandbox_operands >/dev/null' -a '(__hermes_sandbox_command)'

complete -c hermes-sandbox -n '__hermes_sandbox_is status' -l json -d 'print one JSON object'
complete -c hermes-sandbox -n '__hermes_sandbox_is start stop' -l no-systemd -d 'without systemd, by the supervisor'

complete -c hermes-sandbox -n '__hermes_sandbox_is config' -l config-dir -x -a '(__fish_complete_directories)' -d 'folder of the configuration'
complete -c hermes-sandbox -n '__hermes_sandbox_is config; and not __fish_seen_subcommand_from check show' -a 'check show'
complete -c hermes-sandbox -n '__hermes_sandbox_is config; and __fish_seen_subcommand_from check show' -F

complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l since -x -a 'today yesterday' -d 'what ran after that time'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l until -x -a 'today yesterday' -d 'what ran before that time'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l user -x -a '(__fish_complete_users)' -d 'of this caller'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l session -x -d 'in this session'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l exec -x -d 'this exec alone'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l failed -d 'what failed or was refused'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l summary -d 'figures of each day and user'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l json -d 'one JSON object a line'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l full -d 'do not cut lines'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l verify -d 'check the trails'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l log -rF -d 'log in place of that of auditd'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l trail -rF -d 'readable trail to verify'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l account -x -a '(__fish_complete_users)' -d 'account of the manager'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l manager -rF -d 'program of the manager'

complete -c hermes-sandbox -n '__hermes_sandbox_is help' -a 'exec status start stop config audit version help'
