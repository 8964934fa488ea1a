#!/bin/bash
# Replaces an installed Sallyport, from a package or as a program of one user's, and proves that
# the new one is healthy, or puts the old one back. Read "usage" for what it does and its exit
# codes.
#
# A program of one user's changes place with the new one by two renames, and what lies on disk
# says how far a run came. For a package the package manager does the same, and the package
# that is put back is the one that an earlier run has kept.
set -euo pipefail
# shellcheck source=scripts/reinstall-lib.sh
. "$(dirname "$0")/reinstall-lib.sh"

usage() {
	cat <<'TEXT'
usage: scripts/reinstall-linux.sh --source FILE [--prefix DIR] [flags]

Replaces an installed Sallyport by another one, starts it as it ran before and proves its health
on the port that it has kept. Approvals, secrets, settings and the audit are not touched. Run it
as the user whose Sallyport it is; it asks sudo for nothing but dpkg or rpm.

  --source FILE    a .deb or .rpm, a .tar.gz with the program in it, or the program itself
  --prefix DIR     where the last two go, below bin (default: ~/.local)
  --previous FILE  the package that is installed now, to roll back to
  --rollback       install what the last run replaced, which it has kept
  --no-backup      keep nothing to roll back to
  --wait N         seconds that the new one has to become healthy (default: 30)
  --root DIR       for a package: a system that lies below DIR
  --dry-run        look at everything, say what would be done, and change nothing

It ends the systemd user unit or the sidecar, and the agents' connections, by pid, and only
processes of the program being replaced. Other users' sidecars go on with what they have.

Exit codes:
   0  done: the new one is healthy             23  the disk is full
   1  failed unexpectedly; nothing changed     24  Sallyport runs from another place
   2  wrong usage                              25  the old one does not end
   3  a tool is missing, or run by sudo        26  another program is on its port
  10  there is no source                       27  installing failed; the old one is back
  13  there is no program in the source        30  the new one is not healthy; the old one is
  16  the source does not run here                 back, and as healthy as it was
  20  the target is a link or a folder         31  the same, but the old one is not healthy
  21  the target's folder cannot be written    32  the old one could not be put back
  22  another run is going on                  33  there is nothing to roll back to
                                               129, 130, 143  interrupted, and put back
TEXT
}

prefix=$HOME/.local previous='' root=''
own_flag() {
	case $1 in --prefix) prefix=$2 ;; --previous) previous=$2 ;; --root) root=$2 ;; *) return 1 ;; esac
}
read_flags "$@"
if [ -z "$rollback" ] && [ -z "$source_" ]; then refuse 2 "--source is missing" "see $me --help"; fi
not_by_sudo

# --- what runs ----------------------------------------------------------------------------------

# is_ours PID: this user's process runs the program being replaced, or one that lay there. A
# replaced file is known by its path, with what Linux says of one that is gone.
is_ours() {
	local runs
	[ -O "/proc/$1" ] || return 1
	runs=$(readlink "/proc/$1/exe" 2>/dev/null) || return 1
	case $runs in "$target" | "$target (deleted)" | "$old" | "$old (deleted)") return 0 ;; esac
	return 1
}

ours() {
	local link pid
	for link in /proc/[0-9]*; do
		pid=${link#/proc/}
		if [ "$pid" != $$ ] && is_ours "$pid"; then printf '%s\n' "$pid"; fi
	done
}

gone() {
	local state
	state=$(sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null) || return 0
	case $state in '' | Z | X) return 0 ;; esac
	return 1
}

is_a_run() { tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep 'reinstall-linux' >/dev/null; }

# words PID are what its program was called with.
words() { tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | cut -d ' ' -f 2-; }

# unit_runs: the systemd user unit is active, and what it runs is the program being replaced.
unit_runs() {
	local pid
	command -v systemctl >/dev/null || return 1
	systemctl --user is-active --quiet sallyport.service 2>/dev/null || return 1
	pid=$(systemctl --user show --property MainPID --value sallyport.service 2>/dev/null) || return 1
	is_ours "${pid:-0}"
}

