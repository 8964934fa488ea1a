#!/bin/bash
# Replaces an installed Sallyport.app and proves that the new one is healthy, or puts the old
# one back. Read "usage" for what it does and its exit codes, docs/macos.md for what only a Mac
# can show.
#
# The one idea: what is on disk says how far a run came. The new bundle is staged beside the
# target, in a folder that no other name leads to; old and new change places by two renames;
# the old one stays as it was until the new one has proved itself. So a run that was killed at
# any point is repaired by looking (put_back), by its own end or by the next run.
set -euo pipefail
# shellcheck source=scripts/reinstall-lib.sh
. "$(dirname "$0")/reinstall-lib.sh"

id=io.sallyport.Sallyport
label=$id # of the LaunchAgent that starts it at login
root=$(cd "$(dirname "$0")/.." && pwd -P)
agent=$HOME/Library/LaunchAgents/$label.plist
PATH=$PATH:/usr/bin:/bin:/usr/sbin:/sbin:/usr/libexec
PATH=$PATH:/System/Library/Frameworks/CoreServices.framework/Frameworks/LaunchServices.framework/Support

usage() {
	cat <<'TEXT'
usage: scripts/reinstall-macos.sh [--source APP] [--target APP] [flags]

Replaces an installed Sallyport.app by another one, starts it and proves its health on the port
that it has kept. Approvals, secrets, settings and the audit are not touched. Run it as the user
whose Sallyport it is, without sudo.

  --source APP   what to install (default: the newest below dist/ or build/)
  --target APP   what to replace (default: /Applications/Sallyport.app)
  --rollback     install what the last run replaced, which it has kept
  --no-backup    keep nothing to roll back to
  --wait N       seconds that the new one has to become healthy (default: 30)
  --dry-run      look at everything, say what would be done, and change nothing

It ends the login item, the application, the agents' connections and the sidecar, in this order
and by pid, and only programs that lie in the bundles being replaced. A failure before the two
bundles change places leaves or starts the old one; a failure after that brings it back.

Exit codes:
   0  done: the new one is healthy             24  another copy of Sallyport is running
   1  failed unexpectedly; nothing changed     25  the old one does not end
   2  wrong usage                              26  another program is on its port
   3  a tool is missing, or run by sudo        27  copying failed
  10  there is no source                       30  the new one is not healthy; the old one is
  11  the source is in quarantine                  back, and as healthy as it was
  12  a translocated path                      31  the same, but the old one is not healthy
  13  the source is not a whole Sallyport.app  32  the old one could not be put back: it says
  14  its signature does not verify                where the old one is
  15  source and target overlap                33  there is nothing to roll back to
  16  the source does not run here             129, 130, 143  interrupted, and put back
  20  the target is a link or not Sallyport
  21  the target's folder cannot be written
  22  another run is going on
  23  the disk is full
TEXT
}

target=/Applications/Sallyport.app
own_flag() {
	case $1 in --target) target=$2 ;; *) return 1 ;; esac
}
read_flags "$@"

# --- what a bundle is ---------------------------------------------------------------------------

# plist BUNDLE KEY is a value of its Info.plist; nothing without one.
plist() {
	local value
	value=$(PlistBuddy -c "Print :$2" "$1/Contents/Info.plist" 2>/dev/null) || return 0
	printf '%s' "$value"
}

# program_of BUNDLE is the path of its main program.
program_of() {
	local name
	name=$(plist "$1" CFBundleExecutable)
	printf '%s' "$1/Contents/MacOS/${name:-sallyport}"
}

is_sallyport() { [ -d "$1" ] && [ "$(plist "$1" CFBundleIdentifier)" = "$id" ]; }

