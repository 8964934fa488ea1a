package health

import (
	"strings"
	"time"
)

// Code names a known problem. The list is closed and codes are stable: scripts
// and people's notes depend on them.
type Code string

// The known problems. Kinds describes each.
const (
	Starting               Code = "starting"
	StoreUnreadable        Code = "store-unreadable"
	StoreDamaged           Code = "store-damaged"
	StoreNewer             Code = "store-newer"
	StoreMissing           Code = "store-missing"
	StoreFull              Code = "store-full"
	AuditBroken            Code = "audit-broken"
	AuditTruncated         Code = "audit-truncated"
	AuditUnwritable        Code = "audit-unwritable"
	ApprovalRolledBack     Code = "approval-rolled-back"
	ApprovalTampered       Code = "approval-tampered"
	SealKeyUnreadable      Code = "seal-key-unreadable"
	SealKeyUnavailable     Code = "seal-key-unavailable"
	SealKeyFile            Code = "seal-key-file"
	SealKeyOpen            Code = "seal-key-open"
	PortChanged            Code = "port-changed"
	PortValueBad           Code = "port-value-bad"
	PortUnsaved            Code = "port-unsaved"
	PortTwin               Code = "port-twin"
	ConfigInvalid          Code = "config-invalid"
	SecretsUnavailable     Code = "secrets-unavailable"
	PluginFolderUnreadable Code = "plugin-folder-unreadable"
	WatchLimited           Code = "watch-limited"
	ServerParked           Code = "server-parked"
	OverBudget             Code = "over-budget"
	LeftoversEnded         Code = "leftovers-ended"
	LeftoversRemain        Code = "leftovers-remain"
	SnapshotDamaged        Code = "snapshot-damaged"
	ExecutableChanged      Code = "executable-changed"
	PathFromShellMissing   Code = "path-from-shell-missing"
	AuditForwardLost       Code = "audit-forward-lost"
	ClientEntryChanged     Code = "client-entry-changed"
)

// Kind describes a known problem: the words for it and what it means.
type Kind struct {
	Code     Code
	Title    string // a heading, a few words
	Severity Severity
	// Text says what is so, in one or two sentences that stand alone.
	Text func(Args) string
	// Next says what to do about it; empty when nothing needs to be done.
	Next string
	// VisibleAfter is how long the problem must last before it is shown. A
	// failing problem counts at once.
	VisibleAfter time.Duration
}

// always is the text of a problem that has no arguments.
func always(text string) func(Args) string { return func(Args) string { return text } }

// with puts arguments in the place of {name}; a missing one is shown as "?", so
// that a text never claims less than it knows.
func with(text string) func(Args) string {
	return func(args Args) string {
		var b strings.Builder
		rest := text
		for {
			before, after, found := strings.Cut(rest, "{")
			b.WriteString(before)
			if !found {
				return b.String()
			}
			name, tail, _ := strings.Cut(after, "}")
			value := args[name]
			if value == "" {
				value = "?"
			}
			b.WriteString(value)
			rest = tail
		}
	}
}

