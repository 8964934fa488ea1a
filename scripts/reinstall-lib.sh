#!/bin/bash
# What reinstall-macos.sh and reinstall-linux.sh share: talking, one run at a time, children
# that a signal does not wait for, ending processes by pid, and the proof of health. Sourced by
# them, never run. For bash 3.2, which is macOS's own: no associative arrays, no ${x,,}, no
# mapfile, no wait -n, and no empty array under "set -u".
#
# Whoever sources it defines is_ours PID (its program is one of those being replaced), gone PID,
# is_a_run PID (it is one of these scripts), usage, own_flag NAME VALUE (takes a flag that only
# this script has; 1 where it has none of that name), undo (what to do about an unfinished run
# before the script exits) and tidy (what may go once nobody holds the lock).

# shellcheck disable=SC2034 # the variables of an answer are read by those scripts

me=${0##*/}
scratch=   # a folder of this run, for answers of the program
child=     # the pid that run waits for
lock=      # the lock that this run holds
work=      # the folder beside what is replaced, with the lock, the journal and what is kept
result=    # an exit code that the end of the run found out
health_=0  # how "sallyport health" exited; its answer is in the next four
answered='' # by ask_version
health_version='' health_instance='' health_pid='' health_port=''

say() { printf '%s\n' "$*"; }
note() { printf 'note: %s\n' "$*" >&2; }

# refuse CODE SENTENCE [NEXT] ends the run. Not for use in $(…).
refuse() {
	printf '%s: %s\n' "$me" "$2" >&2
	[ -z "${3:-}" ] || printf '  next: %s\n' "$3" >&2
	exit "$1"
}

# read_flags WORDS... reads what both are called with into source_, rollback, backup, dry and
# wait_; own_flag takes the rest.
source_='' rollback='' backup=1 dry='' wait_=30
read_flags() {
	while [ $# -gt 0 ]; do
		case $1 in
		--rollback) rollback=1 ;;
		--no-backup) backup='' ;;
		--dry-run) dry=1 ;;
		-h | --help)
			usage
			exit 0
			;;
		*)
			case $1 in
			--source) source_=${2:-} ;;
			--wait) wait_=${2:-} ;;
			*) own_flag "$1" "${2:-}" || refuse 2 "$1 is not known" "see $me --help" ;;
			esac
			if [ -z "${2:-}" ]; then refuse 2 "$1 needs a value" "see $me --help"; fi
			shift
			;;
		esac
		shift
	done
	case $wait_ in '' | *[!0-9]* | ?????*) refuse 2 "--wait is a number of seconds" ;; esac
	wait_=$((10#$wait_)) # 08 is eight
	if [ -n "$rollback" ] && [ -n "$source_" ]; then refuse 2 "--rollback has a source of its own"; fi
}

# not_by_sudo: what sudo starts is root's, and so are the files that it writes.
not_by_sudo() {
	if [ "$(id -u)" = 0 ] && [ -n "${SUDO_USER:-}" ]; then
		refuse 3 "run by sudo, it would start Sallyport as root" "run it without sudo"
	fi
}

# recorded NAME is what the journal of an earlier run says.
recorded() { sed -n "s/^$1=//p" "$work/journal" 2>/dev/null | head -n 1; }

# begin sets the traps and the scratch folder.
begin() {
	exec 3>&1 4>&2 # a signal may come while the output of a function goes elsewhere
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/sallyport-reinstall.XXXXXX")
	trap at_exit EXIT
	trap 'interrupted INT 130' INT
	trap 'interrupted TERM 143' TERM
	trap 'interrupted HUP 129' HUP
}

interrupted() {
	printf '%s: interrupted by SIG%s\n' "$me" "$1" >&4
	exit "$2"
}

# at_exit is the one way out: whatever is half done is undone, and a second signal does not
# leave the undoing half done.
at_exit() {
	result=$?
	trap - EXIT
	trap : INT TERM HUP
	set +e
	exec >&3 2>&4
	end_child
	undo
	unlock
	tidy
	[ -z "$scratch" ] || rm -rf "$scratch"
	exit "$result"
}

# run COMMAND... waits for a child in a way that a signal ends at once.
run() {
	local status=0
	"$@" 3>&- 4>&- &
	child=$!
	wait "$child" || status=$?
	child=
	return "$status"
}

# run_within SECONDS COMMAND... is run with a limit; 124 when it is reached.
run_within() {
	local left=$(($1 * 20)) status=0
	shift
	"$@" 3>&- 4>&- &
	child=$!
	while kill -0 "$child" 2>/dev/null; do
		if [ "$left" -le 0 ]; then
			end_child
			return 124
		fi
		left=$((left - 1))
		sleep 0.05
	done
	wait "$child" || status=$?
	child=
	return "$status"
}

# end_child ends the child of run, which nobody has waited for yet: the pid is its own.
end_child() {
	local left=40
	[ -n "$child" ] || return 0
	kill -TERM "$child" 2>/dev/null
	while [ "$left" -gt 0 ] && kill -0 "$child" 2>/dev/null; do
		left=$((left - 1))
		sleep 0.05
	done
	kill -KILL "$child" 2>/dev/null
	wait "$child" 2>/dev/null
	child=
	return 0
}

# take_lock FILE lets one run at a time through. The lock is a link to "pid": making one is
# atomic, and its owner is named from the first moment on. One whose owner is gone is moved
# away before a new one is made, and is looked at again there: two runs may have found it.
take_lock() {
	local owner aside
	if ln -s "$$" "$1" 2>/dev/null; then
		lock=$1
		return 0
	fi
	owner=$(readlink "$1") || return 1
	case $owner in '' | *[!0-9]*) return 1 ;; esac
	if is_a_run "$owner"; then return 1; fi
	aside=$1.$$
	mv "$1" "$aside" 2>/dev/null || return 1
	if [ "$(readlink "$aside")" != "$owner" ]; then
		mv "$aside" "$1" # somebody else's, who was quicker
		return 1
	fi
	rm -f "$aside"
	ln -s "$$" "$1" 2>/dev/null || return 1
	lock=$1
}