# whole BUNDLE says what is missing in it; nothing when nothing is.
whole() {
	local program
	program=$(program_of "$1")
	if [ ! -f "$1/Contents/Info.plist" ] || ! plutil -lint "$1/Contents/Info.plist" >/dev/null 2>&1; then
		printf 'it has no readable Info.plist'
	elif ! is_sallyport "$1"; then
		printf 'its bundle id is not %s' "$id"
	elif [ -z "$(plist "$1" CFBundleShortVersionString)" ]; then
		printf 'its Info.plist names no version'
	elif [ ! -f "$program" ] || [ ! -x "$program" ]; then
		printf 'its program %s is missing' "${program##*/}"
	fi
}

# absolute PATH resolves its folder, not itself: a target that is a link has to stay one.
absolute() {
	local folder
	folder=$(cd "$(dirname "$1")" 2>/dev/null && pwd -P) || return 1
	printf '%s/%s' "${folder%/}" "$(basename "$1")"
}

# has_legacy: there is a copy where versions for one user used to lie, and it is another one.
has_legacy() { is_sallyport "$legacy" && [ ! -L "$legacy" ] && ! [ "$legacy" -ef "$target" ]; }

inode() {
	# shellcheck disable=SC2012 # stat differs between systems, and the path is not parsed
	ls -di "$1" | awk '{print $1; exit}'
}

# --- what runs ----------------------------------------------------------------------------------

# pids_in BUNDLE lists this user's processes whose program is a file of the bundle: that file
# itself (lsof compares the file, not its name), and called by its name (so a debugger that has
# it mapped does not count).
pids_in() {
	local file pid
	[ -d "$1/Contents" ] || return 0
	find "$1/Contents" -type f -perm -100 | while IFS= read -r file; do
		for pid in $(lsof -a -w -u "$(id -u)" -d txt -t -- "$file" 2>/dev/null); do
			if [ "$(basename "$(ps -p "$pid" -o comm=)" 2>/dev/null)" = "$(basename "$file")" ]; then
				printf '%s\n' "$pid"
			fi
		done
	done | sort -u
}

# ours lists the processes of every bundle that this run replaces or has replaced.
ours() {
	local bundle
	{
		for bundle in "$target" "$old" "$work/failed/$name"; do pids_in "$bundle"; done
		if has_legacy; then pids_in "$legacy"; fi
	} | sort -u
}

is_ours() { ours | holds "$1"; }

# holds LINE reads to the end, because a writer that is cut off fails the pipe.
holds() { grep -Fx -- "$1" >/dev/null; }

gone() {
	local state
	kill -0 "$1" 2>/dev/null || return 0
	state=$(ps -p "$1" -o stat= 2>/dev/null) || return 0
	case $state in '' | Z*) return 0 ;; esac
	return 1
}

is_a_run() { ps -p "$1" -o command= 2>/dev/null | grep 'reinstall-macos' >/dev/null; }

# kind PID is what it does there: app, bridge (an agent's connection), sidecar or child.
kind() {
	local words
	if [ "$1" = "$sidecar" ]; then
		echo sidecar
		return
	fi
	words=$(ps -p "$1" -o command= 2>/dev/null) || words=
	words=${words##*/MacOS/}
	case "${words#* } " in
	'serve --companion '*) echo app ;;
	'serve '*) echo sidecar ;;
	'mcp '*) echo bridge ;;
	'__exec '*) echo child ;;
	*) echo app ;;
	esac
}

# of_kind KIND lists those of ours that are of it; "any" is all.
of_kind() {
	local pid
	for pid in $(ours); do
		if [ "$1" = any ] || [ "$(kind "$pid")" = "$1" ]; then printf '%s\n' "$pid"; fi
	done
}

supervisor_loaded() { launchctl print "gui/$(id -u)/$label" >/dev/null 2>&1; }

