# fish completion of hermes-sandbox(1)

# The profiles in force. Quick, and only the default where the configuration cannot be read.
function __hermes_sandbox_profiles
    echo default
    command hermes-sandbox config show 2>/dev/null </dev/null |
        sed -n '/^profiles:/,/^[a-z]/s/^  "\([a-z0-9_-]*\)":.*/\1/p'
end

# The caller's sessions, and the ids of his commands. Quick, and nothing where no manager answers.
function __hermes_sandbox_sessions
    command hermes-sandbox session list 2>/dev/null </dev/null | sed '1d; s/ .*//'
end

function __hermes_sandbox_ids
    command hermes-sandbox ps 2>/dev/null </dev/null | sed '1d; s/ .*//'
end

# Sessions with a colon behind them, for cp and its like, whose paths follow at once.
function __hermes_sandbox_remote
    __hermes_sandbox_sessions | string replace -r '$' ':'
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
        contains -- $words[1] --profile --session -e --env -w --workdir --script --timeout -u --user; and set -e words[1]
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
complete -c hermes-sandbox -s h -l help -d 'help' -n '__hermes_sandbox_bare; or __hermes_sandbox_is exec session ps attach wait kill cp cat ls rm status top stats metrics logs start stop setup image config ssh audit doctor version help'
complete -c hermes-sandbox -n __hermes_sandbox_bare -l version -d 'print the version'
complete -c hermes-sandbox -n __hermes_sandbox_bare -l socket -rF -d 'socket of the manager'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a exec -d 'run a command in a sandbox'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a session -d 'open, list, stop, start and close sessions'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a ps -d 'your commands: what runs, and what has ended'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a attach -d 'output and end of a detached command'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a wait -d 'wait for the end of detached commands'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a kill -d 'end commands, or send them a signal'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a cp -d 'copy files into a session, or out of it'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a cat -d 'print files of a session'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a ls -d 'list files of a session'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a rm -d 'remove files of a session'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a status -d 'what runs, and what is enforced'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a top -d 'what each sandbox uses now'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a stats -d 'what has happened since the start'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a metrics -d 'the same for Prometheus and its like'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a logs -d 'what the daemons say'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a start -d 'start the manager and the engine broker (root)'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a stop -d 'stop them (root)'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a setup -d 'configure it, start it, prove it (root)'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a image -d 'the images of the profiles'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a config -d 'check the configuration, or show what is in force'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a ssh -d 'the ssh gateway: start it, and who may log in (root)'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a audit -d 'who ran what, and what was refused; check the trails'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a doctor -d 'what is wrong with this machine, and what mends it'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a version -d 'print the version'
complete -c hermes-sandbox -n __hermes_sandbox_bare -a help -d 'the list of commands, or help for one'

complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -l profile -x -a '(__hermes_sandbox_profiles)' -d 'profile of the sandbox'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -l session -x -a '(__hermes_sandbox_sessions)' -d 'in the sandbox of that session'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -l open -d 'open the session if there is none'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -s d -l detach -d 'leave it running and print its id'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -s t -l tty -d 'on a terminal'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -s e -l env -x -a '(set -xn)' -d 'set a variable'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -s w -l workdir -x -d 'where the command starts'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -s i -l stdin -d 'pass standard input on'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -l script -rF -d 'the line for sh is in a file'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -l timeout -x -d 'end the command after that time'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -s u -l user -x -d 'as that user, UID[:GID]'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -l json -d 'print one JSON object'
complete -c hermes-sandbox -n '__hermes_sandbox_is exec' -a '(complete -C (commandline -ct))'
complete -c hermes-sandbox -n '__hermes_sandbox_operands >/dev/null' -a '(__hermes_sandbox_command)'

# The verb of session is this one, or there is none yet.
function __hermes_sandbox_verb
    set -l words (__hermes_sandbox_words)
    test "$words[1]" = session; or return 1
    for word in $words[2..]
        contains -- $word open list inspect stop start close; and begin
            contains -- $word $argv; and return 0; or return 1
        end
    end
    contains -- none $argv
end

complete -c hermes-sandbox -n '__hermes_sandbox_verb none' -a 'open list inspect stop start close'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -l profile -x -a '(__hermes_sandbox_profiles)' -d 'profile of the sandbox'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -l ttl -x -d 'close it when nothing ran for so long'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -l label -x -d 'KEY=VALUE, shown by list'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -l mount -x -a '(__fish_complete_directories)' -d 'SRC:DST[:ro], a folder of this machine'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -s e -l env -x -a '(set -xn)' -d 'a variable of its commands'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -s w -l workdir -x -d 'where its commands start'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -s u -l user -x -d 'UID:GID, whose its commands are'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -l memory -x -d 'less memory'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -l cpus -x -d 'less CPU'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -l pids-limit -x -d 'fewer processes'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -l shm-size -x -d 'a smaller /dev/shm'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -l tmpfs -x -d 'PATH=SIZE, a smaller writable place'
complete -c hermes-sandbox -n '__hermes_sandbox_verb open none' -l no-network -d 'no network'
complete -c hermes-sandbox -n '__hermes_sandbox_verb stop none' -l grace -x -d 'between TERM and KILL'
complete -c hermes-sandbox -n '__hermes_sandbox_verb list none' -l all -d 'of every user, for root'
complete -c hermes-sandbox -n '__hermes_sandbox_is session' -l json -d 'print JSON'
complete -c hermes-sandbox -n '__hermes_sandbox_verb inspect stop start close' -a '(__hermes_sandbox_sessions)'

