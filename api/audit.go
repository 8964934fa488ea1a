package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
)

// AuditPage is a page of records, newest first. Next is empty on the last page.
type AuditPage struct {
	Records []audit.Record `json:"records"`
	Next    string         `json:"next,omitempty"`
}

// AuditActivity counts calls and refusals by hours.
type AuditActivity struct {
	Hours []audit.Hour `json:"hours"`
}

var auditFilters = []string{"plugin", "action", "result", "reason", "client", "since", "until", "after", "before", "limit", "cursor"}

var auditRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/plugins/audit", Access: Operator,
	Summary: "What happened, newest first, at most 500 records a page.",
	Query:   auditFilters, Answer: AuditPage{}, Serve: (*Server).listAudit,
}, {
	Method: http.MethodGet, Path: "/v1/audit/export", Access: Operator,
	Summary: "The records as JSON lines or CSV (?format=jsonl|csv), with the filters of the list.",
	Query:   append([]string{"format"}, auditFilters...), Media: []string{"application/jsonl", "text/csv"}, Stream: (*Server).exportAudit,
}, {
	Method: http.MethodGet, Path: "/v1/audit/activity", Access: Operator, Query: []string{"since"},
	Summary: "How many calls and refusals there were in each hour, of the last 7 days or since a time.", Answer: AuditActivity{}, Serve: (*Server).auditActivity,
}, {
	Method: http.MethodPost, Path: "/v1/audit/verify", Access: Operator,
	Summary: "Checks the whole chain of records; a break is part of the answer.", Answer: audit.Report{}, Serve: (*Server).verifyAudit,
}}

func (s *Server) listAudit(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	filter, err := auditFilter(r)
	if err != nil {
		return nil, err
	}
	s.settleAudit(r.Context())
	page, err := s.host.Audit.Query(r.Context(), filter)
	if err != nil {
		return nil, err
	}
	return AuditPage{Records: present(page.Records), Next: page.Next}, nil
}

func (s *Server) exportAudit(_ Caller, w http.ResponseWriter, r *http.Request) {
	err := s.host.Fault()
	var filter audit.Filter
	if err == nil {
		filter, err = auditFilter(r)
	}
	format, kind := r.FormValue("format"), "application/jsonl"
	switch format {
	case "", audit.JSONLines:
		format = audit.JSONLines
	case audit.CSV:
		kind = "text/csv; charset=utf-8"
	default:
		err = coded.New("bad-request", "format is jsonl or csv")
	}
	if err == nil {
		err = s.host.RecordExport(r.Context(), via(r))
	}
	if err != nil {
		writeError(w, err)
		return
	}
	s.settleAudit(r.Context())
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	if err := s.host.Audit.Export(r.Context(), w, format, filter); err != nil {
		s.log.Warn("audit export ended early", "error", err)
		panic(http.ErrAbortHandler) // half an export must not look like a whole one
	}
}

func (s *Server) auditActivity(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	since := time.Now().AddDate(0, 0, -7)
	if text := r.FormValue("since"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, coded.New("bad-request", "since is not a time such as 2026-01-31T12:00:00Z")
		}
		since = at
	}
	s.settleAudit(r.Context())
	hours, err := s.host.Audit.Activity(r.Context(), since)
	if err != nil {
		return nil, err
	}
	return AuditActivity{Hours: hours}, nil
}

func (s *Server) verifyAudit(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	s.settleAudit(r.Context())
	report, err := s.host.Audit.Verify(r.Context())
	if err != nil && report.Break == nil {
		return nil, err
	}
	return report, nil
}

// settleAudit writes what is queued, so that whoever reads the audit after a call
// was answered finds the call. What cannot be written is a health item already.
func (s *Server) settleAudit(ctx context.Context) {
	if err := s.host.Audit.Flush(ctx); err != nil {
		s.log.Warn("the audit is read without its newest records", "error", err)
	}
}

func auditFilter(r *http.Request) (audit.Filter, error) {
	filter := audit.Filter{
		Plugin: r.FormValue("plugin"), Action: r.FormValue("action"), Result: r.FormValue("result"),
		Reason: r.FormValue("reason"), Client: r.FormValue("client"), Cursor: r.FormValue("cursor"),
	}
	if filter.Action != "" && !slices.Contains(audit.Actions(), filter.Action) {
		return filter, coded.New("bad-request", "action is one of "+strings.Join(audit.Actions(), ", "))
	}
	if results := []string{audit.OK, audit.Refused, audit.Failed}; filter.Result != "" && !slices.Contains(results, filter.Result) {
		return filter, coded.New("bad-request", "result is one of "+strings.Join(results, ", "))
	}
	for name, into := range map[string]*time.Time{"since": &filter.Since, "until": &filter.Until} {
		if text := r.FormValue(name); text != "" {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return filter, coded.New("bad-request", name+" is not a time such as 2026-01-31T12:00:00Z")
			}
			*into = at
		}
	}
	for name, into := range map[string]*uint64{"after": &filter.After, "before": &filter.Before} {
		if text := r.FormValue(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return filter, coded.New("bad-request", name+" is not the number of a record")
			}
			*into = n
		}
	}
	if text := r.FormValue("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 500 {
			return filter, coded.New("bad-request", "limit is a number from 1 to 500")
		}
		filter.Limit = n
	}
	return filter, nil
}

// present makes an empty list of an absent one: answers say [], never null.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