# supervisor_is_ours: the login item that is loaded starts a program of a bundle that is being
# replaced.
supervisor_is_ours() {
	local program
	program=$(launchctl print "gui/$(id -u)/$label" 2>/dev/null | sed -n 's/^[[:space:]]*program = //p')
	case $program in "$target"/* | "$legacy"/*) return 0 ;; esac
	return 1
}

# stop_all ends everything of the old one: first whoever would start the others again.
stop_all() {
	local pids pid round
	if supervisor_loaded && supervisor_is_ours; then
		say "ending the login item"
		launchctl bootout "gui/$(id -u)/$label" 2>/dev/null || :
		# It returns before the job is gone, and starting it again fails until then.
		round=300
		while supervisor_loaded; do
			[ "$round" -gt 0 ] || return 1
			round=$((round - 1))
			sleep 0.1
		done
	fi
	pids=$(of_kind app)
	if [ -n "$pids" ]; then
		say "quitting the application"
		run_within 15 osascript -e "if application id \"$id\" is running then tell application id \"$id\" to quit" \
			>/dev/null 2>&1 || note "macOS did not pass the request to quit on; the application is asked by a signal"
		all_gone "$patience" "$pids" || :
		end_processes "the application" "$patience" "$(of_kind app)" || return 1
	fi
	pids=$(of_kind bridge)
	for pid in $pids; do
		note "an agent is connected (pid $pid: $(ps -p "$pid" -o command= | sed 's|.*/MacOS/||')); it has to connect again"
	done
	end_processes "an agent's connection" "$patience" "$pids" || return 1
	pids=$(of_kind sidecar)
	[ -z "$pids" ] || say "ending the sidecar (pid $(printf '%s' "$pids" | tr '\n' ' '))"
	end_processes "the sidecar" 20 "$pids" || return 1
	# What they started, and what somebody started meanwhile.
	for round in 1 2 3; do
		pids=$(of_kind any)
		[ -n "$pids" ] || return 0
		end_processes "a process of the old one" "$patience" "$pids" || return 1
	done
	[ -z "$(of_kind any)" ]
}

# start_in BUNDLE starts it as it ran before: by its login item, as an application, or (where
# no application ran) as a sidecar. Where nobody answers then, for want of a window server for
# instance, its sidecar is started without macOS's help.
start_in() {
	local program looks=0
	set -- "$1" -g -a "$1"
	case $ran in *app* | '') ;; *) set -- "$@" --args serve ;; esac
	program=$(program_of "$1")
	case $ran in *supervisor*)
		if start_supervisor "$1"; then return 0; fi
		note "the login item does not start this copy; the application is started instead"
		;;
	esac
	# LaunchServices does not pass our environment on, and a data folder of one's own is in it.
	if [ -z "${SALLYPORT_HOME:-}" ] && run_within 30 open "${@:2}" 2>/dev/null; then
		while [ "$looks" -lt 25 ]; do
			ask_health "$program" 0
			if [ "$health_" != 3 ]; then return 0; fi
			if [ "$looks" -ge 5 ] && [ -z "$(pids_in "$1")" ]; then break; fi
			looks=$((looks + 1))
			sleep 0.2
		done
	fi
	launch "$program"
}