complete -c hermes-sandbox -n '__hermes_sandbox_is ps' -a '(__hermes_sandbox_sessions)'
complete -c hermes-sandbox -n '__hermes_sandbox_is ps top' -l all -d 'of every user, for root'
complete -c hermes-sandbox -n '__hermes_sandbox_is attach wait kill' -a '(__hermes_sandbox_ids)'
complete -c hermes-sandbox -n '__hermes_sandbox_is attach' -l offset -x -a end -d 'begin so many bytes behind the start'
complete -c hermes-sandbox -n '__hermes_sandbox_is attach' -l stdout-offset -x -a end -d 'the same for stdout alone'
complete -c hermes-sandbox -n '__hermes_sandbox_is attach' -l stderr-offset -x -a end -d 'the same for stderr alone'
complete -c hermes-sandbox -n '__hermes_sandbox_is kill' -s s -l signal -x -a 'TERM INT HUP QUIT KILL USR1 USR2 STOP CONT' -d 'send that signal'

complete -c hermes-sandbox -n '__hermes_sandbox_is cp cat ls rm' -a '(__hermes_sandbox_remote)'
complete -c hermes-sandbox -n '__hermes_sandbox_is cp' -F
complete -c hermes-sandbox -n '__hermes_sandbox_is cp' -s r -d 'nothing: folders are always copied whole'
complete -c hermes-sandbox -n '__hermes_sandbox_is cp' -l max-size -x -d 'take at most so much out'
complete -c hermes-sandbox -n '__hermes_sandbox_is cp cat' -l timeout -x -d 'end it after that time'
complete -c hermes-sandbox -n '__hermes_sandbox_is ls' -s l -d 'all that is known of each'
complete -c hermes-sandbox -n '__hermes_sandbox_is ls' -s a -d 'nothing: it is always so'
complete -c hermes-sandbox -n '__hermes_sandbox_is rm' -s r -d 'folders, too'
complete -c hermes-sandbox -n '__hermes_sandbox_is rm' -s f -d 'what is not there is no failure'

complete -c hermes-sandbox -n '__hermes_sandbox_is ps attach wait status top stats' -l json -d 'print JSON'
complete -c hermes-sandbox -n '__hermes_sandbox_is top' -l once -d 'print it and end'
complete -c hermes-sandbox -n '__hermes_sandbox_is metrics' -l http -d 'answer one HTTP request'
complete -c hermes-sandbox -n '__hermes_sandbox_is logs' -s f -l follow -d 'go on as more comes'
complete -c hermes-sandbox -n '__hermes_sandbox_is logs' -s n -l lines -x -d 'the last lines alone'
complete -c hermes-sandbox -n '__hermes_sandbox_is start stop' -l no-systemd -d 'without systemd, by the supervisor'

complete -c hermes-sandbox -n '__hermes_sandbox_is image; and not __fish_seen_subcommand_from pull build remove' -l json -d 'print JSON'
complete -c hermes-sandbox -n '__hermes_sandbox_is image; and not __fish_seen_subcommand_from list pull verify build remove' -a 'list pull verify build remove'
complete -c hermes-sandbox -n '__hermes_sandbox_is image; and __fish_seen_subcommand_from pull verify' -a '(__hermes_sandbox_profiles)'
complete -c hermes-sandbox -n '__hermes_sandbox_is image; and not __fish_seen_subcommand_from list pull verify' -l flavour -x -a 'base dev hermes' -d 'what is in it'
complete -c hermes-sandbox -n '__hermes_sandbox_is image; and not __fish_seen_subcommand_from list pull verify' -l suite -x -a 'bookworm trixie' -d 'of which of Debian\'s releases'
complete -c hermes-sandbox -n '__hermes_sandbox_is image; and not __fish_seen_subcommand_from list pull verify' -l name -x -d 'its name and tag'
complete -c hermes-sandbox -n '__hermes_sandbox_is image; and not __fish_seen_subcommand_from list pull verify' -l package -x -d 'a further package'
complete -c hermes-sandbox -n '__hermes_sandbox_is image; and not __fish_seen_subcommand_from list pull verify' -l mirror -x -d 'where the packages come from'
complete -c hermes-sandbox -n '__hermes_sandbox_is image; and not __fish_seen_subcommand_from list pull verify' -l tmp -x -a '(__fish_complete_directories)' -d 'where it is put together'
complete -c hermes-sandbox -n '__hermes_sandbox_is image; and not __fish_seen_subcommand_from list pull verify' -l cache -x -a '(__fish_complete_directories)' -d 'where packages are kept'
complete -c hermes-sandbox -n '__hermes_sandbox_is image; and not __fish_seen_subcommand_from list pull verify' -l engine-socket -rF -d 'socket of the engine'
complete -c hermes-sandbox -n '__hermes_sandbox_is image; and not __fish_seen_subcommand_from list pull verify' -l verbose -d 'show what mmdebstrap and apt say'