stop_all() {
	local pid round bridges=''
	if unit_runs; then
		say "ending the user unit"
		run_within 60 systemctl --user stop sallyport.service || return 1
	fi
	# Agents' connections start a sidecar again where none is.
	for pid in $(ours); do
		case $(words "$pid") in
		mcp*)
			note "an agent is connected (pid $pid: sallyport $(words "$pid")); it has to connect again"
			bridges="$bridges $pid"
			;;
		esac
	done
	end_processes "an agent's connection" "$patience" "$bridges" || return 1
	for round in 1 2 3; do
		[ -n "$(ours)" ] || return 0
		if [ "$round" = 1 ]; then say "ending the sidecar"; fi
		end_processes "the sidecar" 20 "$(ours)" || return 1
	done
	[ -z "$(ours)" ]
}

start() {
	case $ran in *unit*)
		run_within 30 systemctl --user daemon-reload || :
		if run_within 60 systemctl --user start sallyport.service; then return 0; fi
		note "the user unit could not be started; the sidecar is started without it"
		;;
	esac
	launch "$target"
}

# --- what changes place -------------------------------------------------------------------------

# install_package FILE, by the package manager and as root. It is not cut off by a signal, which
# has to wait for it.
install_package() {
	local as=''
	if [ "$(id -u)" != 0 ] && [ -z "$root" ]; then as=sudo; fi
	case $1 in
	*.deb) $as dpkg ${root:+--root="$root"} --install "$1" >"$scratch/install" 2>&1 ;;
	*) $as rpm ${root:+--root="$root"} --upgrade --oldpackage --replacepkgs "$1" >"$scratch/install" 2>&1 ;;
	esac
}

# install_failed gives the reason its code; the end of the run puts the old one back.
install_failed() {
	if grep -qi 'no space left' "$scratch/install"; then refuse 23 "the disk is full"; fi
	refuse 27 "installing failed: $(tail -n 1 "$scratch/install")"
}

# journal PHASE writes down what a later run has to know. Phases: staging, stopping, swapping,
# installed, proven.
journal() {
	phase=$1
	printf 'phase=%s\nfresh=%s\nran=%s\nversion=%s\nback=%s\nnext=%s\n' \
		"$phase" "$fresh" "$ran" "$old_version" "$back" "$next" >"$work/journal.new"
	mv -f "$work/journal.new" "$work/journal"
}

# put_back brings the old one to its place again.
put_back() {
	case $phase in swapping | installed) ;; *) return 0 ;; esac
	stop_all || note "a process of the new one does not end"
	if [ "$kind" = program ]; then
		if [ -e "$old" ]; then mv -f "$old" "$target"; elif [ -n "$fresh" ]; then rm -f "$target"; fi
	elif [ -n "$fresh" ]; then
		note "there was no package before, and the new one stays installed"
	elif [ -n "$back" ]; then
		if ! install_package "$back"; then
			tail -n 3 "$scratch/install" >&2
			return 1
		fi
	else
		return 1
	fi
}

# A package is kept as packages/VERSION.deb or .rpm; installed.name and previous.name name one
# each, and those that none of them names are removed.
packages=packages

# keep FILE NAME puts a package there.
keep() {
	mkdir -p "$work/$packages"
	if [ "$1" -ef "$work/$packages/$2" ]; then return 0; fi
	run cp "$1" "$work/$packages/$2.new" && mv -f "$work/$packages/$2.new" "$work/$packages/$2"
}

# finish makes the end of a proven run true; every step may have been done before.
finish() {
	local file
	if [ "$kind" = program ]; then
		# The same version again must not push out the one before it.
		if [ -e "$old" ] && [ -n "$backup" ] && { [ "$old_version" != "$next" ] || [ ! -e "$work/previous" ]; }; then
			printf '%s\n' "$old_version" >"$work/previous.version"
			mv -f "$old" "$work/previous"
		fi
		rm -f "$old"
	elif [ -n "$next" ]; then
		if [ -n "$back" ] && [ "${back##*/}" != "$next" ]; then printf '%s\n' "${back##*/}" >"$work/previous.name"; fi
		printf '%s\n' "$next" >"$work/installed.name"
		for file in "$work/$packages"/*; do
			case ${file##*/} in "$next" | "$(cat "$work/previous.name" 2>/dev/null)") ;; *) rm -f "$file" ;; esac
		done
	fi
	rm -f "$work/journal"
}