// Kinds returns the closed list of known problems. Severity is the only place
// that decides whether one makes the health answer "ok":false.
func Kinds() []Kind {
	return []Kind{
		{
			Code: Starting, Title: "Starting", Severity: Failing,
			Text: always("Sallyport is starting and not ready yet."),
		},
		{
			Code: StoreUnreadable, Title: "The store cannot be read", Severity: Failing,
			Text: always("The database with the approvals cannot be opened, so nothing starts. It was left as it is."),
			Next: "Check that the data folder exists, belongs to you and is not full, then start Sallyport again.",
		},
		{
			Code: StoreDamaged, Title: "The store is damaged", Severity: Failing,
			Text: always("The database with the approvals is damaged, so nothing starts. It was left as it is."),
			Next: "Put a backup of sallyport.db back, or move the file away and approve again.",
		},
		{
			Code: StoreNewer, Title: "The store is from a newer version", Severity: Failing,
			Text: always("The database was written by a newer Sallyport, so this one starts nothing and changes nothing."),
			Next: "Install the newer version again.",
		},
		{
			Code: StoreMissing, Title: "The store is missing", Severity: Failing,
			Text: always("There was a database with approvals and it is gone, so nothing starts and no new one is made."),
			Next: "Put sallyport.db back. To begin anew without the old approvals, move the folder keys out of the state folder too.",
		},
		{
			Code: StoreFull, Title: "The store cannot be written", Severity: Failing,
			Text: always("The database cannot be written, so nothing can be approved or started."),
			Next: "Free space in the data folder, or make it writable.",
		},
		{
			Code: AuditUnwritable, Title: "The audit cannot be written", Severity: Failing,
			Text: always("The audit cannot be written, so no action that must be recorded takes effect."),
			Next: "Free space in the data folder, or make it writable.",
		},
		{
			Code: ApprovalRolledBack, Title: "An older store was put back", Severity: Failing,
			Text: always("The store is older than the last one seen, so no approval in it counts."),
			Next: "If you restored a backup, review the plugins and approve them again; if not, somebody changed your data folder.",
		},
		{
			Code: SealKeyUnreadable, Title: "The seal key cannot be read", Severity: Failing,
			Text: always("The key that seals the approvals cannot be read, so none can be checked and nothing starts."),
			Next: "Put the state folder's key file or the keyring's entry back, or review the plugins and approve them again.",
		},
		{
			Code: ApprovalTampered, Title: "An approval was changed from outside", Severity: Warning,
			Text: with("The approval of {plugin} does not verify. It does not count and is kept for inspection."),
			Next: "Review the plugin and approve it again.",
		},
		{
			Code: AuditBroken, Title: "The audit does not verify", Severity: Warning,
			Text: always("The audit was changed from outside: its records no longer form one chain."),
			Next: "Run sallyport audit verify.",
		},
		{
			Code: AuditTruncated, Title: "The audit was cut", Severity: Warning,
			Text: always("Records are missing at the end of the audit: it was cut, or an older one put back."),
			Next: "Run sallyport audit verify.",
		},
		{
			Code: SealKeyUnavailable, Title: "Waiting for the keyring", Severity: Warning,
			Text:         always("The key that seals the approvals is in the keyring, which does not give it yet, so no approval counts and nothing starts. It is asked again until it does."),
			Next:         "Unlock the keyring. Run sallyport doctor: it says why, and what to do on this system.",
			VisibleAfter: time.Second,
		},
		{
			Code: SealKeyFile, Title: "The seal key is in a file", Severity: Warning,
			Text: always("Approvals are sealed with a key in a file, because no keyring is used for it. A program that runs as you can read it."),
			Next: "Where there is a keyring, move it there: sallyport decisions seal-key keyring",
		},
		{
			Code: SealKeyOpen, Title: "The seal key is open to others", Severity: Warning,
			Text: always("Other users of this computer can read or write the key that seals the approvals, so they could make approvals that count."),
			Next: "Take that right away: chmod 600 seal.key in the folder keys of the state folder. Then review what is approved.",
		},
		{
			Code: PortChanged, Title: "The port changed", Severity: Warning,
			Text: with("Port {old} was taken by another program; Sallyport is on {port} from now on."),
			Next: "Clients that were set up with the old address need the new one.",
		},
		{
			Code: PortValueBad, Title: "The saved port was replaced", Severity: Warning,
			Text: with("The saved port was not a port; Sallyport is on {port} from now on."),
			Next: "Clients that were set up with another address need the new one.",
		},
		{
			Code: PortUnsaved, Title: "The port could not be saved", Severity: Warning,
			Text: with("Port {port} could not be saved, so the next start may use another."),
			Next: "Make the state folder writable.",
		},
		{
			Code: PortTwin, Title: "Another program has the same port on ::1", Severity: Warning,
			Text: with("Another program listens on [::1]:{port}. Whoever says localhost may reach that one."),
			Next: "Use the address with 127.0.0.1.",
		},
		{
			Code: SecretsUnavailable, Title: "Secrets cannot be read", Severity: Warning,
			Text: always("The keyring, or the encrypted file, cannot be used at the moment. Only connectors that need a secret are blocked."),
			Next: "Run sallyport doctor: it says why, and what to do on this system.",
		},
		{
			Code: ConfigInvalid, Title: "The configuration has errors", Severity: Warning,
			Text: with("Part of the configuration was not understood and is ignored: {what}."),
			Next: "Correct config.json.",
		},
		{
			Code: PluginFolderUnreadable, Title: "A plugin folder cannot be read", Severity: Warning,
			Text: with("{folder} cannot be read, so the plugins in it are not listed."),
			Next: "Make the folder readable or take it out of the configuration.",
		},
		{
			Code: WatchLimited, Title: "Changes are noticed later", Severity: Warning,
			Text:         with("The system watches no more folders, so {folder} is looked at regularly instead."),
			Next:         "Raise the system's limit of watched folders (fs.inotify.max_user_watches on Linux).",
			VisibleAfter: 5 * time.Second,
		},
		{
			Code: ServerParked, Title: "A server crashed too often", Severity: Warning,
			Text: with("{plugin} ended five times in a row and is not started again by itself."),
			Next: "Look at its last output, then enable it again.",
		},
		{
			Code: OverBudget, Title: "A server is over its budget", Severity: Warning,
			Text: with("{what} ({code})."),
			Next: "Look at what it does. If it needs that much, raise its budget in config.json and approve it again; if not, disable it.",
		},
		{
			Code: LeftoversEnded, Title: "Leftover processes were ended", Severity: Info,
			Text: with("{count} processes of the last run were still there and have been ended."),
		},
		{
			Code: LeftoversRemain, Title: "Leftover processes could not be ended", Severity: Warning,
			Text: with("{count} processes of the last run are still there."),
			Next: "End them by hand; sallyport doctor lists them.",
		},
		{
			Code: SnapshotDamaged, Title: "An approved copy was damaged", Severity: Warning,
			Text: with("The approved copy of {plugin} did not verify and was discarded."),
			Next: "Nothing, if the plugin's folder is unchanged: the copy is made again. Otherwise review the plugin.",
		},
		{
			Code: ExecutableChanged, Title: "A program was replaced", Severity: Warning,
			Text: with("The program that runs {plugin} is another one than was approved."),
			Next: "Review the plugin and approve it again.",
		},
		{
			Code: PathFromShellMissing, Title: "The login shell did not answer", Severity: Warning,
			Text: always("The search path of your login shell could not be read, so programs may not be found."),
			Next: "Check that your shell starts without asking anything.",
		},
		{
			Code: ClientEntryChanged, Title: "An agent's configuration was changed", Severity: Warning,
			Text: with("The entry sallyport in {file} is not as Sallyport wrote it, so {client} may not be using Sallyport, or something else in its name."),
			Next: "Look at the file. Put the entry back with sallyport connect, or take it out with sallyport connect --undo.",
		},
		{
			Code: AuditForwardLost, Title: "Audit records are not forwarded", Severity: Warning,
			Text:         always("The place that audit records are forwarded to does not answer. Nothing is lost here."),
			Next:         "Check the address in the configuration.",
			VisibleAfter: 30 * time.Second,
		},
	}
}

// kindOf returns the description of code.
func kindOf(code Code) Kind {
	for _, k := range Kinds() {
		if k.Code == code {
			return k
		}
	}
	return Kind{
		Code: code, Title: "Unknown problem", Severity: Failing,
		Text: always("A problem without a description is present."),
	}
}