complete -c hermes-sandbox -n '__hermes_sandbox_is config' -l config-dir -x -a '(__fish_complete_directories)' -d 'folder of the configuration'
complete -c hermes-sandbox -n '__hermes_sandbox_is config; and not __fish_seen_subcommand_from check show' -a 'check show'
complete -c hermes-sandbox -n '__hermes_sandbox_is config; and __fish_seen_subcommand_from check show' -F

complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l since -x -a 'today yesterday' -d 'what ran after that time'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l until -x -a 'today yesterday' -d 'what ran before that time'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l user -x -a '(__fish_complete_users)' -d 'of this caller'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l session -x -d 'in this session'
complete -c hermes-sandbox -n '__hermes_sandbox_is audit' -l key -x -d 'of the holder of this ssh key'
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
complete -c hermes-sandbox -n '__hermes_sandbox_is ssh' -a 'enable disable status add-key remove-key list-keys'
complete -c hermes-sandbox -n '__hermes_sandbox_is ssh' -l listen -x -d 'address of this machine, ADDR[:PORT]'
complete -c hermes-sandbox -n '__hermes_sandbox_is ssh' -l no-systemd -d 'start sshd itself'
complete -c hermes-sandbox -n '__hermes_sandbox_is ssh' -l profile -xa '(__hermes_sandbox_profiles)' -d 'of the session of the key'
complete -c hermes-sandbox -n '__hermes_sandbox_is ssh' -l ttl -x -d 'closed when nothing ran for so long'
complete -c hermes-sandbox -n '__hermes_sandbox_is ssh' -l name -x -d 'of the key'
complete -c hermes-sandbox -n '__hermes_sandbox_is ssh' -l json -d 'list-keys: an array of objects'
complete -c hermes-sandbox -n '__hermes_sandbox_is doctor' -l json -d 'an array of objects'
complete -c hermes-sandbox -n '__hermes_sandbox_is doctor' -l root -xa '(__fish_complete_directories)' -d 'another tree to look at'
complete -c hermes-sandbox -n '__hermes_sandbox_is doctor' -l socket -rF -d 'socket of the manager'

# hermes-sandbox-setup and hermes-sandbox setup.
function __hermes_sandbox_setup
    set -l condition $argv[1]
    set -l command complete -c $argv[2] -n $condition
    $command -l version -d 'print the version'
    $command -l pool-size -x -d 'warm sandboxes'
    $command -l memory -x -d 'of one sandbox'
    $command -l memory-reserve -x -d 'what the kernel tries to leave it'
    $command -l cpus -x -d 'of one sandbox'
    $command -l network -x -a 'none bridge' -d 'of the sandboxes'
    $command -l read-only -x -a 'true false' -d 'the image\'s own files'
    $command -l image -x -d 'of the sandboxes'
    $command -l profile -x -a '(__hermes_sandbox_profiles)' -d 'of this profile'
    $command -l user -d 'the pair of a single user'
    $command -l add-user -x -a '(__fish_complete_users)' -d 'who may use it'
    $command -l install-scripts -d 'scripts into ~/.hermes/scripts'
    $command -l no-systemd -d 'without systemd, by the supervisor'
    $command -l no-start -d 'leave the daemons alone'
    $command -l dry-run -d 'show the change, and change nothing'
    $command -l yes -d 'ask nothing'
    $command -l config-dir -x -a '(__fish_complete_directories)' -d 'folder of the configuration'
    $command -l socket -rF -d 'of the manager'
    $command -l pid-file -rF -d 'of the supervisor'
end
__hermes_sandbox_setup '__hermes_sandbox_is setup' hermes-sandbox
__hermes_sandbox_setup true hermes-sandbox-setup
complete -c hermes-sandbox-setup -f
complete -c hermes-sandbox-setup -s h -l help -d 'help'

complete -c hermes-sandbox -n '__hermes_sandbox_is help' -a 'exec session ps attach wait kill cp cat ls rm status top stats metrics logs start stop setup image config ssh audit doctor version help'