# kept_version says what can be rolled back to; nothing where nothing can.
kept_version() {
	local name
	if [ "$kind" = program ]; then
		if [ -e "$work/previous" ]; then cat "$work/previous.version"; fi
	elif [ -e "$work/previous.name" ]; then
		name=$(cat "$work/previous.name")
		printf '%s\n' "${name%.*}"
	fi
}

# undo is called at every end of the script.
undo() {
	[ -n "$lock" ] || return 0
	case $phase in
	stopping | swapping | installed)
		say "putting the old one back"
		if ! put_back; then
			printf '%s: the old one could not be put back\n  next: install it with --source\n' "$me" >&2
			result=32
			return
		fi
		start_again
		;;
	proven) finish ;;
	stuck) return ;;
	esac
	rm -rf "$work"/new.* "$work/journal"
}

tidy() { if [ -z "$dry" ]; then rmdir "$work" 2>/dev/null || :; fi; }

# start_again starts the old one, if it ran, and proves that.
start_again() {
	if [ -z "$ran" ]; then
		say "the old one is in its place; it was not running before"
		return
	fi
	ask_health "$target" 0
	if [ "$health_" = 3 ]; then start; fi
	if [ "$health_" != 0 ]; then ask_health "$target" "$wait_" --expect-version "$old_version"; fi
	if [ "$health_" = 0 ] && is_ours "${health_pid:-0}"; then
		say "Sallyport $old_version runs again (pid $health_pid, port $health_port)"
		return
	fi
	printf '%s: the old one is in its place and not healthy: %s\n' "$me" "$(said)" >&2
	if [ "$result" = 30 ]; then result=31; fi
}

# --- looking ------------------------------------------------------------------------------------

patience=${SALLYPORT_REINSTALL_PATIENCE:-10} # seconds for a polite end
phase='' fresh='' ran='' old_version='' back='' next='' old=''
begin

