package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/console"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

func (h *Host) openConsoles() {
	h.Consoles = console.New(console.Config{Processes: h.Processes, Parent: env.ParentOf(runtime.GOOS, h.config.Environ),
		Closed: h.consoleClosed, Now: h.config.Now, Logger: h.log})
}

// OpenConsole opens a shell in a connector's place, for whoever may have one. It is on
// record before it exists, and without the record there is none.
func (h *Host) OpenConsole(ctx context.Context, id plugins.ID, o console.Options) (console.Info, error) {
	if err := o.Check(); err != nil {
		return console.Info{}, err
	}
	record := audit.Record{Action: audit.Console, Target: "open", Actor: o.By.User, Via: o.By.Via, Plugin: id.Plugin, Binding: id.Server}
	grant, launch, err := h.consoleGrant(ctx, id, o.By)
	if err != nil {
		record.Result, record.Reason = audit.Refused, coded.Of(err)
		h.Audit.Refused(record)
		return console.Info{}, err
	}
	record.Result, record.Version, record.Identity = audit.OK, launch.Version, string(grant.Identity())
	if _, err := h.Audit.Append(ctx, record); err != nil {
		return console.Info{}, &coded.Error{Code: audit.CodeUnwritable, Sentence: "the console cannot be recorded, so none was opened",
			Next: "free space in the data folder, or make it writable", Err: err}
	}
	reading := h.forStart(ctx, id, true) // the last start of its server is another one
	info, err := h.Consoles.Open(reading, grant, o)
	if err != nil {
		record.Result, record.Reason = audit.Failed, coded.Of(err)
		_, recordErr := h.Audit.Append(context.WithoutCancel(ctx), record)
		return console.Info{}, errors.Join(err, recordErr)
	}
	if h.readBefore(reading) {
		h.Consoles.StopWhere(context.WithoutCancel(ctx), func(g approvals.Grant) bool { return g.ID() == id }, secretChangedError())
		return console.Info{}, secretChangedError()
	}
	if err := h.Gate.MayUseConsole(o.By); err != nil { // it was taken away meanwhile
		h.closeConsolesRefused(context.WithoutCancel(ctx))
		return console.Info{}, err
	}
	h.tellStarted(id)
	h.Events.add("console", info.ID, "open")
	return info, nil
}

// closeConsolesRefused ends the consoles whose way in may have none any more.
func (h *Host) closeConsolesRefused(ctx context.Context) {
	h.Consoles.StopRefused(ctx, h.Gate.MayUseConsole)
}

// consoleGrant is what a console of id takes, for one who may have it.
func (h *Host) consoleGrant(ctx context.Context, id plugins.ID, by approvals.By) (approvals.Grant, approvals.Launch, error) {
	if err := h.Gate.MayUseConsole(by); err != nil {
		return approvals.Grant{}, approvals.Launch{}, err
	}
	grant, err := h.Gate.Grant(ctx, id)
	if err != nil {
		return grant, approvals.Launch{}, err
	}
	launch, err := grant.Launch()
	return grant, launch, err
}

// readBefore reports whether a secret was changed after a start had begun to read it.
func (h *Host) readBefore(opened context.Context) bool {
	start, ok := opened.Value(startKey{}).(*reading)
	return ok && h.changes.after(start.oneStart)
}

// consoleClosed puts the end on record: how and when, never what was typed or printed.
func (h *Host) consoleClosed(info console.Info) {
	by := info.By
	switch {
	case info.Closer != nil:
		by = *info.Closer
	case info.Reason != nil:
		by = approvals.By{User: "sallyport", Via: approvals.ViaSallyport}
	}
	record := audit.Record{Action: audit.Console, Result: audit.OK, Target: closedTarget(info), Actor: by.User, Via: by.Via,
		Plugin: info.Connector.Plugin, Binding: info.Connector.Server, Version: info.Version, Identity: string(info.Identity),
		DurationMs: info.EndedAt.Sub(info.OpenedAt).Milliseconds()}
	if info.Reason != nil {
		record.Reason = info.Reason.Code
	}
	if _, err := h.Audit.Append(context.Background(), record); err != nil {
		h.log.Error("the end of a console cannot be recorded", "connector", info.Connector.String(), "error", err)
	}
	h.Events.add("console", info.ID, "close")
}

// closedTarget is "close exit=7 bytes=1234".
func closedTarget(info console.Info) string {
	exit := strings.TrimPrefix(strings.TrimPrefix(info.Exit, "exit status "), "signal: ")
	return fmt.Sprintf("close exit=%s bytes=%d", strings.ReplaceAll(exit, " ", "-"), info.Printed)
}

// closeConsolesWith ends the consoles that were started with a secret.
func (h *Host) closeConsolesWith(ctx context.Context, secret string) {
	h.Consoles.StopWhere(ctx, func(g approvals.Grant) bool {
		launch, err := g.Launch()
		return err == nil && slices.Contains(launch.Permissions.Secrets, secret)
	}, secretChangedError())
}

// watchedGrants are the grants that something is there by: servers and consoles. What
// they are bound to is followed on the disk.
func (h *Host) watchedGrants() map[plugins.ID]approvals.Grant {
	grants := h.Consoles.Grants()
	for id := range h.RunningIDs() {
		if session, ok := h.Pool.Live(id); ok {
			grants[id] = session.Grant()
		}
	}
	return grants
}