unlock() {
	if [ -n "$lock" ]; then rm -f "$lock"; fi
	lock=
}

# end_processes WHAT SECONDS PIDS asks each to end, waits, and kills what is left. Each is
# looked at again right before a signal, because a pid may have got another owner.
end_processes() {
	local what=$1 seconds=$2 pids=$3 pid
	for pid in $pids; do
		if is_ours "$pid"; then kill -TERM "$pid" 2>/dev/null || :; fi
	done
	if all_gone "$seconds" "$pids"; then return 0; fi
	for pid in $pids; do
		if ! gone "$pid" && is_ours "$pid"; then
			note "$what (pid $pid) has not ended within $seconds s and is killed"
			kill -KILL "$pid" 2>/dev/null || :
		fi
	done
	all_gone 5 "$pids"
}

# all_gone SECONDS PIDS waits until they have ended.
all_gone() {
	local left=$(($1 * 10)) pid remain
	while :; do
		remain=
		for pid in $2; do
			gone "$pid" || remain=1
		done
		if [ -z "$remain" ]; then return 0; fi
		if [ "$left" -le 0 ]; then return 1; fi
		left=$((left - 1))
		sleep 0.1
	done
}

# ask_health PROGRAM SECONDS [FLAGS...] makes the sidecar of this user's data folder prove
# itself (spec/local-api.md 4): what answers on the port and cannot is never taken for it.
# 0 healthy, 1 unhealthy, 3 not running, 4 a stranger is on the port, 5 another version, 6
# another start or folder; 124 when the program itself does not come back.
ask_health() {
	local program=$1 seconds=$2
	shift 2
	health_=0
	run_within "$((seconds + 15))" "$program" health --json --wait "${seconds}s" "$@" \
		>"$scratch/health" 2>"$scratch/health.err" || health_=$?
	health_version=$(field version) health_instance=$(field instance)
	health_pid=$(field pid) health_port=$(field port)
}

# field NAME is a word or number of the last answer, which has one field a line.
field() { sed -n 's/^  "'"$1"'": "\{0,1\}\([^",]*\)"\{0,1\},\{0,1\}$/\1/p' "$scratch/health" | head -n 1; }

# said is what the last answer says, as a sentence.
said() {
	local sentence
	sentence=$(sed -n 's/^  "sentence": "\(.*\)",\{0,1\}$/\1/p' "$scratch/health" | head -n 1)
	if [ "$health_" = 124 ]; then sentence='the program does not come back'; fi
	printf '%s' "${sentence:-$(head -n 1 "$scratch/health.err")}"
}

# ask_version PROGRAM leaves the version that it says it has in answered; nothing where it
# does not run here.
ask_version() {
	answered=
	run_within 20 "$1" version --json >"$scratch/version" 2>/dev/null || return 1
	answered=$(sed -n 's/^  "version": "\([^"]*\)",\{0,1\}$/\1/p' "$scratch/version" | head -n 1)
	[ -n "$answered" ]
}

# launch PROGRAM starts its sidecar in a group of its own: Ctrl-C here is not for it.
launch() {
	(
		set -m
		nohup "$1" serve </dev/null >/dev/null 2>&1 3>&- 4>&- &
	)
}