# start_supervisor BUNDLE loads the login item, where that starts this very bundle.
start_supervisor() {
	local tries=40 program
	program=$(PlistBuddy -c 'Print :ProgramArguments:0' "$agent" 2>/dev/null) || return 1
	case $program in "$1"/*) ;; *) return 1 ;; esac
	while ! launchctl bootstrap "gui/$(id -u)" "$agent" 2>/dev/null; do
		if supervisor_loaded; then return 0; fi
		[ "$tries" -gt 0 ] || return 1
		tries=$((tries - 1))
		sleep 0.5
	done
}

# --- what an unfinished run left ----------------------------------------------------------------

# journal PHASE writes down what a later run has to know; everything else is seen on disk.
# Phases: staging, stopping, swapping, proving, proven.
journal() {
	phase=$1
	{
		printf 'phase=%s\nfresh=%s\nstaged=%s\nran=%s\nran_in=%s\nversion=%s\n' \
			"$phase" "$fresh" "$staged" "$ran" "$ran_in" "$old_version"
	} >"$work/journal.new"
	mv -f "$work/journal.new" "$work/journal"
}

# put_back brings the disk to where the old one lies at the target and nothing is half done.
# 0 also when there was nothing to do; swapped_back says whether bundles moved.
put_back() {
	swapped_back=
	if [ "$phase" = proven ]; then
		finish
		return 0
	fi
	if [ -d "$old" ]; then
		if [ -e "$target" ]; then remove_unproven || return 1; fi
		mv "$old" "$target" || return 1
		swapped_back=1
	elif [ -n "$fresh" ] && [ -e "$target" ]; then
		case $phase in swapping | proving)
			remove_unproven || return 1
			swapped_back=1
			;;
		esac
	fi
	clear_staging
	return 0
}

# remove_unproven takes the new bundle away from the target again, and no other one: whoever
# put something else there meanwhile meant it.
remove_unproven() {
	if [ -z "$staged" ] || [ "$(inode "$target")" != "$staged" ]; then
		note "what lies at the target now was put there by somebody else; the old one is $old"
		return 1
	fi
	sidecar=
	stop_all || note "a process of the new one does not end"
	rm -rf "$work/failed"
	mkdir "$work/failed" || return 1
	mv "$target" "$work/failed/$name" || return 1
}

clear_staging() { rm -rf "$work"/new.* "$work"/failed "$work"/backup.* 2>/dev/null || :; }

# finish makes the end of a proven run true; every step may have been done before.
finish() {
	local made
	for made in "$work"/backup.*.zip; do
		[ -f "$made" ] || continue
		printf '%s\n' "$old_version" >"$work/previous.version" # first: this is what is done again
		mv -f "$made" "$work/previous.zip"
	done
	if [ -d "$old" ]; then
		# Renamed first: a bundle that is half removed must not look like one.
		rm -rf "$work/failed"
		mkdir "$work/failed"
		mv "$old" "$work/failed/$name"
	fi
	if has_legacy; then
		lsregister -u "$legacy" 2>/dev/null || :
		if mv "$legacy" "$legacy.removed.$$" 2>/dev/null && rm -rf "$legacy.removed.$$"; then
			say "removed the copy in ~/Applications"
		else
			note "the copy in ~/Applications could not be removed"
		fi
	fi
	clear_staging
	rm -f "$work/journal"
}

# undo is called at every end of the script, after a success as well.
undo() {
	[ -n "$lock" ] || return 0
	case $phase in
	'' | staging)
		clear_staging
		rm -f "$work/journal"
		;;
	stopping | swapping | proving | proven)
		if [ "$phase" != proven ]; then say "putting the old one back"; fi
		if ! put_back; then
			printf '%s: the old one could not be put back\n  next: it is %s; move it to %s\n' "$me" "$old" "$target" >&2
			result=32
			return
		fi
		if [ "$phase" != proven ]; then start_again; fi
		rm -f "$work/journal"
		;;
	esac
}

# tidy removes the folder beside the target unless something is kept in it.
tidy() { if [ -n "$work" ] && [ -z "$dry" ]; then rmdir "$work/old" "$work" 2>/dev/null || :; fi; }

# start_again starts the old one, if it ran, and proves that.
start_again() {
	local program
	if [ -d "$target" ]; then lsregister -f "$target" 2>/dev/null || :; fi
	if [ -z "$ran" ]; then
		say "the old one is in its place; it was not running before"
		return
	fi
	program=$(program_of "$ran_in")
	ask_health "$program" 0
	if [ "$health_" = 3 ]; then start_in "$ran_in"; fi
	case $ran in *sidecar*) ;; *)
		say "the old one is in its place and was started"
		return
		;;
	esac
	if [ "$health_" != 0 ]; then ask_health "$program" "$wait_" --expect-version "$old_version"; fi
	if [ "$health_" = 0 ] && pids_in "$ran_in" | holds "$health_pid"; then
		say "Sallyport $old_version runs again (pid $health_pid, port $health_port)"
		return
	fi
	printf '%s: the old one is in its place and not healthy: %s\n' "$me" "$(said)" >&2
	case $result in 30) result=31 ;; esac
}

# --- looking ------------------------------------------------------------------------------------

for tool in ditto codesign plutil PlistBuddy osascript lsregister hdiutil open xattr launchctl lsof ps awk; do
	command -v "$tool" >/dev/null || refuse 3 "$tool is missing: this script is for macOS"
done
not_by_sudo
patience=${SALLYPORT_REINSTALL_PATIENCE:-10} # seconds for a polite end
phase='' fresh='' staged='' ran='' ran_in='' sidecar='' old_version='' new_version=''
begin

given=$target
target=$(absolute "$given") || refuse 21 "the folder of the target $given does not exist" "make it first"
legacy=$(absolute "$HOME/Applications/Sallyport.app") || legacy=$HOME/Applications/Sallyport.app
name=$(basename "$target")
case $target in
*/AppTranslocation/*) refuse 12 "the target is a translocated path, which is gone after a restart" "name the application where you moved it" ;;
*.app) ;;
*) refuse 2 "the target $name does not end in .app" ;;
esac
parent=$(dirname "$target")
work=${parent%/}/.${name%.app}.reinstall
old=$work/old/$name
if [ -L "$target" ]; then refuse 20 "the target $target is a link" "name the folder that it leads to"; fi
if [ -e "$target" ] && ! is_sallyport "$target"; then
	refuse 20 "what lies at $target is not Sallyport" "move it away, or name another target"
fi
if [ ! -w "$parent" ]; then refuse 21 "the folder $parent cannot be written" "ask an administrator, or: --target ~/Applications/Sallyport.app"; fi
if [ -e "$target" ] && [ ! -w "$target" ]; then refuse 21 "$target belongs to somebody else" "its owner has to replace it"; fi
if [ -L "$work" ] || { [ -e "$work" ] && [ ! -O "$work" ]; }; then
	refuse 21 "$work is not yours" "ask whoever ran this script before"
fi

if [ -z "$dry" ]; then
	mkdir -m 700 "$work" 2>/dev/null || [ -d "$work" ] || refuse 21 "the folder $parent cannot be written"
	take_lock "$work/lock" || refuse 22 "another run of this script is going on" "wait for it"
fi

# An earlier run that was killed: the old one first, whatever is asked for now.
repaired=
if [ -e "$work/journal" ] || [ -d "$old" ]; then
	phase=$(recorded phase) fresh=$(recorded fresh) staged=$(recorded staged)
	ran=$(recorded ran) ran_in=$(recorded ran_in) old_version=$(recorded version)
	if [ -n "$dry" ]; then
		say "would repair what an interrupted run left (it came to: ${phase:-the beginning})"
	else
		say "repairing what an interrupted run left (it came to: ${phase:-the beginning})"
		if ! put_back; then
			phase=stuck
			refuse 32 "the old one could not be put back" "it is $old; move it to $target"
		fi
		repaired=$swapped_back
		case $phase in proven | '' | staging) ran='' ran_in='' ;; esac
		# From here on a refusal starts again what that run had ended.
		fresh='' staged=''
		if [ -n "$ran" ]; then journal stopping; else journal staging; fi
	fi
fi
if [ -n "$rollback" ] && [ -n "$repaired" ]; then
	phase=
	rm -f "$work/journal"
	start_again
	[ "$health_" = 0 ] || refuse 31 "the old one is back and not healthy"
	exit 0
fi
if [ -z "$dry" ]; then clear_staging; fi

if [ -n "$rollback" ]; then
	[ -f "$work/previous.zip" ] || refuse 33 "there is nothing to roll back to"
	new_version=$(cat "$work/previous.version" 2>/dev/null) || new_version=
	say "rolling back to ${new_version:-what was there before}"
elif [ -z "$source_" ]; then
	for found in "$root"/dist/*/Sallyport.app "$root"/dist/Sallyport.app "$root"/build/*/Sallyport.app; do
		[ -d "$found" ] || continue
		if [ -z "$source_" ] || [ "$found" -nt "$source_" ]; then source_=$found; fi
	done
	[ -n "$source_" ] || refuse 10 "there is no Sallyport.app below dist or build" "make package-darwin (or package-darwin-headless), or name one: --source APP"
fi

# check_bundle BUNDLE WHAT is everything that has to be right before anything is stopped.
check_bundle() {
	local problem
	problem=$(whole "$1")
	[ -z "$problem" ] || refuse 13 "$2 is not a whole Sallyport.app: $problem" "build or fetch it again"
	codesign --verify --deep --strict "$1" 2>"$scratch/codesign" ||
		refuse 14 "the signature of $2 does not verify: $(head -n 1 "$scratch/codesign" | sed 's|.*: ||')" "build or fetch it again"
	new_version=$(plist "$1" CFBundleShortVersionString)
	ask_version "$(program_of "$1")" || refuse 16 "$2 does not run on this computer" "is it for this processor and this macOS?"
	[ "$answered" = "$new_version" ] ||
		refuse 16 "$2 calls itself $answered and its Info.plist says $new_version" "build it again"
}

if [ -z "$rollback" ]; then
	case $source_ in */AppTranslocation/*) refuse 12 "the source is a translocated path" "move the application out of Downloads first" ;; esac
	[ -d "$source_" ] || refuse 10 "there is no application at $source_" "build it: make package-darwin"
	source_=$(cd "$source_" && pwd -P)
	case $source_/ in
	*/AppTranslocation/*) refuse 12 "the source is a translocated path" "move the application out of Downloads first" ;;
	"$target"/* | "$work"/*) refuse 15 "the source lies in what is to be replaced" "name another source or target" ;;
	esac
	case $target/ in "$source_"/*) refuse 15 "the target lies in the source" "name another source or target" ;; esac
	if [ "$source_" -ef "$target" ]; then refuse 15 "the source is the target" "name another source or target"; fi
	if [ -n "$(xattr -p -r com.apple.quarantine "$source_" 2>/dev/null)" ]; then
		refuse 11 "the source is in quarantine, as macOS marks what was downloaded" \
			"when you trust it: xattr -d -r com.apple.quarantine $(printf %q "$source_")"
	fi
	check_bundle "$source_" "the source"
	asker=$(program_of "$source_")
else
	asker=$(program_of "$target")
fi

fresh=1
if [ -d "$target" ]; then
	fresh=
	old_version=$(plist "$target" CFBundleShortVersionString)
fi

# Who has this user's data folder now, and from where.
before='' old_instance='' old_port=''
if [ -x "$asker" ]; then
	ask_health "$asker" 0
	case $health_ in
	0 | 1) before=$health_version old_instance=$health_instance old_port=$health_port ;;
	3) ;;
	4) refuse 26 "another program is on the port that Sallyport keeps: $(said)" "stop that program" ;;
	esac
	if [ -z "$before" ] && [ "$health_" != 3 ]; then
		# What is to be rolled back may be too broken to ask; what runs is seen all the same.
		if [ -z "$rollback" ]; then refuse 1 "it cannot be told whether Sallyport runs: $(said)"; fi
		note "what is installed cannot say whether it runs: $(said)"
	fi
fi
bundle_of_pid() {
	local bundle
	for bundle in "$target" "$old" "$legacy"; do
		if [ "$bundle" = "$legacy" ] && ! has_legacy; then continue; fi
		if pids_in "$bundle" | holds "$1"; then
			printf '%s' "$bundle"
			return
		fi
	done
}
if [ -n "$before" ]; then
	sidecar=$health_pid
	ran_in=$(bundle_of_pid "${health_pid:-0}")
	if [ -z "$ran_in" ]; then
		refuse 24 "Sallyport $health_version runs from another place (pid ${health_pid:-unknown})" \
			"it is not part of what is replaced: end it yourself, for example with: kill ${health_pid:-PID}"
	fi
	ran="$ran sidecar"
	old_version=$health_version
fi

# Other copies on this computer: one that runs would answer in the new one's place.
: >"$scratch/copies"
{
	if command -v mdfind >/dev/null; then run_within 20 mdfind "kMDItemCFBundleIdentifier == '$id'" 2>/dev/null || :; fi
	for copy in "$HOME/Downloads/Sallyport.app" "$HOME/Desktop/Sallyport.app" "$legacy" /Applications/Sallyport.app "$source_"; do
		printf '%s\n' "$copy"
	done
} >"$scratch/found"
sort -u "$scratch/found" | while IFS= read -r copy; do
	case $copy in '' | "$work"/*) continue ;; esac
	if is_sallyport "$copy" && ! [ "$copy" -ef "$target" ]; then printf '%s\n' "$copy"; fi
done >"$scratch/copies"
while IFS= read -r copy; do
	if [ "$copy" -ef "$legacy" ]; then
		say "the copy in ~/Applications will be removed"
		continue
	fi
	running=$(pids_in "$copy" | tr '\n' ' ')
	running=${running% }
	if [ -n "$running" ]; then
		case $copy in */AppTranslocation/*) refuse 12 "a translocated copy is running (pid $running)" "quit it, and move it out of Downloads" ;; esac
		refuse 24 "another copy is running: $copy (pid $running)" "quit it; it is not part of what is replaced"
	fi
	[ "$copy" = "$source_" ] || note "there is another copy: $copy"
done <"$scratch/copies"

# Images of ours that are still mounted, but for the one that the source is on.
hdiutil info 2>/dev/null | awk -F '\t' '/^\/dev\// && NF >= 3 && $3 ~ /^\// {print $3}' >"$scratch/mounted" || :
: >"$scratch/images"
while IFS= read -r volume; do
	case $source_/ in "$volume"/*) continue ;; esac
	if is_sallyport "$volume/Sallyport.app"; then printf '%s\n' "$volume" >>"$scratch/images"; fi
done <"$scratch/mounted"

if supervisor_loaded; then
	if supervisor_is_ours; then
		ran="$ran supervisor"
	else
		note "the login item starts another program; it is left alone"
	fi
fi
if [ -n "$(of_kind app)" ]; then ran="$ran app"; fi
if [ -n "$ran" ] && [ -z "$ran_in" ]; then ran_in=$target; fi

need=0
measured=${source_:-$target}
if [ -d "$measured" ]; then need=$(du -sk "$measured" | awk '{print $1; exit}'); fi
need=$((need + 10240))
if [ -n "$backup" ] && [ -d "$target" ]; then need=$((need + $(du -sk "$target" | awk '{print $1; exit}'))); fi
free=$(df -Pk "$parent" | awk 'NR == 2 {print $4}')
if [ "${free:-0}" -lt "$need" ]; then
	refuse 23 "the disk is full: $((need / 1024)) MB are needed beside the target and $((${free:-0} / 1024)) are free" "make room, or: --no-backup"
fi

if [ -n "$dry" ]; then
	say "would install ${new_version:-what was there before} as $target${old_version:+ in the place of $old_version}"
	while IFS= read -r volume; do say "would eject $volume"; done <"$scratch/images"
	for pid in $(of_kind any); do say "would end pid $pid ($(kind "$pid"))"; done
	if [ -n "$backup" ] && [ -d "$target" ]; then say "would keep $old_version to roll back to"; fi
	while IFS= read -r copy; do say "would take $copy out of LaunchServices"; done <"$scratch/copies"
	say "would start it and wait ${wait_} s for its health${old_port:+ on port $old_port}; nothing was changed"
	exit 0
fi

# --- doing --------------------------------------------------------------------------------------

while IFS= read -r volume; do
	run_within 30 hdiutil detach "$volume" >/dev/null 2>&1 || note "$volume could not be ejected"
done <"$scratch/images"

# copy_failed says why a copy failed: the disk is the one reason that has its own code.
copy_failed() {
	if grep -qi 'no space left' "$scratch/ditto"; then refuse 23 "the disk is full" "make room, or: --no-backup"; fi
	refuse 27 "$1 failed: $(head -n 1 "$scratch/ditto")"
}

if [ "$phase" != stopping ]; then journal staging; fi
new=$work/new.$$/$name
mkdir "$work/new.$$"
say "staging ${new_version:-what was there before}"
if [ -n "$rollback" ]; then
	run ditto -x -k "$work/previous.zip" "$work/new.$$" 2>"$scratch/ditto" || copy_failed "unpacking what was kept"
	if [ ! -d "$new" ]; then refuse 13 "what was kept is not $name" "install a version with --source"; fi
else
	run ditto "$source_" "$new" 2>"$scratch/ditto" || copy_failed "copying the source"
fi
check_bundle "$new" "the copy"
staged=$(inode "$new")

if [ -n "$backup" ] && [ -z "$fresh" ]; then
	# The same version again must not push out the one before it.
	if [ "$(plist "$target" CFBundleShortVersionString)" = "$new_version" ] && [ -f "$work/previous.zip" ]; then
		say "keeping $(cat "$work/previous.version" 2>/dev/null) to roll back to"
	else
		run ditto -c -k --sequesterRsrc --keepParent "$target" "$work/backup.$$.zip" 2>"$scratch/ditto" || copy_failed "keeping the old one"
	fi
fi

journal stopping
stop_all || refuse 25 "the old one does not end: pid $(of_kind any | tr '\n' ' ')" "quit it, and run this again"

journal swapping
rm -rf "$work/old"
mkdir "$work/old"
if [ -z "$fresh" ]; then
	mv "$target" "$old" || refuse 21 "macOS does not let the old one be moved" \
		"allow your terminal to: System Settings, Privacy & Security, App Management"
fi
# Into a folder of that name mv would put it, and not in its place.
if [ -e "$target" ]; then refuse 20 "somebody put another one to $target meanwhile"; fi
mv "$new" "$target" || refuse 21 "the new one could not be put to $target"
journal proving

# Agents start their connections again by themselves: one that did so in between is the old one.
end_processes "a process of the old one" "$patience" "$(pids_in "$old")" || refuse 25 "the old one does not end"
while IFS= read -r copy; do lsregister -u "$copy" 2>/dev/null || :; done <"$scratch/copies"
lsregister -f "$target" 2>/dev/null || note "LaunchServices did not take it"

say "starting $new_version"
sidecar=
start_in "$target"
program=$(program_of "$target")
ask_health "$program" "$wait_" --expect-version "$new_version" --expect-within "$target" --expect-instance-not "${old_instance:-none}"
[ "$health_" = 0 ] || refuse 30 "the new one is not healthy: $(said)"
pids_in "$target" | holds "${health_pid:-none}" || refuse 30 "what answers is not a program of $target"
if [ -n "$old_port" ] && [ "$health_port" != "$old_port" ]; then
	refuse 30 "it answers on port $health_port and not on $old_port, which it had: another program has taken that"
fi

journal proven
finish
phase=
if codesign -d -vv "$target" 2>&1 | grep '^Signature=adhoc' >/dev/null; then
	note "it is signed ad hoc: macOS may ask once whether it may use the keychain"
fi
if supervisor_loaded && ! supervisor_is_ours; then
	note "the login item starts another program; turn it off and on again in the settings"
fi
say "Sallyport $new_version is healthy at http://127.0.0.1:$health_port (pid $health_pid, $target)"
if [ -f "$work/previous.zip" ]; then say "back to $(cat "$work/previous.version"): $me --rollback"; fi