# A rollback is of the kind of the last run, which --prefix or its absence names.
kept=${XDG_STATE_HOME:-$HOME/.local/state}/sallyport-reinstall
case $source_ in
*.deb | *.rpm) kind=package ;;
'') if [ -f "$kept/previous.name" ] && [ ! -e "$prefix/bin/.sallyport.reinstall/previous" ]; then kind=package; else kind=program; fi ;;
*) kind=program ;;
esac
if [ -n "$root" ]; then root=$(cd "$root" 2>/dev/null && pwd -P) || refuse 21 "the folder of --root does not exist"; fi
if [ "$kind" = package ]; then
	target=$root/usr/bin/sallyport work=$kept
	folder=${work%/*}
	if [ -z "$dry" ]; then mkdir -p "$folder"; fi
else
	folder=$prefix/bin
	if [ -z "$dry" ]; then mkdir -p "$folder" 2>/dev/null || :; fi
	if [ -d "$folder" ] || [ -z "$dry" ]; then
		folder=$(cd "$folder" 2>/dev/null && pwd -P) || refuse 21 "the folder $prefix/bin does not exist and cannot be made"
	fi
	target=$folder/sallyport work=$folder/.sallyport.reinstall
	if [ -L "$target" ]; then refuse 20 "the target $target is a link" "name the folder that it leads to"; fi
	if [ -d "$target" ]; then refuse 20 "the target $target is a folder" "move it away"; fi
fi
old=$work/old
if [ ! -w "$folder" ] && { [ -e "$folder" ] || [ -z "$dry" ]; }; then refuse 21 "the folder $folder cannot be written" "choose another --prefix"; fi
if [ -L "$work" ] || { [ -e "$work" ] && [ ! -O "$work" ]; }; then refuse 21 "$work is not yours" "move it away"; fi
if [ -z "$dry" ]; then
	mkdir -m 700 "$work" 2>/dev/null || [ -d "$work" ] || refuse 21 "the folder $folder cannot be written"
	take_lock "$work/lock" || refuse 22 "another run of this script is going on" "wait for it"
fi

# An earlier run that was killed: the old one first, whatever is asked for now.
repaired=
if [ -e "$work/journal" ]; then
	phase=$(recorded phase) fresh=$(recorded fresh) ran=$(recorded ran)
	old_version=$(recorded version) back=$(recorded back) next=$(recorded next)
	if [ -n "$dry" ]; then
		say "would repair what an interrupted run left (it came to: $phase)"
	else
		say "repairing what an interrupted run left (it came to: $phase)"
		case $phase in
		swapping | installed)
			if ! put_back; then
				phase=stuck
				refuse 32 "the old one could not be put back" "install it with --source and remove $work"
			fi
			repaired=1
			;;
		proven)
			finish
			ran=
			;;
		esac
		fresh='' next=''
		if [ -n "$ran" ]; then journal stopping; else journal staging; fi
	fi
fi
if [ -n "$rollback" ] && [ -n "$repaired" ]; then
	start_again
	phase=
	[ -z "$ran" ] || [ "$health_" = 0 ] || refuse 31 "the old one is back and not healthy"
	exit 0
fi
if [ -z "$dry" ]; then rm -rf "$work"/new.*; fi

# The program that is to be, in a place where it can be asked: beside the target for a program.
if [ -n "$rollback" ]; then
	[ -n "$(kept_version)" ] || refuse 33 "there is nothing to roll back to"
	source_=$work/previous
	if [ "$kind" = package ]; then source_=$work/$packages/$(cat "$work/previous.name"); fi
fi
[ -f "$source_" ] || refuse 10 "there is no file $source_" "build it: make package"
source_=$(cd "$(dirname "$source_")" && pwd -P)/$(basename "$source_")
if [ "$source_" -ef "$target" ]; then refuse 10 "the source is what is installed" "name another source"; fi
stage=$scratch/new
if [ "$kind" = program ] && [ -z "$dry" ]; then stage=$work/new.$$; fi
mkdir "$stage"
free=$(df -Pk "$(dirname "$target")" 2>/dev/null | awk 'NR == 2 {print $4}') || free=
need=$(($(du -sk "$source_" | awk '{print $1; exit}') * 3 + 10240))
if [ "${free:-$need}" -lt "$need" ]; then
	refuse 23 "the disk is full: $((need / 1024)) MB are needed beside the target and $((free / 1024)) are free"
fi
unpacked() { # COMMAND...: into stage, from which find takes the program
	run "$@" >"$scratch/install" 2>&1 || install_failed
	new=$(find "$stage" -type f -name sallyport -perm -100 | head -n 1)
}
new=$stage/sallyport
case $source_ in
*.deb) unpacked dpkg-deb --extract "$source_" "$stage" ;;
*.rpm) new= ;; # unpacking it takes tools that may not be there; it says its version itself
*.tar.gz | *.tgz) unpacked tar --no-same-owner -C "$stage" -xzf "$source_" ;;
*) run cp "$source_" "$new" 2>"$scratch/install" || install_failed ;;
esac
case $source_ in
*.rpm)
	new_version=$(rpm --query --package --queryformat '%{VERSION}' "$source_" 2>/dev/null | tr '~' '-') || new_version=
	[ -n "$new_version" ] || refuse 13 "the source is not a package"
	;;
*)
	[ -n "$new" ] || refuse 13 "there is no program sallyport in the source"
	chmod 755 "$new"
	ask_version "$new" || refuse 16 "the source does not run on this computer" "is it for this processor?"
	new_version=$answered
	;;
esac

if [ -x "$target" ]; then
	if [ -z "$repaired" ] || [ -z "$old_version" ]; then old_version=; fi
	if ask_version "$target"; then old_version=$answered; fi
else
	fresh=1
fi

# Who has this user's data folder now, and from where.
asker=${new:-$target}
old_instance='' old_port=''
if [ -x "$asker" ]; then
	ask_health "$asker" 0
	case $health_ in
	0 | 1)
		[ -n "$health_version" ] || refuse 1 "it cannot be told whether Sallyport runs: $(said)"
		if ! is_ours "${health_pid:-0}"; then
			refuse 24 "Sallyport $health_version runs from another place (pid ${health_pid:-unknown})" \
				"it is not what is replaced: end it yourself, for example with: kill ${health_pid:-PID}"
		fi
		old_instance=$health_instance old_port=$health_port
		ran="$ran sidecar"
		;;
	3) ;;
	4) refuse 26 "another program is on the port that Sallyport keeps: $(said)" "stop that program" ;;
	*) refuse 1 "it cannot be told whether Sallyport runs: $(said)" ;;
	esac
fi
if unit_runs; then ran="$ran unit"; fi

# What a package is rolled back to: the one that an earlier run has kept, or that is named.
if [ "$kind" = package ] && [ -z "$fresh" ]; then
	if [ -n "$previous" ]; then
		[ -f "$previous" ] || refuse 10 "there is no file $previous"
		back=$(cd "$(dirname "$previous")" && pwd -P)/$(basename "$previous")
	else
		back=$(cat "$work/installed.name" 2>/dev/null) || back=
		if [ -n "$back" ] && [ "${back%.*}" = "$old_version" ]; then back=$work/$packages/$back; else back=; fi
	fi
	if [ ! -f "$back" ] && [ -n "$backup" ]; then
		refuse 33 "the package of $old_version, to roll back to, is not kept here" "name it with --previous FILE, or: --no-backup"
	fi
fi

if [ -n "$dry" ]; then
	say "would install $new_version as $target${old_version:+ in the place of $old_version}"
	for pid in $(ours); do say "would end pid $pid (sallyport $(words "$pid"))"; done
	say "would start it and wait ${wait_} s for its health${old_port:+ on port $old_port}; nothing was changed"
	exit 0
fi

# --- doing --------------------------------------------------------------------------------------

if [ "$kind" = program ]; then next=$new_version; fi
if [ "$kind" = package ] && [ -n "$backup" ]; then
	# Kept before anything is done: the source may be gone when it is needed.
	if [ -n "$back" ]; then
		keep "$back" "$old_version.${back##*.}" || refuse 23 "the old package cannot be kept"
		back=$work/$packages/$old_version.${back##*.}
	fi
	next=$new_version.${source_##*.}
	if [ "$new_version" != "$old_version" ]; then keep "$source_" "$next" || refuse 23 "the package cannot be kept"; fi
fi
journal stopping
stop_all || refuse 25 "the old one does not end: pid $(ours | tr '\n' ' ')" "end it, and run this again"
journal swapping
say "installing $new_version"
if [ "$kind" = program ]; then
	if [ -z "$fresh" ]; then mv -f "$target" "$old"; fi
	mv -f "$new" "$target"
else
	install_package "$source_" || install_failed
fi
journal installed
say "starting $new_version"
start
ask_health "$target" "$wait_" --expect-version "$new_version" --expect-within "$(dirname "$target")" --expect-instance-not "${old_instance:-none}"
[ "$health_" = 0 ] || refuse 30 "the new one is not healthy: $(said)"
is_ours "${health_pid:-0}" || refuse 30 "what answers is not $target"
if [ -n "$old_port" ] && [ "$health_port" != "$old_port" ]; then
	refuse 30 "it answers on port $health_port and not on $old_port, which it had: another program has taken that"
fi

# From here on the new one stays.
journal proven
finish
phase=
say "Sallyport $new_version is healthy at http://127.0.0.1:$health_port (pid $health_pid, $target)"
if [ -n "$(kept_version)" ]; then say "back to $(kept_version): $me --rollback"; fi
