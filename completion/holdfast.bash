# bash completion for holdfast(1)

# Names of locks on the broker that the command line or the environment means.
_holdfast_names() {
    local url=() i
    for ((i = 1; i < cword; i++)); do
        case ${words[i]} in
        -u | --url | --cacert | --cert | --key) url+=("${words[i]}" "${words[i + 1]}") ;;
        esac
    done
    # A name may hold blanks: one a line, quoted for the shell.
    local name
    while IFS= read -r name; do
        [[ $name == "$1"* ]] && COMPREPLY+=("$(printf '%q' "$name")")
    done < <(holdfast ls -1 "${url[@]}" 2>/dev/null)
}

_holdfast_words() {
    local IFS=$' \t\n'
    # shellcheck disable=SC2207
    COMPREPLY=($(compgen -W "$2" -- "$1"))
}

_holdfast() {
    local cur prev words cword
    # Names and addresses have colons, at which bash would cut words.
    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref -n : cur prev words cword
    else
        words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
        cur=${words[cword]} prev=${words[cword - 1]}
    fi
    COMPREPLY=()
    _holdfast_complete
    if declare -F __ltrim_colon_completions >/dev/null; then
        __ltrim_colon_completions "$cur"
    fi
}

_holdfast_complete() {
    local commands='run ls show masters top unlock script ping bench help'
    local command='' name='' i
    for ((i = 1; i < cword; i++)); do
        case ${words[i]} in
        --)
            # What follows is a command of its own.
            if [[ $command == run ]] && declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
                return
            fi
            ;;
        -u | --url | --cacert | --cert | --key | -E | --conflict-exit-code | -c | --clients | \
            -n | --names | -d | --delay | \
            --wait | --lease | --max-hold | --limit | --owner | --on-lost | --grace | --hold | \
            --think | --duration | --prefix)
            i=$((i + 1))
            ;;
        -*) ;;
        *) if [[ -z $command ]]; then command=${words[i]}; else name=${words[i]}; fi ;;
        esac
    done

    case $prev in
    --on-lost) _holdfast_words "$cur" 'term kill ignore' && return ;;
    --wait | --lease | --max-hold | --grace | --hold | --think | --duration | -d | --delay)
        _holdfast_words "$cur" '500ms 1s 10s 1m 10m 1h' && return
        ;;
    --cacert | --cert | --key)
        local IFS=$'\n'
        # shellcheck disable=SC2207
        COMPREPLY=($(compgen -f -- "$cur"))
        return
        ;;
    -u | --url | -E | --conflict-exit-code | -c | --clients | --limit | --owner | --prefix) return ;;
    -n | --names) [[ $command == bench ]] && return ;;
    esac

    case $command in
    '') _holdfast_words "$cur" "$commands -u --url --cacert --cert --key -h --help -V --version" ;;
    help) _holdfast_words "$cur" "${commands% help}" ;;
    run)
        if [[ $cur == -* || -n $name ]]; then
            _holdfast_words "$cur" '--wait --lease --max-hold --shared --limit --fair --owner
                --on-lost --grace -E --conflict-exit-code -v --verbose -u --url --cacert --cert --key -h --help --'
        else
            _holdfast_names "$cur"
        fi
        ;;
    show | unlock | ls)
        local more='--json'
        [[ $command == unlock ]] && more='-f --force'
        [[ $command == ls ]] && more='-1 --names --json'
        if [[ $cur == -* ]]; then
            _holdfast_words "$cur" "$more -u --url --cacert --cert --key -h --help"
        elif [[ -z $name ]]; then
            _holdfast_names "$cur"
        fi
        ;;
    script)
        if [[ $cur == -* ]]; then
            _holdfast_words "$cur" '--json -u --url --cacert --cert --key -h --help'
        elif [[ -z $name ]]; then
            local IFS=$'\n'
            # shellcheck disable=SC2207
            COMPREPLY=($(compgen -f -- "$cur"))
        fi
        ;;
    masters | ping) _holdfast_words "$cur" '--json -u --url --cacert --cert --key -h --help' ;;
    top) _holdfast_words "$cur" '-d --delay -u --url --cacert --cert --key -h --help' ;;
    bench)
        _holdfast_words "$cur" '-c --clients -n --names --hold --think --duration --wait --lease
            --shared --limit --prefix --json -u --url --cacert --cert --key -h --help'
        ;;
    esac
}

complete -F _holdfast holdfast
