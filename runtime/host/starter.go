package host

import (
	"context"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/mcp"
	"sallyport/runtime/plugins"
)

// recordedStarter starts nothing that is not on record first: the record is
// synced before the process exists, and without it there is no process
// (spec/audit.md 3).
type recordedStarter struct {
	audit   *audit.Log
	starter mcp.Starter
	reading func(ctx context.Context, id plugins.ID, probe bool) context.Context
	failed  func(plugins.ID, error)
}

func (s recordedStarter) Start(ctx context.Context, grant approvals.Grant) (mcp.Child, error) {
	launch, err := grant.Launch()
	if err != nil {
		return nil, err
	}
	record := audit.Record{Action: audit.Start, Result: audit.OK, Actor: "sallyport", Via: approvals.ViaSallyport,
		Plugin: launch.ID.Plugin, Binding: launch.ID.Server, Version: launch.Version, Identity: string(grant.Identity())}
	if grant.Probe() {
		record.Target = "probe"
	}
	if _, err := s.audit.Append(ctx, record); err != nil {
		return nil, &coded.Error{Code: audit.CodeUnwritable, Sentence: "the start cannot be recorded, so nothing was started",
			Next: "free space in the data folder, or make it writable", Err: err}
	}
	child, err := s.starter.Start(s.reading(ctx, launch.ID, grant.Probe()), grant)
	if err != nil {
		s.failed(launch.ID, err)
		record.Result, record.Reason = audit.Failed, coded.Of(err)
		if _, recordErr := s.audit.Append(context.WithoutCancel(ctx), record); recordErr != nil {
			return nil, recordErr
		}
		return nil, err
	}
	return child, nil
}
