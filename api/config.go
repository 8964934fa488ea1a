package api

import (
	"net/http"

	"sallyport/runtime/host"
	"sallyport/runtime/plugins"
)

// ConfigView is what a connector's plugin asks its user for, and what it has.
type ConfigView struct {
	ID       string    `json:"id"`
	Settings []Setting `json:"settings"`
	Missing  []string  `json:"missing"` // keys without which it cannot start
}

// Setting is one value. Of one that is kept in the keyring there is the reference.
type Setting struct {
	Key         string   `json:"key"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Type        string   `json:"type"` // string, number, boolean, directory, file
	Required    bool     `json:"required"`
	Sensitive   bool     `json:"sensitive"`
	Multiple    bool     `json:"multiple"`
	Min         string   `json:"min,omitempty"`
	Max         string   `json:"max,omitempty"`
	Default     []string `json:"default"`
	Value       []string `json:"value"` // the operator's; see set
	Set         bool     `json:"set"`   // the operator gave one; otherwise the default counts
}

// ConfigChange gives values and takes them back. What is sensitive goes to secrets,
// in standard base64, and from there to the keyring.
type ConfigChange struct {
	Set     map[string][]string `json:"set,omitempty"`
	Unset   []string            `json:"unset,omitempty"`
	Secrets map[string][]byte   `json:"secrets,omitempty"`
}

var configRoutes = []Route{{
	Method: http.MethodGet, Path: connectorPath + "/config", Access: Operator,
	Summary: "What its plugin asks its user for, and what it has.", Answer: ConfigView{}, Serve: (*Server).showConfig,
}, {
	Method: http.MethodPost, Path: connectorPath + "/config", Access: Operator,
	Summary: "Gives it values or takes them back. Another value is another identity: it asks again.",
	Body:    ConfigChange{}, Answer: ConfigView{}, Serve: (*Server).changeConfig,
}}

func (s *Server) showConfig(_ Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	return s.configView(r, id)
}

func (s *Server) changeConfig(c Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	var change ConfigChange
	if err := read(r, &change); err != nil {
		return nil, err
	}
	if err := s.host.Configure(r.Context(), id, host.Choices(change), s.by(c)); err != nil {
		return nil, err
	}
	return s.configView(r, id)
}

func (s *Server) configView(r *http.Request, id plugins.ID) (any, error) {
	settings, err := s.host.Settings(r.Context(), id)
	if err != nil {
		return nil, err
	}
	view := ConfigView{ID: id.String(), Settings: []Setting{}, Missing: []string{}}
	for _, one := range settings {
		view.Settings = append(view.Settings, Setting{
			Key: one.Key, Title: one.Title, Description: one.Description, Type: one.Type,
			Required: one.Required, Sensitive: one.Sensitive, Multiple: one.Multiple, Min: one.Min, Max: one.Max,
			Default: present(one.Default), Value: present(one.Value), Set: one.Value != nil,
		})
		if one.Missing() {
			view.Missing = append(view.Missing, one.Key)
		}
	}
	return view, nil
}
