# Sourced by the stand-ins for a system's own tools. Each does on Linux what the scripts rely on,
# with real files and processes. $SHIMS is the folder of a test: what was called (log), what the
# stand-ins remember, and hook, a piece of shell that a test wants run before a tool does its
# work ($when is "before") and after it ("after"), with the tool's name in $tool.
set -u
tool=${0##*/}
printf '%s' "$tool" >>"$SHIMS/log"
for word in "$@"; do printf ' %s' "$word" >>"$SHIMS/log"; done
printf '\n' >>"$SHIMS/log"

# interrupt SIGNAL sends one to the script, whose pid its lock is.
interrupt() { kill "-$1" "$(readlink "$LOCK")"; }

hook() {
	when=$1
	shift
	[ ! -e "$SHIMS/hook" ] || . "$SHIMS/hook"
}
hook before "$@"
trap 'hook after "$@"' EXIT

# program_of BUNDLE is its executable.
program_of() {
	printf '%s/Contents/MacOS/%s' "$1" "$(sed -n '/<key>CFBundleExecutable</{n;s/.*<string>\(.*\)<\/string>.*/\1/p;}' "$1/Contents/Info.plist")"
}

# start COMMAND... as launchd does: in a session and an environment of its own. SHIMS is left
# out, so that nothing but the tools of the script is remembered.
start() { env -i HOME="$HOME" PATH="${PATH#*:}" BROWSER=true LANG=C.UTF-8 TMPDIR="${TMPDIR:-/tmp}" setsid "$@" </dev/null >/dev/null 2>&1 3>&- 4>&- & }
